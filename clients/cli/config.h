// Where the broker is and how results look, from the command line, the environment and the user's
// file, in this order.
#ifndef MUSTER_CLIENTS_CLI_CONFIG_H_
#define MUSTER_CLIENTS_CLI_CONFIG_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/invocation.h"
#include "clients/cli/render.h"

namespace muster::cli {

struct Config {
  std::string broker;  // empty: nobody named one
  Format format = Format::kTable;
};

// getenv, or a stand-in: a null pointer for a variable that is not set.
using Environment = std::function<const char*(const char* name)>;

// $XDG_CONFIG_HOME/muster/config.yaml, else $HOME/.config/muster/config.yaml; empty if neither is
// set.
std::string ConfigPath(const Environment& environment);

// INVALID_ARGUMENT: the file is there and has a problem; "FILE:LINE:COLUMN: ...". A file that is
// not there is none.
absl::StatusOr<Config> LoadConfig(const Invocation& call, const Environment& environment);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CONFIG_H_
