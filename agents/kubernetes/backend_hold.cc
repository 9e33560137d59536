// Holds and releases of runs: the latest wish is noted, and looks at the run make its Job so.
#include <utility>

#include "absl/time/clock.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/hold.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Between two tries of the same change, so that one that is refused does not burden the server.
constexpr absl::Duration kHoldPause = absl::Seconds(10);

}  // namespace

using agent::Observation;
using agent::RunHandle;

absl::Status KubernetesBackend::SetHeld(const RunHandle& run, bool held) {
  NoteHold(run.run_key, held);
  HomeOf(run).store().MarkNews(run.run_key);
  return absl::OkStatus();
}

void KubernetesBackend::HeedHold(const RunHandle& run, const RunFacts& facts, Observation* seen) {
  const JobObject& job = *facts.job;
  // Nobody lets it go before its turn, which waits for its release.
  if (!job.is_launch_complete && job.is_suspended && !IsInQueue(job)) return;
  // As long as the broker has not spoken nobody knows what is wished.
  if (!queue_.is_open()) return;
  const bool held = queue_.WishOf(run.run_key).value_or(run.held);
  // What others have suspended is theirs to resume.
  const bool is_held = job.is_suspended && (job.is_held || job.queue == kHeldQueue);
  if (is_held == held) return;
  const HoldAdvice advice =
      held ? AdviseHold(job, facts.pods, PodsOf(run)) : AdviseRelease(job, facts.pods);
  if (advice.step == HoldStep::kNone) return;
  std::string why = advice.why;
  if (advice.step == HoldStep::kNow) {
    HoldTry& last = hold_tries_[run.run_key];
    if (const absl::Time now = absl::Now(); last.held != held || now - last.time >= kHoldPause)
      last = {held, now, std::string(ToStd(ChangeHold(run, job, held).message()))};
    why = last.trouble;
  }
  if (why.empty() || seen->state != v1::RUN_STATE_PENDING) return;
  seen->reason += fmt::format("{}the {} waits: {}", seen->reason.empty() ? "" : "; ",
                              held ? "hold" : "release", why);
}

absl::Status KubernetesBackend::ChangeHold(const RunHandle& run, const JobObject& job, bool held) {
  // If Kueue lets it go in this moment, it refuses the change, and the next look finds that.
  if (!job.queue.empty()) {
    return Keep(held ? calls_.PatchJob(job.name, QueuePatch(job.name.uid, kHeldQueue))
                     : SendOff(job, *InPlace(run)));
  }
  return Keep(calls_.PatchJob(job.name, SuspendPatch(job.name.uid, held)));
}

}  // namespace muster::kubernetes
