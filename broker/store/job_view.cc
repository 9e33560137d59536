#include "broker/store/job_view.h"

namespace muster::store {

void ShowLatestRun(const v1::Run& run, v1::Job* job) {
  if (run.has_exit()) *job->mutable_exit() = run.exit();
  if (run.has_failure()) *job->mutable_failure() = run.failure();
  if (job->state() == v1::JOB_STATE_PENDING) job->set_reason(run.reason());
}

}  // namespace muster::store
