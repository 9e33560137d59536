#include "agents/kubernetes/cluster/obstacle.h"

#include <algorithm>
#include <utility>

#include "agents/kubernetes/cluster/fitting.h"
#include "agents/kubernetes/cluster/namespace_limits.h"
#include "contract/gpu_share.h"

namespace muster::kubernetes {
namespace {

// Gives the pods the share of the nodes that their GPUs bring, as far as the job leaves cores or
// memory open.
void TakeGpuShare(const v1::Resources& asked, const KubernetesConfig& config, const Seen& seen,
                  RunNeed* need) {
  const bool is_open = asked.cpu_millis() == 0 || asked.memory_bytes() == 0;
  if (!config.default_gpu_share || need->gpu_resource.empty() || !is_open || !seen.knows_nodes)
    return;
  contract::GpuShare share(static_cast<uint64_t>(need->each.Gpus(need->gpu_resource)));
  for (const NodeRoom& room : seen.rooms) {
    const Amounts& all = *room.all;
    if (all.Gpus(need->gpu_resource) == 0 || !Objections(*need, *room.node).empty()) continue;
    share.AddNode(static_cast<uint64_t>(all.cpu_millis), static_cast<uint64_t>(all.memory_bytes),
                  static_cast<uint64_t>(all.Gpus(need->gpu_resource)));
  }
  if (const SeenNamespace* space = seen.Find(need->name_space))
    AddLimits(*need, space->quotas, space->ranges, &share);
  if (asked.cpu_millis() == 0) {
    need->each.cpu_millis = static_cast<int64_t>(share.CpuMillis(config.default_cpu_millis));
  }
  if (asked.memory_bytes() == 0) {
    need->each.memory_bytes = static_cast<int64_t>(share.MemoryBytes(config.default_memory_bytes));
  }
}

class Left final : public RoomLeft {
 public:
  Left(const KubernetesConfig& config, Seen seen) : config_(config), seen_(std::move(seen)) {}

  std::optional<Misfit> WaitsFor(const agent::v1::Assignment& run) const override {
    return FindObstacle(NeedOfWaiting(run), seen_);
  }
  bool Leave(const Claim& claim) override {
    const RunNeed need = NeedOfWaiting(*claim.run);
    if (claim.is_limited) {
      LeaveLimits(need, &seen_);
    } else if (claim.has_waited_long) {
      return LeaveShares(need, &seen_);
    } else {
      LeaveRoom(need, {need.pods, need.pods}, &seen_);
    }
    return true;
  }

 private:
  RunNeed NeedOfWaiting(const agent::v1::Assignment& run) const {
    RunNeed need = NeedIn(run, config_, seen_);
    need.has_objects = true;
    return need;
  }

  const KubernetesConfig& config_;
  Seen seen_;
};

}  // namespace

RunNeed NeedIn(const agent::v1::Assignment& run, const KubernetesConfig& config, const Seen& seen) {
  RunNeed need = NeedOf(run, config);
  if (!need.gpu_type.empty()) need.gpu_type = SpellGpuType(need.gpu_type, seen.gpu_types, config);
  TakeGpuShare(run.spec().resources(), config, seen, &need);
  return need;
}

void PodsToCome::Add(const RunNeed& need, PodsThere there) {
  unmade += std::max<int64_t>(0, need.pods - there.made);
  unplaced += std::max<int64_t>(0, need.pods - there.placed);
}

void LeaveRoom(const RunNeed& need, PodsToCome pods, Seen* seen) {
  RunNeed rest = need;
  rest.pods = pods.unmade;
  LeaveLimits(rest, seen);
  rest.pods = pods.unplaced;
  Reserve(rest, &seen->rooms);
}

void LeaveLimits(const RunNeed& need, Seen* seen) {
  if (SeenNamespace* space = seen->Find(need.name_space)) Keep(need, &space->quotas);
}

bool LeaveShares(const RunNeed& need, Seen* seen) {
  if (!FitsBesideOthers(need, seen->rooms)) return false;
  LeaveLimits(need, seen);
  KeepShares(need, &seen->rooms);
  return true;
}

std::unique_ptr<RoomLeft> RoomBehind(const std::vector<Alike>& starting,
                                     const std::function<PodsThere(const std::string&)>& pods_of,
                                     const KubernetesConfig& config, Seen seen) {
  for (const Alike& runs : starting) {
    RunNeed need = NeedIn(*runs.front(), config, seen);
    need.has_objects = true;
    PodsToCome pods;
    for (const auto& run : runs) {
      pods.Add(need, pods_of(run->run_key()));
      // Each run has its own nodes for its pods, which may be the same as those of the next run.
      if (need.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED)
        LeaveRoom(need, std::exchange(pods, {}), &seen);
    }
    LeaveRoom(need, pods, &seen);
  }
  return std::make_unique<Left>(config, std::move(seen));
}

std::optional<Misfit> FindObstacle(const RunNeed& need, const Seen& seen) {
  const SeenNamespace* space = seen.Find(need.name_space);
  std::optional<Misfit> limit;
  if (space != nullptr) limit = FindLimit(need, space->quotas, space->ranges);
  if (limit.has_value()) limit->is_limited = true;
  if ((limit.has_value() && limit->is_final) || !seen.knows_nodes) return limit;
  std::optional<Misfit> misfit = FindMisfit(need, seen.rooms);
  if (!misfit.has_value() || (misfit->is_behind && limit.has_value())) return limit;
  misfit->is_limited = limit.has_value();
  return misfit;
}

}  // namespace muster::kubernetes
