// Reports the replicas of runs all together, and not more often than every kMinReplicasInterval
// while their run stays in its state.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"

namespace muster::agents {

bool RunTable::TakeReplicas(Run& run, const Observation& seen, bool moves, const Step& step,
                            agent::v1::RunEvent* event) {
  if (!seen.replicas.empty()) {
    const bool is_told =
        std::equal(seen.replicas.begin(), seen.replicas.end(), run.told.replicas().begin(),
                   run.told.replicas().end(), [](const v1::Replica& a, const v1::Replica& b) {
                     return google::protobuf::util::MessageDifferencer::Equals(a, b);
                   });
    late_replicas_.erase(run.key());
    if (is_told) return false;
    LateReplicas& late = late_replicas_[run.key()];
    late.due = run.replicas_told + kMinReplicasInterval;
    *late.event.mutable_evidence() = event->evidence();
    late.event.mutable_replicas()->Assign(seen.replicas.begin(), seen.replicas.end());
  }
  const auto late = late_replicas_.find(run.key());
  if (late == late_replicas_.end() || (!moves && step.now < late->second.due)) return false;
  *event->mutable_replicas() = std::move(*late->second.event.mutable_replicas());
  *run.told.mutable_replicas() = event->replicas();
  run.replicas_told = step.now;
  late_replicas_.erase(late);
  return true;
}

void RunTable::TellLateReplicas(const Step& step) {
  std::vector<std::string> due;
  for (const auto& [key, late] : late_replicas_) {
    if (late.due <= step.now) due.push_back(key);
  }
  for (const std::string& key : due) {
    agent::v1::RunEvent event = std::move(late_replicas_.extract(key).mapped().event);
    Run& run = *Find(key);
    *run.told.mutable_replicas() = event.replicas();
    run.replicas_told = step.now;
    // The broker would take an estimate that is left out for gone.
    if (run.told.has_estimated_start_time())
      *event.mutable_estimated_start_time() = run.told.estimated_start_time();
    Change(run, std::move(event), run.record.state, step);
  }
}

}  // namespace muster::agents
