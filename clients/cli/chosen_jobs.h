// The jobs that a filter takes.
#ifndef MUSTER_CLIENTS_CLI_CHOSEN_JOBS_H_
#define MUSTER_CLIENTS_CLI_CHOSEN_JOBS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"

namespace muster::cli {

// Their numbers, the oldest first. INVALID_ARGUMENT: they are more than `most`.
absl::StatusOr<std::vector<uint64_t>> JobsOfFilter(client::Client& client,
                                                   const std::string& filter, size_t most);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CHOSEN_JOBS_H_
