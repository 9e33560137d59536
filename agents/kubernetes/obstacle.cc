#include "agents/kubernetes/obstacle.h"

#include <algorithm>

#include "agents/kubernetes/namespace_limits.h"

namespace muster::kubernetes {

void LeaveRoom(const v1::Assignment& run, const KubernetesConfig& config, Seen* seen) {
  int64_t made = 0;
  int64_t placed = 0;
  for (const PodUse& pod : seen->pods) {
    if (pod.run_key.empty() || pod.run_key != run.run_key()) continue;
    ++made;
    if (!pod.node.empty()) ++placed;
  }
  RunNeed need = NeedOf(run, config);
  need.has_objects = true;
  const int64_t pods = need.pods;
  need.pods = std::max<int64_t>(0, pods - made);
  Keep(need, &seen->quotas);
  need.pods = std::max<int64_t>(0, pods - placed);
  Reserve(need, &seen->rooms);
}

std::optional<Misfit> FindObstacle(const RunNeed& need, const Seen& seen) {
  std::optional<Misfit> limit = FindLimit(need, seen.quotas, seen.ranges);
  if ((limit.has_value() && limit->is_final) || !seen.knows_nodes) return limit;
  std::optional<Misfit> misfit = FindMisfit(need, seen.rooms);
  return misfit.has_value() ? misfit : limit;
}

}  // namespace muster::kubernetes
