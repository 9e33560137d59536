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
  if (!queue_.WishOf(run.run_key).value_or(run.held)) return DropHold(run.run_key);
  HoldAdvice advice = AdviseHold(job, facts.pods, PodsOf(run), HoldWishedFor(run.run_key));
  if (advice.step == HoldStep::kNow) advice.why = TryHold(run, job);
  if (advice.why.empty() || seen->state != v1::RUN_STATE_PENDING) return;
  seen->reason +=
      fmt::format("{}the hold {}: {}", seen->reason.empty() ? "" : "; ",
                  advice.step == HoldStep::kTooLate ? "comes too late" : "waits", advice.why);
}

absl::Duration KubernetesBackend::HoldWishedFor(const std::string& run_key) {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  HoldTry& last = hold_tries_[run_key];
  if (!last.wished.has_value()) last.wished = now;
  return now - *last.wished;
}

std::string KubernetesBackend::TryHold(const RunHandle& run, const JobObject& job) {
  const std::lock_guard lock(mutex_);
  HoldTry& last = hold_tries_[run.run_key];
  if (last.is_under_way || absl::Now() - last.ended < kHoldPause) return last.trouble;
  last.is_under_way = true;
  // Also if the answer is lost.
  last.may_be_done = true;
  // On a thread of its own: a webhook that takes its time keeps nobody from being seen.
  holds_.Post([this, run, job] {
    // If Kueue lets it go in this moment, it refuses the change, and the next look finds that.
    const absl::Status done = ChangeJob(job.name, HoldPatch(job));
    {
      const std::lock_guard lock_again(mutex_);
      HoldTry& tried = hold_tries_[run.run_key];
      tried.is_under_way = false;
      tried.ended = absl::Now();
      tried.trouble = ToStd(done.message());
    }
    HomeOf(run).store().MarkNews(run.run_key);
  });
  return last.trouble;
}

bool KubernetesBackend::TakeHeldBack(const std::string& run_key) {
  const std::lock_guard lock(mutex_);
  const auto found = hold_tries_.find(run_key);
  return found != hold_tries_.end() && std::exchange(found->second.may_be_done, false);
}

void KubernetesBackend::DropHold(const std::string& run_key) {
  const std::lock_guard lock(mutex_);
  const auto found = hold_tries_.find(run_key);
  if (found == hold_tries_.end()) return;
  HoldTry& last = found->second;
  last.wished.reset();
  last.trouble.clear();
  // The next hold is tried at once.
  last.ended = absl::InfinitePast();
}

void KubernetesBackend::ForgetHold(const std::string& run_key) {
  const std::lock_guard lock(mutex_);
  const auto found = hold_tries_.find(run_key);
  if (found != hold_tries_.end() && !found->second.is_under_way) hold_tries_.erase(found);
}

}  // namespace muster::kubernetes
