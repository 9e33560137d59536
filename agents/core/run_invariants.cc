// Cross-checks the books of the runs: what their states, the calls under way and the queues say of
// each other.
#include <fmt/core.h>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"
#include "contract/states.h"

namespace muster::agents {

absl::Status RunTable::CheckInvariants() const {
  int launching = 0;
  size_t waiting = 0;
  size_t due = 0;
  size_t late = 0;
  size_t usages = 0;
  for (const auto& [key, run] : runs_) {
    const v1::RunState state = run.record.state;
    const bool looks_up =
        run.call == Call::kLookup || run.call == Call::kFence || run.due != absl::InfiniteFuture();
    launching += run.call == Call::kLaunch;
    const bool is_waiting =
        launch_queue_.Contains(run.record.order) != gathering_.Contains(run.record.order);
    waiting += is_waiting;
    due += due_.contains({run.due, key});
    // A change of state tells them: an end leaves none.
    late += late_replicas_.contains(key) && IsOnCluster(state);
    const bool ends = contract::IsTerminal(state);
    usages += usage_.Contains(key) && ends;
    const bool waits =
        state == v1::RUN_STATE_ASSIGNED || (run.is_deferred() && run.due == absl::InfiniteFuture());
    const bool ok = waits == is_waiting &&
                    (run.call != Call::kLaunch || state == v1::RUN_STATE_LAUNCHING) &&
                    (state != v1::RUN_STATE_LAUNCH_UNKNOWN || looks_up) &&
                    // Only a run that is to end is kept from ever beginning.
                    (run.call != Call::kFence ||
                     (state == v1::RUN_STATE_LAUNCH_UNKNOWN && run.record.cancel_requested)) &&
                    (run.due != absl::InfiniteFuture()) == due_.contains({run.due, key}) &&
                    !(run.call != Call::kNone && run.due != absl::InfiniteFuture()) &&
                    (!run.record.logs_complete || ends);
    if (!ok) {
      return absl::InternalError(fmt::format("run {} in state {} with call {}: its books disagree",
                                             key, contract::Name(state),
                                             static_cast<int>(run.call)));
    }
  }
  for (const auto& [key, leaving] : leaving_) usages += usage_.Contains(key);
  if (launching != launch_queue_.launches() ||
      waiting != launch_queue_.size() + gathering_.size() || due != due_.size() ||
      late != late_replicas_.size() || usages != usage_.size() || !changed_.empty()) {
    return absl::InternalError(fmt::format(
        "runs: {} launching of {} counted, {} waiting of {}, {} due of {}, {} with "
        "late replicas of {}, {} without usage of {}, {} not written",
        launching, launch_queue_.launches(), waiting, launch_queue_.size() + gathering_.size(), due,
        due_.size(), late, late_replicas_.size(), usages, usage_.size(), changed_.size()));
  }
  return absl::OkStatus();
}

}  // namespace muster::agents
