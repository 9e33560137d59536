// What has happened to a job.
#ifndef MUSTER_CLIENTS_CLI_HISTORY_H_
#define MUSTER_CLIENTS_CLI_HISTORY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

// The transitions so far: as many as the job says it has had.
absl::StatusOr<std::vector<v1::Transition>> HistoryOf(client::Client& client, const v1::Job& job);

// The last time that somebody asked to cancel, hold or release the job; null: nobody has.
const v1::Transition* LatestWish(const std::vector<v1::Transition>& history);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_HISTORY_H_
