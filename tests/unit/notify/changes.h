// Changes of jobs as the feed has them.
#ifndef MUSTER_TESTS_UNIT_NOTIFY_CHANGES_H_
#define MUSTER_TESTS_UNIT_NOTIFY_CHANGES_H_

#include <cstdint>

#include "muster/v1/jobs_service.pb.h"

namespace muster::notify {

// The end of a run of job `job`, and of the job, in this state.
inline v1::JobChange EndOf(uint64_t job, uint64_t sequence, v1::JobState state) {
  v1::JobChange change;
  change.set_sequence(sequence);
  v1::Job& now = *change.mutable_job();
  now.set_id(job);
  now.set_name("train");
  now.set_user("ada");
  now.set_project("ml");
  now.set_cluster("lab");
  now.set_state(state);
  v1::Transition& step = *change.mutable_transition();
  step.set_sequence(sequence);
  step.set_run(1);
  step.set_run_state(v1::RUN_STATE_FAILED);
  step.set_job_state(state);
  step.mutable_time()->set_seconds(1'767'323'045);
  return change;
}

}  // namespace muster::notify

#endif  // MUSTER_TESTS_UNIT_NOTIFY_CHANGES_H_
