#include <utility>

#include "broker/core/impl.h"
#include "broker/core/rerun_id.h"
#include "broker/core/sequences.h"

namespace muster::core {

Core::Impl::Impl(Options options, Restored restored)
    : options_(std::move(options)),
      instance_(std::move(restored.instance)),
      broker_epoch_(restored.broker_epoch + 1),
      next_job_id_(restored.next_job_id),
      next_sequence_(restored.next_sequence +
                     (restored.broker_epoch > 0 ? kSequencesForgotten : 0)),
      accounts_(options_.half_life),
      limits_(restored.limits != nullptr ? std::move(restored.limits)
                                         : std::make_shared<const contract::PlaceLimits>()) {
  clusters_.push_back(nullptr);
  accounts_.Restore(restored.uses);
  if (restored.shares != nullptr) accounts_.SetShares(std::move(restored.shares));
  RestoreClusters(std::move(restored.clusters));
  RestoreJobs(std::move(restored.requirements), restored.users, restored.jobs);
  RestoreRuns(std::move(restored.runs));
  RestoreRequests(restored.requests);
  for (const auto& [name, cluster] : clusters_by_name_)
    cluster->NoteWhetherFull(absl::InfinitePast());
}

void Core::Impl::RestoreClusters(std::vector<PutCluster> clusters) {
  for (PutCluster& saved : clusters) {
    Cluster* cluster = AddCluster(saved.name);
    cluster->last_heard = saved.last_seen;
    cluster->saved = std::move(saved);
    NotePlaces(cluster);
  }
}

Group* Core::Impl::RestoreGroup(const std::string& user, Requirements* requirements,
                                Group** latest) {
  // Most requirements are those of one user, and are not copied.
  if (*latest == nullptr) {
    *latest = GroupFor(std::move(*requirements), user);
  } else if (accounts_.NameOf((*latest)->user) != user) {
    *latest = GroupFor(Requirements((*latest)->requirements), user);
  }
  return *latest;
}

void Core::Impl::RestoreJobs(std::vector<Requirements> requirements,
                             const std::vector<std::string>& users,
                             const std::vector<LiveJob>& jobs) {
  const std::string none;
  std::vector<Group*> groups(requirements.size());
  for (const LiveJob& saved : jobs) {
    Job job(saved);
    submit_times_.Add(saved.id, saved.create_time);
    const std::string& user = saved.user < users.size() ? users[saved.user] : none;
    Group* group =
        RestoreGroup(user, &requirements[saved.requirements], &groups[saved.requirements]);
    job.group = group->id;
    ++group->jobs;
    if (saved.withdrawal && (job.withdrawn() || job.preempted()))
      withdrawals_.emplace(saved.id, *saved.withdrawal);
    if (saved.retry_time) retries_.Add(saved.id, absl::ToUnixMicros(*saved.retry_time));
    AwaitAgain(saved);
    jobs_.emplace_hint(jobs_.end(), saved.id, job);
    Recount(saved.id, job, Standing());
  }
  // A refused job leaves its group, which may end the group: all jobs have theirs by now.
  for (const LiveJob& saved : jobs) RestoreRefusals(saved);
}

void Core::Impl::RestoreRefusals(const LiveJob& saved) {
  if (saved.refusals.empty()) return;
  Job& job = jobs_.at(saved.id);
  RefusedJobs::Clusters clusters = saved.refusals;
  std::vector<std::string> names;
  for (const contract::RefusingCluster& one : clusters) names.push_back(one.cluster);
  // Without another cluster such a job has waited for a retry.
  if (!CouldGoElsewhere(groups_.at(job.group)->requirements, names, absl::InfinitePast()))
    std::erase_if(clusters, [](const contract::RefusingCluster& one) { return one.passes; });
  // The first tick tells the time, and ends what is over.
  refused_.Put(saved.id, std::move(clusters), absl::InfinitePast());
  RuleOut(saved.id, job, absl::InfinitePast());
}

void Core::Impl::RestoreRuns(std::vector<PutRun> runs) {
  for (PutRun& saved : runs) {
    Cluster* cluster = FindCluster(saved.run.cluster());
    if (cluster == nullptr) cluster = AddCluster(saved.run.cluster());
    const RunId id{saved.job, saved.run.number()};
    auto job = jobs_.find(saved.job);
    if (job != jobs_.end() && job->second.is_on_cluster() && job->second.runs() == id.number) {
      const Standing before = StandingOf(id.job, job->second);
      job->second.FindCluster(cluster->index);
      Recount(id.job, job->second, before);
    }
    const bool queues = job != jobs_.end() && LookAt(saved.run).queues;
    if (queues)
      cluster->load.CountQueueing(groups_.at(job->second.group)->requirements, /*begins=*/true);
    cluster->runs.emplace(id, std::make_unique<v1::Run>(std::move(saved.run)));
  }
}

void Core::Impl::RestoreRequests(const std::vector<RememberedRequest>& requests) {
  for (const RememberedRequest& saved : requests) {
    if (IsOtherOfRerun(saved.request_id)) continue;
    const std::string_view project =
        IsFirstOfRerun(saved.request_id) ? std::string_view() : saved.project;
    const RequestMemory::Slot slot =
        requests_.Add({RequestKeyOf(project, saved.request_id), saved.fingerprint, saved.job});
    auto job = jobs_.find(saved.job);
    if (job != jobs_.end()) {
      job->second.request = slot;
    } else {
      requests_.JobEnded(slot, saved.end_time.value_or(absl::UnixEpoch()));
    }
  }
}

}  // namespace muster::core
