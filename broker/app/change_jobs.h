// Cancels, holds, releases or moves jobs, chosen by number or by a filter, or only says what that
// would change.
#ifndef MUSTER_BROKER_APP_CHANGE_JOBS_H_
#define MUSTER_BROKER_APP_CHANGE_JOBS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {

enum class JobChange { kCancel, kHold, kRelease, kMove };

struct ChangeRequest {
  JobChange change = JobChange::kCancel;
  std::vector<uint64_t> jobs = {};  // the jobs to change: all of them, or none
  std::string filter = {};          // used if no job is named
  std::string reason = {};
  bool validate_only = false;
};

struct ChangedJobs {
  std::vector<v1::Job> jobs;  // the jobs as they are now, see ShowJobs
  uint32_t matched_count = 0;
  bool more =
      false;  // the filter may take other jobs, or still take some of these; a repeat changes them
};
using ChangeDone = std::function<void(absl::StatusOr<ChangedJobs>)>;

// `done` is called once, on any thread. Does not block. An error means that nothing was changed;
// once something was changed, the answer is OK. A job that a filter takes is changed only if it has
// not changed since it was chosen.
void ChangeJobs(const Principal& principal, const Services& services, ChangeRequest request,
                ChangeDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CHANGE_JOBS_H_
