#include "agents/kubernetes/cluster/obstacle.h"

#include <algorithm>

#include "agents/kubernetes/cluster/fitting.h"
#include "agents/kubernetes/cluster/namespace_limits.h"
#include "contract/gpu_share.h"

namespace muster::kubernetes {
namespace {

RunNeed RestOf(const agent::v1::Assignment& run, const KubernetesConfig& config, const Seen& seen,
               int64_t pods_there) {
  RunNeed need = NeedIn(run, config, seen);
  need.has_objects = true;
  need.pods = std::max<int64_t>(0, need.pods - pods_there);
  return need;
}

// Gives the pods the share of the nodes that their GPUs bring, as far as the job leaves cores or
// memory open.
void TakeGpuShare(const v1::Resources& asked, const KubernetesConfig& config, const Seen& seen,
                  RunNeed* need) {
  const bool is_open = asked.cpu_millis() == 0 || asked.memory_bytes() == 0;
  if (!config.default_gpu_share || need->gpu_resource.empty() || !is_open || !seen.knows_nodes)
    return;
  contract::GpuShare share(static_cast<uint64_t>(need->each.Gpus(need->gpu_resource)));
  for (const NodeRoom& room : seen.rooms) {
    const Amounts all = CapacityOf(room.node);
    if (all.Gpus(need->gpu_resource) == 0 || !Objections(*need, room.node).empty()) continue;
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

}  // namespace

RunNeed NeedIn(const agent::v1::Assignment& run, const KubernetesConfig& config, const Seen& seen) {
  RunNeed need = NeedOf(run, config);
  if (!need.gpu_type.empty()) need.gpu_type = SpellGpuType(need.gpu_type, seen.gpu_types, config);
  TakeGpuShare(run.spec().resources(), config, seen, &need);
  return need;
}

void LeaveRoom(const agent::v1::Assignment& run, const KubernetesConfig& config, Seen* seen) {
  LeaveLimits(run, config, seen);
  const auto placed = std::count_if(seen->pods.begin(), seen->pods.end(), [&](const PodUse& pod) {
    return !pod.run_key.empty() && pod.run_key == run.run_key() && !pod.node.empty();
  });
  Reserve(RestOf(run, config, *seen, placed), &seen->rooms);
}

void LeaveLimits(const agent::v1::Assignment& run, const KubernetesConfig& config, Seen* seen) {
  const auto made = std::count_if(seen->pods.begin(), seen->pods.end(), [&](const PodUse& pod) {
    return !pod.run_key.empty() && pod.run_key == run.run_key();
  });
  const RunNeed need = RestOf(run, config, *seen, made);
  if (SeenNamespace* space = seen->Find(need.name_space)) Keep(need, &space->quotas);
}

bool LeaveShares(const agent::v1::Assignment& run, const KubernetesConfig& config, Seen* seen) {
  const RunNeed need = NeedIn(run, config, *seen);
  if (!FitsBesideOthers(need, seen->rooms)) return false;
  LeaveLimits(run, config, seen);
  KeepShares(need, &seen->rooms);
  return true;
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
