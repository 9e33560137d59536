// Waiting for jobs and passing on their logs.
#ifndef MUSTER_CLIENTS_CLI_FOLLOW_H_
#define MUSTER_CLIENTS_CLI_FOLLOW_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/terminal.h"
#include "clients/cli/verbs.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::cli {

// Waits until all the jobs have ended; they come back whole, in the order of the ids. Says on
// standard error what happens to them. DEADLINE_EXCEEDED: the deadline has passed.
absl::StatusOr<std::vector<v1::Job>> WaitForJobs(Session& session, const std::vector<uint64_t>& ids,
                                                 absl::Time deadline);

// The same for one job whose outputs are passed on meanwhile: rank 0's standard output to ours, its
// standard error to ours.
absl::StatusOr<v1::Job> StreamJob(Session& session, uint64_t id);

// Passes one log on until it ends. `fd` is 1 or 2. To a terminal, what would act on it is made
// harmless unless `raw`; elsewhere the bytes go as they are. `pieces`, if not null, counts them as
// they are written. Returns how the log ended; what is not complete has been said on standard
// error.
absl::StatusOr<v1::LogEnd> CopyLog(client::Client& client, Terminal& terminal,
                                   const v1::ReadLogRequest& request, int fd, bool raw,
                                   std::atomic<uint64_t>* pieces = nullptr);

// A job's line and, if it failed, what can be done about it, to standard error.
void NoteEnd(Session& session, const v1::Job& job);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_FOLLOW_H_
