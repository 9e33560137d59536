// Holds and releases runs: the latest wish is noted, and the looks at the run make its Job follow
// it. A look changes or deletes a Job by TryChange.
#include <functional>
#include <utility>

#include "agents/core/steady_time.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/hold.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// After the answer to one try, so that what is refused does not burden the server.
constexpr absl::Duration kChangePause = absl::Seconds(10);
// If the Job was another by then, the watch tells in a moment what it is.
constexpr absl::Duration kConflictPause = absl::Milliseconds(200);

}  // namespace

using agents::Observation;
using agents::RunHandle;

std::vector<absl::Status> KubernetesBackend::Hold(const std::vector<RunHandle>& runs, bool held) {
  for (const RunHandle& run : runs) {
    queue_.SetHeld(run.run_key, held);
    HomeOf(run).store().MarkNews(run.run_key);
  }
  return std::vector<absl::Status>(runs.size());
}

void KubernetesBackend::HeedHold(const RunHandle& run, const RunFacts& facts, Observation* seen) {
  const JobObject& job = *facts.job;
  // Until the broker has spoken, nobody knows which holds are wished.
  if (!queue_.is_open()) return;
  if (!queue_.WishOf(run.run_key).value_or(run.held)) return DropHold(run.run_key);
  // Nobody lets it go before its turn, which waits for its release.
  if (!job.is_launch_complete && job.is_suspended && !IsInQueue(job)) return;
  HoldAdvice advice = AdviseHold(job, facts.pods, PodsOf(run), HoldWishedFor(run.run_key));
  if (advice.step == HoldStep::kNow)
    advice.why = TryChange(run, &JobChange::patches, [this, run] { return TakeBack(run); });
  if (advice.why.empty() || seen->state != v1::RUN_STATE_PENDING) return;
  AddToReason(
      v1::STATE_REASON_CODE_HOLD_NOT_TOLD,
      fmt::format("the hold {}: {}", advice.step == HoldStep::kTooLate ? "comes too late" : "waits",
                  advice.why),
      seen);
}

absl::Status KubernetesBackend::TakeBack(const RunHandle& run) {
  if (WasCanceled(run.run_key) || !queue_.WishOf(run.run_key).value_or(run.held))
    return absl::OkStatus();
  const RunFacts facts = HomeOf(run).store().Facts(run.run_key);
  if (!facts.job.has_value()) return absl::OkStatus();
  const HoldAdvice advice =
      AdviseHold(*facts.job, facts.pods, PodsOf(run), HoldWishedFor(run.run_key));
  if (advice.step != HoldStep::kNow) return absl::OkStatus();
  // If Kueue lets it go in this moment, it refuses the change, and the next look finds that.
  return ChangeJob(facts.job->name, HoldPatch(*facts.job));
}

absl::Duration KubernetesBackend::HoldWishedFor(const std::string& run_key) {
  const absl::Time now = agents::SteadyNow();
  const MutexLock lock(mutex_);
  JobChange& last = changes_[run_key];
  if (!last.hold_wished.has_value()) last.hold_wished = now;
  return now - *last.hold_wished;
}

std::string KubernetesBackend::TryChange(const RunHandle& run, Tries JobChange::*kind,
                                         std::function<absl::Status()> change) {
  const MutexLock lock(mutex_);
  JobChange& last = changes_[run.run_key];
  const Tries& tries = last.*kind;
  if (last.is_under_way || agents::SteadyNow() < tries.not_before) return tries.trouble;
  last.is_under_way = true;
  // A webhook that takes its time keeps nobody from being seen.
  agents::WorkerLane& lane = kind == &JobChange::deletions ? deleter_ : changer_;
  lane.Post([this, run, kind, change = std::move(change)] {
    const absl::Status done = change();
    const bool is_another = absl::IsAborted(done);
    {
      const MutexLock lock_again(mutex_);
      const auto tried = changes_.find(run.run_key);
      if (tried == changes_.end()) return;  // nobody waits for it any more
      tried->second.is_under_way = false;
      tried->second.*kind = {
          agents::SteadyNow() + (is_another ? kConflictPause : kChangePause),
          is_another ? "" : std::string(ToStd(done.message())),
      };
    }
    HomeOf(run).store().MarkNews(run.run_key);
  });
  return tries.trouble;
}

bool KubernetesBackend::BeginChange(const std::string& run_key) {
  const MutexLock lock(mutex_);
  return !std::exchange(changes_[run_key].is_under_way, true);
}

bool KubernetesBackend::IsChangeUnderWay(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const auto found = changes_.find(run_key);
  return found != changes_.end() && found->second.is_under_way;
}

void KubernetesBackend::DropHold(const std::string& run_key) {
  const MutexLock lock(mutex_);
  const auto found = changes_.find(run_key);
  if (found == changes_.end() || !found->second.hold_wished.has_value()) return;
  found->second.hold_wished.reset();
  // The next hold is tried at once.
  found->second.patches = {};
}

void KubernetesBackend::ForgetChanges(const std::string& run_key) {
  const MutexLock lock(mutex_);
  changes_.erase(run_key);
}

size_t KubernetesBackend::CountChanges() const {
  const MutexLock lock(mutex_);
  return changes_.size();
}

}  // namespace muster::kubernetes
