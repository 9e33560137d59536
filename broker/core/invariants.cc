#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::core {
namespace {

template <typename... Args>
absl::Status Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InternalError(ToAbsl(fmt::format(format, std::forward<Args>(args)...)));
}

absl::Status CheckGroup(const Group& group) {
  if (group.queue == nullptr) return Wrong("group {} has no lane", group.id);
  const UserQueue& queue = *group.queue;
  const auto project = queue.project->lane->projects.find(group.requirements.project);
  if (project == queue.project->lane->projects.end() || &project->second != queue.project) {
    return Wrong("group {} is in a project not its own", group.id);
  }
  if (queue.account->user != group.user || queue.gpus != GpuDemandOf(group.requirements) ||
      *queue.need != placement::RoomClassOf(group.requirements) ||
      queue.account->project->name != group.requirements.project) {
    return Wrong("group {} is in a queue not its own", group.id);
  }
  if (group.listed.has_value() == group.line.empty()) {
    return Wrong("group {} waits and is not listed, or the reverse", group.id);
  }
  return absl::OkStatus();
}

absl::Status CheckQueue(const UserQueue& queue, const ProjectQueue& project) {
  const std::string& name = project.account->name;
  if (queue.project != &project) return Wrong("a queue of project {} is listed elsewhere", name);
  const bool may_wait = !queue.waiting.empty() && queue.parked_by == nullptr;
  if (queue.listed.has_value() != may_wait) {
    return Wrong("a queue of project {} waits and is not listed, or the reverse", name);
  }
  if (queue.listed) {
    const Turn first = queue.first_turn();
    const UserTurn right{first.priority, queue.account->score, first.job};
    const auto& list = queue.is_blocked ? project.blocked.waiting : project.open.waiting;
    const auto listed = list.find(*queue.listed);
    if (queue.listed != right || listed == list.end() || listed->second != &queue) {
      return Wrong("a queue of project {} is not listed at its turn", name);
    }
  }
  const auto& parked = queue.parked_by;
  if (parked != nullptr && std::count(parked->parked.begin(), parked->parked.end(), &queue) != 1)
    return Wrong("a queue of project {} is parked, and its account does not know", name);
  const auto& queues = queue.account->queues;
  if (std::count(queues.begin(), queues.end(), &queue) != 1)
    return Wrong("a queue of project {} is not known to its account", name);
  for (const auto& [turn, group] : queue.waiting) {
    if (group->queue != &queue)
      return Wrong("group {} is listed in a queue not its own", group->id);
    if (group->listed != turn) return Wrong("group {} is listed at another turn", group->id);
    if (group->line.empty() || group->line.front() != turn) {
      return Wrong("group {} is listed with job {}, which is not its first", group->id, turn.job);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLane(const Lane& lane) {
  for (const auto& [name, project] : lane.projects) {
    if (project.lane != &lane) return Wrong("project {} is in a lane not its own", name);
    size_t waiting = 0;
    for (const auto& [key, queue] : project.queues) {
      if (absl::Status status = CheckQueue(queue, project); !status.ok()) return status;
      if (queue.listed) ++waiting;
    }
    if (waiting != project.open.waiting.size() + project.blocked.waiting.size())
      return Wrong("project {} lists too much", name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Core::Impl::CheckInvariants() const {
  uint64_t queued = 0, active = 0, in_line = 0, waiting = 0;
  absl::flat_hash_map<uint32_t, uint64_t> by_group;
  absl::flat_hash_map<const Cluster*, uint32_t> held;
  for (const auto& [id, job] : jobs_) {
    ++by_group[job.group];
    if (id >= next_job_id_) return Wrong("job {} is not below the next id {}", id, next_job_id_);
    if (contract::IsTerminal(job.state())) return Wrong("job {} has ended and is in memory", id);
    if (job.is_queued()) {
      ++queued;
      if (IsReady(id, job)) ++in_line;
      if (retries_.TimeOf(id)) ++waiting;
      continue;
    }
    ++active;
    if (job.cluster() == 0) return Wrong("job {} is active without a cluster", id);
    const Cluster& cluster = *clusters_[job.cluster()];
    if (job.held()) ++held[&cluster];
    auto run = cluster.runs.find({id, job.runs()});
    if (run == cluster.runs.end()) return Wrong("job {} is active without its run", id);
    // The run's state must imply no further change of its job.
    if (contract::Next(job.stage(), JobEventOf(*run->second, false)) != job.stage()) {
      return Wrong("job {} is in another state than its run", id);
    }
  }
  const auto refused = std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& each) {
    return refused_.Find(each.first) != nullptr;
  });
  if (static_cast<size_t>(refused) != refused_.size())
    return Wrong("{} jobs were refused, {} are known", refused, refused_.size());
  const auto withdrawn = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& each) {
    return each.second.withdrawn() || each.second.preempted();
  });
  if (static_cast<size_t>(withdrawn) != withdrawals_.size())
    return Wrong("{} runs are to come back, {} are known", withdrawn, withdrawals_.size());
  uint64_t running = 0;
  for (const auto& [name, cluster] : clusters_by_name_) {
    uint64_t on_cluster = 0;
    for (const auto& [id, run] : cluster->runs) {
      if (!contract::IsTerminal(run->state())) ++on_cluster;
      if (run->cluster() != name) return Wrong("run {} is on another cluster", run->run_key());
    }
    if (on_cluster != cluster->active) {
      return Wrong("cluster {} counts {} active runs, it has {}", name, cluster->active,
                   on_cluster);
    }
    if (held[cluster] != cluster->held) {
      return Wrong("cluster {} counts {} held runs, it has {}", name, cluster->held, held[cluster]);
    }
    if (absl::Status shown = CheckShown(*cluster); !shown.ok()) return shown;
    if (cluster->session) {
      auto session = sessions_.find(*cluster->session);
      if (session == sessions_.end() || session->second != cluster) {
        return Wrong("cluster {} has a session that is not known", name);
      }
    }
    running += on_cluster;
  }
  if (absl::Status status = CheckLoads(); !status.ok()) return status;
  if (absl::Status status = CheckKept(); !status.ok()) return status;
  if (running != active) return Wrong("{} runs are active for {} active jobs", running, active);
  if (queued != queued_) return Wrong("{} jobs are queued, counted {}", queued, queued_);
  if (absl::Status status = CheckWaiting(in_line, by_group); !status.ok()) return status;
  if (absl::Status status = CheckDependencies(); !status.ok()) return status;
  if (absl::Status status = CheckAccounts(); !status.ok()) return status;
  if (waiting != retries_.size()) {
    return Wrong("{} jobs wait for another run, {} times are kept", waiting, retries_.size());
  }
  return absl::OkStatus();
}

absl::Status Core::Impl::CheckWaiting(
    uint64_t in_line, const absl::flat_hash_map<uint32_t, uint64_t>& by_group) const {
  uint64_t in_lines = 0;
  absl::Status status;
  groups_.ForEach([&](const Group* group) {
    in_lines += group->line.size();
    const auto jobs = by_group.find(group->id);
    if (jobs == by_group.end() || jobs->second != group->jobs) {
      status.Update(Wrong("group {} counts wrongly", group->id));
    }
    status.Update(CheckGroup(*group));
    status.Update(CheckLaneOf(*group));
  });
  waiting_.ForEachLane([&](const Lane* lane) { status.Update(CheckLane(*lane)); });
  if (!status.ok()) return status;
  if (in_lines != in_line) return Wrong("{} jobs stand in lines, {} are ready", in_lines, in_line);
  return absl::OkStatus();
}

absl::Status Core::Impl::CheckAccounts() const {
  std::map<std::string, JobTally> projects;
  std::map<const UserAccount*, JobTally> users;
  for (const auto& [id, job] : jobs_) {
    const Group& group = *groups_.at(job.group);
    const GpuDemand gpus = GpuDemandOf(group.requirements);
    for (JobTally* jobs : {&projects[group.requirements.project], &users[group.queue->account]}) {
      if (job.is_queued()) ++jobs->queued;
      // After a restart a run's cluster is found with the run.
      if (!job.is_on_cluster() || job.cluster() == 0) continue;
      ++jobs->active;
      if (gpus.millis > 0) jobs->gpu_millis[""] += gpus.millis;
      if (gpus.millis > 0 && !gpus.type.empty()) jobs->gpu_millis[gpus.type] += gpus.millis;
    }
  }
  absl::Status status;
  accounts_.ForEachProject([&](const ProjectAccount& project) {
    if (project.jobs != projects[project.name])
      status.Update(Wrong("project {} counts its jobs wrongly", project.name));
    for (const auto& [user, account] : project.users) {
      if (account->jobs != users[account.get()])
        status.Update(Wrong("a user of project {} counts jobs wrongly", project.name));
    }
  });
  return status;
}

absl::Status Core::Impl::CheckLaneOf(const Group& group) const {
  const ClusterSet& in_lane = group.lane()->fits;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (Refits::IsStale(group, *cluster)) continue;
    const bool is_in = std::find(in_lane.begin(), in_lane.end(), cluster) != in_lane.end();
    if (CheckFit(group.requirements, cluster->saved, *limits_).now() != is_in) {
      return Wrong("group {} is in a lane that is wrong about cluster {}", group.id, name);
    }
  }
  for (const Cluster* cluster : in_lane) {
    if (!Refits::IsStale(group, *cluster) && FindCluster(cluster->name()) != cluster) {
      return Wrong("group {} is in a lane of cluster {}, which is forgotten", group.id,
                   cluster->name());
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::core
