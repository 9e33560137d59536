// What ends runs, and holds them back.
#include <algorithm>
#include <utility>

#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/kueue.h"

namespace muster::kubernetes {

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
  if (!(*job)->queue.empty() && run.assignment != nullptr)
    return SetHeldInQueue(**job, *InPlace(run), held);
  if ((*job)->is_suspended == held) return absl::OkStatus();
  if (held && HasNode((*job)->name)) return absl::OkStatus();
  return ChangeJob((*job)->name, SuspendPatch((*job)->name.uid, held));
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
