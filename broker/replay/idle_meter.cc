#include "broker/replay/idle_meter.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace muster::replay {
namespace {

// Jobs beyond these are as good as alike: after so many, what is free is full.
constexpr size_t kMaxLookedAt = 1000;

}  // namespace

void IdleMeter::Count(absl::Duration now, absl::Duration until, const std::set<size_t>& waiting,
                      const Trace& trace, const std::vector<ReplayCluster>& clusters) {
  if (until <= now || waiting.empty()) return;
  std::vector<Nodes> nodes;
  for (const ReplayCluster& cluster : clusters) nodes.push_back(cluster.nodes());
  absl::flat_hash_set<Shape> too_large;
  uint64_t gpu_millis = 0;
  size_t looked_at = 0;
  for (const size_t index : waiting) {
    const TraceJob& job = trace.jobs[index];
    if (++looked_at > kMaxLookedAt) break;
    if (job.gpu_millis == 0) continue;
    Shape shape = ShapeOf(job);
    if (too_large.contains(shape)) continue;
    const bool fits = std::any_of(nodes.begin(), nodes.end(),
                                  [&](Nodes& of) { return of.Take(job).has_value(); });
    if (fits) {
      gpu_millis += job.gpu_millis * job.nodes;
    } else {
      too_large.insert(std::move(shape));
    }
  }
  gpu_seconds_ += static_cast<double>(gpu_millis) / 1000 * absl::ToDoubleSeconds(until - now);
}

}  // namespace muster::replay
