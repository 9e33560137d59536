// Forgets runs, and removes what is left of them if that failed or nobody was there for it.
#include <algorithm>
#include <utility>

#include "agents/kubernetes/backend.h"
#include "contract/issues.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// One sweep takes at most so many; there is one with each inventory.
constexpr size_t kMaxSwept = 100;
}  // namespace

std::vector<absl::Status> KubernetesBackend::Forget(const std::vector<agents::RunHandle>& runs) {
  return agents::OneByOne(runs, [this](const agents::RunHandle& run) { return ForgetOne(run); });
}

absl::Status KubernetesBackend::ForgetOne(const agents::RunHandle& run) {
  queue_.Remove(run.run_key);
  file_room_.Leave(run.run_key);
  given_up_.Forget(run.run_key);
  ForgetChanges(run.run_key);
  {
    const MutexLock lock(mutex_);
    canceled_.erase(run.run_key);
  }
  NamespaceRuns& home = HomeOf(run);
  const std::optional<Leftover> left = home.store().Forget(run.run_key);
  // After the store, which names its pods to the follower until then.
  logs_.Forget(run.run_key);
  if (left.has_value()) return CleanUpAfter(*left);
  if (home.IsUnmade(run.run_key)) {
    home.ForgetUnmade(run.run_key);
    return absl::OkStatus();
  }
  // A Job that the watch has not listed yet may be there all the same.
  if (&home == &nowhere_ || home.state().ok()) return absl::OkStatus();
  const absl::StatusOr<std::optional<JobObject>> job =
      calls_.FindRun(NamespaceOf(run), run.run_key);
  const std::vector<std::string>& own = config_.namespaces;
  // The Job is left to its time to live if its namespace was taken out of the agent's settings, and
  // the rights there: nobody would give them back.
  if (absl::IsPermissionDenied(job.status()) &&
      std::find(own.begin(), own.end(), home.name()) == own.end())
    return absl::OkStatus();
  if (!job.ok()) return job.status();
  if (!job->has_value()) return absl::OkStatus();
  return CleanUpAfter({**job, CleanUpOf(**job, /*was_let_go=*/true, api_.ServerTime())});
}

absl::Status KubernetesBackend::CleanUpAfter(const Leftover& leftover) {
  const JobObject& job = leftover.job;
  if (leftover.due == CleanUp::kDelete) return calls_.DeleteJob(job.name);
  if (leftover.due != CleanUp::kLowerTimeToLive) return absl::OkStatus();
  const int64_t seconds = job.final_time_to_live.value_or(kDefaultTimeToLiveSeconds);
  const absl::Status status =
      calls_.PatchJob(job.name, TimeToLivePatch(job.name.uid, seconds)).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

bool KubernetesBackend::IsOwn(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  return instances_.contains(run_key.substr(0, run_key.find('-')));
}

std::optional<v1::ClusterIssue> KubernetesBackend::Sweep() {
  std::vector<std::string> unknown;
  size_t swept = 0;
  for (const auto& [name_space, home] : homes_) {
    for (const Leftover& leftover : home->store().FindLeftovers(api_.ServerTime())) {
      const ObjectName& name = leftover.job.name;
      // Another broker's agent may share the namespace.
      if (!IsOwn(name.run_key)) continue;
      if (leftover.due == CleanUp::kTell) {
        unknown.push_back(name_space + "/" + name.name);
        continue;
      }
      if (swept == kMaxSwept) continue;
      ++swept;
      if (const absl::Status done = CleanUpAfter(leftover); !done.ok()) {
        failures_.Note("clean_up_failed", name.run_key, done);
        swept = kMaxSwept;  // the server is in trouble: next time
      } else {
        failures_.Forget(name.run_key);
      }
    }
  }
  if (unknown.empty()) return std::nullopt;
  return contract::UnknownRuns(unknown);
}

}  // namespace muster::kubernetes
