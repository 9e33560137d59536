// Lists the logs of a run, and decides how a log ends by what the store says of its run.
#ifndef MUSTER_BROKER_APP_RUN_LOGS_H_
#define MUSTER_BROKER_APP_RUN_LOGS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/store/store.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

struct RunFacts {
  uint32_t run = 0;            // 0: the job has had no run
  uint32_t ranks = 0;          // number of ranks that can have a log
  bool has_ended = false;      // the run has ended, or the job, if it has had no run
  bool logs_complete = false;  // the broker has all of its logs
  absl::Time end_time;         // end of the run once it has ended, by the clock of its node
};

// NOT_FOUND: the job has fewer runs, or fewer ranks.
absl::Status NoSuchRun(uint64_t job, uint32_t run, uint32_t runs);
absl::Status NoSuchRank(uint64_t job, uint32_t rank, uint32_t ranks);

// Reads the store. `run` 0 means the latest. NOT_FOUND: there is no such job or run.
absl::StatusOr<RunFacts> LookAtRun(const store::Store& store, const store::Scope& scope,
                                   uint64_t job, uint32_t run);

// Decides how a log ends, from what the archive says of it and from whether its cluster has had its
// time to deliver the rest.
v1::LogEnd EndOfLog(v1::LogEnd in_archive, const RunFacts& run, bool is_grace_over);

// Lists the logs of a run. Blocks for some milliseconds; call it on a thread of Services::readers.
absl::StatusOr<v1::ListLogsResponse> ListLogs(const Principal& principal, const Services& services,
                                              const v1::ListLogsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_RUN_LOGS_H_
