// What ends runs, and holds them back.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/objects/kueue.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Between two tries to make a Job as held as it is wished: the agent repeats a SetHeld as seldom.
constexpr absl::Duration kHoldPause = absl::Seconds(10);

}  // namespace

using agent::Observation;
using agent::RunHandle;

absl::Status KubernetesBackend::Cancel(const RunHandle& run) {
  {
    const std::lock_guard lock(mutex_);
    canceled_.insert(run.run_key);
  }
  queue_.Remove(run.run_key);
  const absl::StatusOr<std::optional<JobObject>> job = FindJob(NamespaceOf(run), run.run_key);
  if (!job.ok()) return job.status();
  if (!job->has_value()) return absl::OkStatus();
  // What has ended keeps its own end.
  if ((*job)->HasEnded()) return absl::OkStatus();
  return calls_.DeleteJob((*job)->name);
}

absl::Status KubernetesBackend::SetHeld(const RunHandle& run, bool held) {
  queue_.SetHeld(run.run_key, held);
  const absl::StatusOr<std::optional<JobObject>> job = FindJob(NamespaceOf(run), run.run_key);
  if (!job.ok()) return job.status();
  if (!job->has_value()) return absl::OkStatus();
  // Its turn comes once it is released; what is in a queue Kueue may let go before that.
  if (!(*job)->is_launch_complete && (!held || !IsInQueue(**job))) {
    HomeOf(run).store().MarkNews(run.run_key);
    return absl::OkStatus();
  }
  return ChangeHold(run, **job, held);
}

absl::Status KubernetesBackend::ChangeHold(const RunHandle& run, const JobObject& job, bool held) {
  if (!job.queue.empty() && run.assignment != nullptr)
    return SetHeldInQueue(job, *InPlace(run), held);
  if (job.is_suspended == held) return absl::OkStatus();
  if (held && HasNode(job.name)) return absl::OkStatus();
  return ChangeJob(job.name, SuspendPatch(job.name.uid, held));
}

void KubernetesBackend::HeedHold(const RunHandle& run, const JobObject& job, Observation* seen) {
  // Nobody lets it go before its turn, which waits for its release.
  if (!job.is_launch_complete && job.is_suspended && !IsInQueue(job)) return;
  // As long as the broker has not spoken, and while a SetHeld is due, nobody knows what is wished.
  const bool held = run.held;
  if (!queue_.is_open() || queue_.WishOf(run.run_key).value_or(held) != held) return;
  // What others have suspended is theirs to resume.
  const bool is_held = job.is_suspended && (job.is_held || job.queue == kHeldQueue);
  if (is_held == held || (!job.is_suspended && HasNode(job.name))) return;
  HoldTry& last = hold_tries_[run.run_key];
  if (const absl::Time now = absl::Now(); now - last.time >= kHoldPause) {
    const absl::Status done = ChangeHold(run, job, held);
    last.trouble = ToStd(done.message());
    // That Kueue has let it go is no answer of the server's, which is spared.
    if (!absl::IsFailedPrecondition(done)) last.time = now;
  }
  if (last.trouble.empty() || seen->state != v1::RUN_STATE_PENDING) return;
  seen->reason += fmt::format("{}the {} waits: {}", seen->reason.empty() ? "" : "; ",
                              held ? "hold" : "release", last.trouble);
}

absl::Status KubernetesBackend::SetHeldInQueue(const JobObject& job, const v1::Assignment& run,
                                               bool held) {
  if (!held) return job.is_suspended ? Keep(SendOff(job, run)) : absl::OkStatus();
  // If Kueue lets it go in this moment, it refuses the change, and whoever asks again finds that.
  if (job.is_suspended) return ChangeJob(job.name, QueuePatch(job.name.uid, kHeldQueue));
  if (HasNode(job.name)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "Kueue has let it go, and it waits for nodes: it will be held if Kueue takes it back before "
      "it has them");
}

bool KubernetesBackend::HasNode(const ObjectName& job) {
  const std::vector<PodObject> pods = HomeOf(job.name_space).store().Facts(job.run_key).pods;
  return std::any_of(pods.begin(), pods.end(),
                     [](const PodObject& pod) { return !pod.node.empty(); });
}

absl::Status KubernetesBackend::ChangeJob(const ObjectName& job, const Json& patch) {
  return Keep(calls_.PatchJob(job, patch));
}

absl::Status KubernetesBackend::Keep(absl::StatusOr<JobObject> patched) {
  if (absl::IsNotFound(patched.status())) return absl::OkStatus();
  if (!patched.ok()) return patched.status();
  RunStore& store = HomeOf(patched->name.name_space).store();
  store.Put(*std::move(patched));
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
