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

// After the answer to one try, so that what is refused does not burden the server.
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
  const absl::Duration waited = WishedFor(run.run_key, held);
  // What others have suspended is theirs to resume.
  const bool is_held = job.is_suspended && (job.is_held || job.queue == kHeldQueue);
  if (is_held == held) return;
  HoldAdvice advice =
      held ? AdviseHold(job, facts.pods, PodsOf(run), waited) : AdviseRelease(job, facts.pods);
  if (advice.step == HoldStep::kNow) advice.why = TryHold(run, job, held);
  if (advice.why.empty() || seen->state != v1::RUN_STATE_PENDING) return;
  seen->reason +=
      fmt::format("{}the {} {}: {}", seen->reason.empty() ? "" : "; ", held ? "hold" : "release",
                  advice.step == HoldStep::kTooLate ? "comes too late" : "waits", advice.why);
}

absl::Duration KubernetesBackend::WishedFor(const std::string& run_key, bool held) {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  HoldTry& last = hold_tries_[run_key];
  if (last.held != held || last.wished == absl::InfinitePast()) {
    last.held = held;
    last.wished = now;
    last.ended = absl::InfinitePast();
    last.trouble.clear();
  }
  return now - last.wished;
}

std::string KubernetesBackend::TryHold(const RunHandle& run, const JobObject& job, bool held) {
  const std::lock_guard lock(mutex_);
  HoldTry& last = hold_tries_[run.run_key];
  if (last.is_under_way || absl::Now() - last.ended < kHoldPause) return last.trouble;
  last.is_under_way = true;
  // On a thread of its own: a webhook that takes its time keeps nobody from being seen.
  holds_.Post([this, run, job, held] {
    const absl::Status done = ChangeHold(run, job, held);
    {
      const std::lock_guard lock_again(mutex_);
      HoldTry& tried = hold_tries_[run.run_key];
      tried.is_under_way = false;
      // What was wished meanwhile is tried at once.
      if (tried.held == held) {
        tried.ended = absl::Now();
        tried.trouble = ToStd(done.message());
      }
    }
    HomeOf(run).store().MarkNews(run.run_key);
  });
  return last.trouble;
}

void KubernetesBackend::ForgetHold(const std::string& run_key) {
  const std::lock_guard lock(mutex_);
  const auto found = hold_tries_.find(run_key);
  if (found != hold_tries_.end() && !found->second.is_under_way) hold_tries_.erase(found);
}

absl::Status KubernetesBackend::ChangeHold(const RunHandle& run, const JobObject& job, bool held) {
  if (job.queue.empty()) return ChangeJob(job.name, SuspendPatch(job.name.uid, held));
  if (!held) return Keep(SendOff(job, *InPlace(run)));
  // If Kueue lets it go in this moment, it refuses the change, and the next look finds that.
  return ChangeJob(job.name, QueuePatch(job.name.uid, kHeldQueue));
}

}  // namespace muster::kubernetes
