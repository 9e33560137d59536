// The options of squeue, scancel, sacct and sinfo: their command lines and, below those, the
// variables that set options.
#ifndef MUSTER_CLIENTS_CLI_SLURM_GIVEN_H_
#define MUSTER_CLIENTS_CLI_SLURM_GIVEN_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/slurm/options.h"

namespace muster::cli {

// The options that a command does not take, and the remedy for each.
using Refused = std::span<const std::pair<std::string_view, std::string_view>>;

// INVALID_ARGUMENT that names the first option given that is refused.
absl::Status CheckRefused(const client::slurm::Settings& given, Refused refused);
// Reads a command line and the variables of the table. A variable that is empty sets nothing.
// INVALID_ARGUMENT: as ReadCommandWords, or an option that is refused.
absl::StatusOr<client::slurm::CommandWords> ReadGiven(client::slurm::OptionTable table,
                                                      const std::vector<std::string>& words,
                                                      Refused refused);
// Returns whether the command line set it, and not a variable.
bool IsTyped(const client::slurm::Setting& setting);

// The answer to --version, --usage or --help among the words; empty: none of them is there.
std::string AboutText(std::string_view verb, client::slurm::OptionTable table, Refused refused,
                      const std::vector<std::string>& words);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_GIVEN_H_
