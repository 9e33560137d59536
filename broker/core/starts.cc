// Learns from the reports of runs when the next ones of a cluster will start.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "broker/core/impl.h"
#include "broker/core/timestamps.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::core {
namespace {

// True if others than this broker decide there which run is next: Slurm, Kueue, another broker.
bool HasOwnQueue(const PutCluster& cluster) {
  if (cluster.kind == v1::CLUSTER_KIND_SLURM || cluster.kind == v1::CLUSTER_KIND_MUSTER)
    return true;
  const auto& namespaces = cluster.inventory.admission().kubernetes().namespaces();
  return std::any_of(namespaces.begin(), namespaces.end(),
                     [](const v1::NamespaceFacts& one) { return one.queues().names_size() > 0; });
}

}  // namespace

void Core::Impl::NotePlaces(Cluster* cluster) const {
  cluster->has_own_queue = HasOwnQueue(cluster->saved);
  cluster->load.places_to_wait =
      cluster->has_own_queue ? options_.max_waiting_runs_per_pool : options_.sent_ahead_per_pool;
}

Core::Impl::RunLook Core::Impl::LookAt(const v1::Run& run) {
  RunLook look;
  look.has_ended = contract::IsTerminal(run.state());
  look.has_started = run.has_start_time();
  if (run.state() != v1::RUN_STATE_PENDING) return look;
  const v1::StateReasonCode code = run.state_reason().code();
  look.queues = code == v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES ||
                code == v1::STATE_REASON_CODE_WAITS_FOR_TURN ||
                code == v1::STATE_REASON_CODE_LIMIT_REACHED;
  return look;
}

void Core::Impl::NoteReport(Cluster* cluster, RunId id, const v1::Run& run, const RunLook& before,
                            absl::Time now) {
  // The job of a run that had ended may be gone.
  if (before.has_ended) return;
  const Requirements& job = groups_.at(jobs_.at(id.job).group)->requirements;
  const RunLook after = LookAt(run);
  placement::Load& load = cluster->load;
  if (before.queues != after.queues) {
    load.CountQueueing(job, after.queues);
    ++cluster->load_version;
    // A run that begins to queue leaves its room to jobs that fit into the gap.
    Open(cluster);
  }
  const size_t shape = placement::ShapeOf(job);
  absl::Time& told = load.told[shape];
  RunId& told_by = cluster->told_by[shape];
  // Later runs start later, as a rule.
  if (run.has_estimated_start_time()) {
    if (told == absl::InfinitePast() || told_by <= id) {
      told = ToTime(run.estimated_start_time());
      told_by = id;
    }
  } else if (told_by == id) {
    told = absl::InfinitePast();
  }
  const bool starts = after.has_started && !before.has_started;
  if (!starts && !after.has_ended) return;
  const auto place = cluster->places.find(id);
  if (starts) {
    load.starts.Add(now);
    const absl::Time start = ToTime(run.start_time());
    const absl::Duration wait = std::max(absl::ZeroDuration(), start - ToTime(run.assign_time()));
    if (place != cluster->places.end()) load.waits[shape].Add(wait, place->second, now);
    if (run.has_start_estimate())
      load.errors.Add(wait, start - ToTime(run.start_estimate().time()));
  }
  if (place != cluster->places.end()) cluster->places.erase(place);
}

absl::Status Core::Impl::CheckLoads() const {
  std::map<const Cluster*, placement::Load> loads;
  for (const auto& [id, job] : jobs_) {
    const Standing standing = StandingOf(id, job);
    if (standing.cluster == nullptr) continue;
    const Requirements& requirements = groups_.at(job.group)->requirements;
    loads[standing.cluster].Add(requirements, standing.phase);
    const auto run = standing.cluster->runs.find({id, job.runs()});
    if (run != standing.cluster->runs.end() && LookAt(*run->second).queues)
      loads[standing.cluster].CountQueueing(requirements, /*begins=*/true);
  }
  for (const auto& [name, cluster] : clusters_by_name_) {
    const auto wrong = [&name = name](std::string_view what) {
      return absl::InternalError(ToAbsl(fmt::format("cluster {} counts {} wrongly", name, what)));
    };
    if (loads[cluster].pools() != cluster->load.pools()) return wrong("the use of its pools");
    for (const auto& [id, place] : cluster->places) {
      const auto run = cluster->runs.find(id);
      if (run == cluster->runs.end() || run->second->has_start_time())
        return wrong("its waiting runs");
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::core
