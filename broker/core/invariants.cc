#include <fmt/format.h>

#include "broker/core/impl.h"
#include "broker/core/run_stage.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::core {
namespace {

template <typename... Args>
absl::Status Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InternalError(ToAbsl(fmt::format(format, std::forward<Args>(args)...)));
}

absl::Status CheckLane(const Lane& lane) {
  for (const auto& [turn, group] : lane.waiting) {
    if (group->lane != &lane) return Wrong("group {} is listed in a lane not its own", group->id);
    if (group->listed != turn) return Wrong("group {} is listed at another turn", group->id);
    if (group->line.empty() || group->line.front() != turn) {
      return Wrong("group {} is listed with job {}, which is not its first", group->id, turn.job);
    }
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
    if (job.state() == v1::JOB_STATE_QUEUED) {
      ++queued;
      if (IsReady(id, job)) ++in_line;
      if (retries_.TimeOf(id)) ++waiting;
      if (job.cancel_requested) return Wrong("job {} is queued though it was canceled", id);
      continue;
    }
    ++active;
    if (job.cluster == 0) return Wrong("job {} is active without a cluster", id);
    const Cluster& cluster = *clusters_[job.cluster];
    if (job.held()) ++held[&cluster];
    auto run = cluster.runs.find({id, job.runs});
    if (run == cluster.runs.end()) return Wrong("job {} is active without its run", id);
    if (JobStateFor(*run->second, job.cancel_requested) != job.state()) {
      return Wrong("job {} is in another state than its run", id);
    }
  }
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
    if (cluster->session) {
      auto session = sessions_.find(*cluster->session);
      if (session == sessions_.end() || session->second != cluster) {
        return Wrong("cluster {} has a session that is not known", name);
      }
    }
    running += on_cluster;
  }
  if (running != active) return Wrong("{} runs are active for {} active jobs", running, active);
  if (queued != queued_) return Wrong("{} jobs are queued, counted {}", queued, queued_);
  uint64_t in_queues = 0;
  absl::Status status;
  groups_.ForEach([&](const Group* group) {
    in_queues += group->line.size();
    if (group->jobs == 0 || group->jobs != by_group[group->id])
      status = Wrong("group {} counts wrongly", group->id);
    if (group->lane == nullptr) status = Wrong("group {} has no lane", group->id);
    if (group->listed.has_value() == group->line.empty()) {
      status = Wrong("group {} waits and is not listed, or the reverse", group->id);
    }
  });
  lanes_.ForEach([&](const Lane* lane) { status.Update(CheckLane(*lane)); });
  if (!status.ok()) return status;
  if (in_queues != in_line) {
    return Wrong("{} jobs stand in queues, {} are ready", in_queues, in_line);
  }
  if (waiting != retries_.size()) {
    return Wrong("{} jobs wait for another run, {} times are kept", waiting, retries_.size());
  }
  return absl::OkStatus();
}

}  // namespace muster::core
