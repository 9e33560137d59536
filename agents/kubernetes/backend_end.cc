// Ends runs.
#include <utility>

#include "agents/kubernetes/backend.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

using agents::RunHandle;

std::vector<absl::Status> KubernetesBackend::End(const std::vector<RunHandle>& runs) {
  return agents::OneByOne(runs, [this](const RunHandle& run) { return EndOne(run); });
}

absl::Status KubernetesBackend::EndOne(const RunHandle& run) {
  {
    const MutexLock lock(mutex_);
    canceled_.insert(run.run_key);
  }
  queue_.Remove(run.run_key);
  const absl::StatusOr<std::optional<JobObject>> job = FindJob(NamespaceOf(run), run.run_key);
  if (!job.ok()) return job.status();
  if (!job->has_value()) return absl::OkStatus();
  // A Job that has ended keeps its own end.
  if ((*job)->HasEnded()) return absl::OkStatus();
  return calls_.DeleteJob((*job)->name);
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
