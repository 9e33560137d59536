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
  if (!(*job)->is_launch_complete) {
    HomeOf(run).store().MarkNews(run.run_key);
    return absl::OkStatus();
  }
  if (!(*job)->queue.empty() && run.assignment != nullptr)
    return SetHeldInQueue(**job, *InPlace(run), held);
  if ((*job)->is_suspended == held) return absl::OkStatus();
  if (held) {
    const std::vector<PodObject> pods = HomeOf(run).store().Facts(run.run_key).pods;
    const bool has_begun = std::any_of(pods.begin(), pods.end(),
                                       [](const PodObject& pod) { return !pod.node.empty(); });
    if (has_begun) return absl::OkStatus();
  }
  return ChangeJob((*job)->name, SuspendPatch((*job)->name.uid, held));
}

absl::Status KubernetesBackend::SetHeldInQueue(const JobObject& job, const v1::Assignment& run,
                                               bool held) {
  // What Kueue has let go has begun. If it does so in this moment, it refuses the change, and
  // whoever asks again finds that.
  if (!job.is_suspended) return absl::OkStatus();
  if (held) return ChangeJob(job.name, QueuePatch(job.name.uid, kHeldQueue));
  return Keep(SendOff(job, run));
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
