// Sends signals to jobs, as many as there are.
#ifndef MUSTER_CLIENTS_CLI_SIGNALS_H_
#define MUSTER_CLIENTS_CLI_SIGNALS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/invocation.h"
#include "clients/cpp/client.h"

namespace muster::cli {

// `each` is told what became of the signal to one job. An error: the call itself failed, and the
// jobs that were not told of got none.
absl::Status SendSignals(client::Client& client, const std::vector<uint64_t>& jobs,
                         const SignalFlags& signal,
                         const std::function<void(uint64_t job, const absl::Status&)>& each);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SIGNALS_H_
