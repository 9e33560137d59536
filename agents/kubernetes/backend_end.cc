// Ends runs, and proves that they are over.
#include <utility>

#include "agents/kubernetes/backend.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

using agents::FenceOutcome;
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

// A launch makes one object after the other: the Job first, suspended, and last the Secret for
// which its pods wait. So a request that is still on its way can make no more than a Job that never
// begins, and the sweep removes it.
FenceOutcome KubernetesBackend::Fence(const RunHandle& run) {
  using Kind = FenceOutcome::Kind;
  const auto not_yet = [](std::string why) {
    return FenceOutcome{Kind::kNotYet, MakeEvidence(std::move(why))};
  };
  const auto unanswered = [&](const absl::Status& status) {
    return not_yet(std::string(ToStd(status.message())));
  };
  const absl::StatusOr<std::optional<JobObject>> job = FindLaunched(run);
  if (!job.ok()) return unanswered(job.status());
  if (job->has_value() && !(*job)->HasEnded())
    return not_yet(fmt::format("Job {} is there, and has not ended", (*job)->name.name));
  bool has_begun = job->has_value();
  for (const std::string& name_space : PlacesOf(run)) {
    const absl::StatusOr<std::vector<PodObject>> pods = calls_.ListPods(name_space, run.run_key);
    // A namespace that is missing has no rights either, nor pods.
    if (absl::IsPermissionDenied(pods.status()) && HomeOf(name_space).IsMissing()) continue;
    if (!pods.ok()) return unanswered(pods.status());
    has_begun = has_begun || !pods->empty();
    for (const PodObject& pod : *pods) {
      if (!pod.HasEnded())
        return not_yet(fmt::format("pod {} of the run has not ended", pod.name.name));
    }
  }
  if (const absl::Status same = ConfirmCluster(); !same.ok()) return unanswered(same);
  if (has_begun) {
    return {Kind::kEnded,
            MakeEvidence(fmt::format("what there is of Job {} has ended", run.run_key))};
  }
  queue_.Remove(run.run_key);
  return {Kind::kNeverBegins,
          MakeEvidence(fmt::format("the API server has neither a Job {} of Muster's nor a pod of "
                                   "it; one that came late would never get its Secret",
                                   run.run_key))};
}

absl::Status KubernetesBackend::ChangeJob(const ObjectName& job, const Json& patch) {
  absl::StatusOr<JobObject> patched = calls_.PatchJob(job, patch);
  if (absl::IsNotFound(patched.status())) return absl::OkStatus();
  if (!patched.ok()) return patched.status();
  HomeOf(job.name_space).store().Put(*std::move(patched));
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
