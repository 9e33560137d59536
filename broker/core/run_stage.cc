#include "broker/core/run_stage.h"

#include "contract/states.h"

namespace muster::core {

bool HasBegun(const v1::Run& run) {
  switch (run.state()) {
    case v1::RUN_STATE_STARTING:
    case v1::RUN_STATE_RUNNING:
    case v1::RUN_STATE_SUSPENDED:
    case v1::RUN_STATE_SUCCEEDED:
      return true;
    case v1::RUN_STATE_FINISHING:
    case v1::RUN_STATE_FAILED:
    case v1::RUN_STATE_CANCELED:
    case v1::RUN_STATE_LOST:
      return run.has_start_time();
    default:
      return false;
  }
}

v1::JobState JobStateFor(const v1::Run& run, bool cancel_requested) {
  const bool has_succeeded = run.state() == v1::RUN_STATE_SUCCEEDED;
  if (cancel_requested && contract::IsTerminal(run.state()) && !has_succeeded)
    return v1::JOB_STATE_CANCELED;
  const bool waited = run.state() == v1::RUN_STATE_FINISHING && !HasBegun(run);
  return waited ? v1::JOB_STATE_PENDING : contract::JobStateFor(run.state());
}

}  // namespace muster::core
