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
  for (const auto& [turn, shape] : lane.waiting) {
    if (shape->lane != &lane) return Wrong("shape {} is listed in a lane not its own", shape->id);
    if (shape->listed != turn) return Wrong("shape {} is listed at another turn", shape->id);
    if (shape->queue.empty() || shape->queue.front() != turn) {
      return Wrong("shape {} is listed with job {}, which is not its first", shape->id, turn.job);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Core::Impl::CheckInvariants() const {
  uint64_t queued = 0, active = 0, in_line = 0, waiting = 0;
  absl::flat_hash_map<uint32_t, uint64_t> by_shape;
  absl::flat_hash_map<const Cluster*, uint32_t> held;
  for (const auto& [id, job] : jobs_) {
    ++by_shape[job.shape];
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
  shapes_.ForEach([&](const Shape* shape) {
    in_queues += shape->queue.size();
    if (shape->jobs != by_shape[shape->id]) status = Wrong("shape {} counts wrongly", shape->id);
    if (shape->lane == nullptr) status = Wrong("shape {} has no lane", shape->id);
    if (shape->listed.has_value() == shape->queue.empty()) {
      status = Wrong("shape {} waits and is not listed, or the reverse", shape->id);
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
