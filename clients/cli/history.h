// Shows the history of a job.
#ifndef MUSTER_CLIENTS_CLI_HISTORY_H_
#define MUSTER_CLIENTS_CLI_HISTORY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

// Returns every transition of the job so far, the oldest first.
absl::Status ForEachTransition(client::Client& client, uint64_t job,
                               const std::function<void(const v1::Transition&)>& visit);
absl::StatusOr<std::vector<v1::Transition>> HistoryOf(client::Client& client, uint64_t job);

// The last time that somebody asked to cancel, hold or release the job; null: nobody has.
const v1::Transition* LatestWish(const std::vector<v1::Transition>& history);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_HISTORY_H_
