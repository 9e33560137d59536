#include "broker/core/placement/estimate.h"

#include <algorithm>
#include <cmath>

#include "broker/core/timestamps.h"

namespace muster::core::placement {
namespace {

// Below this all waits are alike: agents look at their clusters every few seconds.
constexpr absl::Duration kAtOnce = absl::Seconds(5);
// Each step of a rank is so much longer than the one before.
constexpr double kStep = 1.25;
// A longer wait is as bad as this one.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);
// The wait that a full cluster is given for each time that its capacity is asked for: it only has
// to lie between "at once" and a long wait that a scheduler tells.
constexpr absl::Duration kUnknownWait = absl::Minutes(10);

// Returns the part of the whole that is used; 2 if nothing is there to use.
double Part(uint64_t used, uint64_t whole) {
  return whole == 0 ? 2 : static_cast<double>(used) / static_cast<double>(whole);
}

// The largest part of a resource of the pool that would be in use with the job there.
double UsedAfter(const Capacity& capacity, const PoolUse& use, const Amounts& need) {
  if (!capacity.knows_nodes) {
    const double runs = use.waiting + use.running + 1;
    return runs / (runs + 1);
  }
  double used = Part(use.amounts.cpu_millis + need.cpu_millis, capacity.usable.cpu_millis);
  if (need.memory_bytes > 0 && capacity.usable.memory_bytes > 0) {
    used = std::max(
        used, Part(use.amounts.memory_bytes + need.memory_bytes, capacity.usable.memory_bytes));
  }
  if (need.gpu_millis > 0) {
    used =
        std::max(used, Part(use.amounts.gpu_millis + need.gpu_millis, capacity.usable.gpu_millis));
  }
  return used;
}

bool HasRoom(const Requirements& job, const Capacity& capacity, const PoolUse& use, double used) {
  if (use.queueing > 0 || capacity.is_full) return false;
  // A run that waits is the only sign where nodes are not known.
  if (!capacity.knows_nodes) return use.waiting == 0;
  return capacity.good_nodes >= job.nodes && used <= 1;
}

}  // namespace

Estimate MakeEstimate(const Requirements& job, const Capacity& capacity, const Load& load,
                      absl::Time now) {
  Estimate out{.wait = kLongest, .order = kLongest};
  if (capacity.pool == nullptr) return out;
  const PoolUse use = load.UseOf(*capacity.pool, capacity.shares_nodes, job.gpu_type);
  const double used = UsedAfter(capacity, use, DemandOf(job));
  const size_t shape = ShapeOf(job);
  const std::optional<absl::Duration> with_room = load.waits[shape].WithRoom(now);
  out.used_after = used;
  out.has_room = HasRoom(job, capacity, use, used);
  out.wait = with_room.value_or(absl::ZeroDuration());
  out.is_known = out.has_room && (capacity.knows_nodes || with_room.has_value());
  out.order = out.wait;
  if (out.has_room) return out;
  out.places = use.waiting + 1;
  const std::optional<absl::Duration> for_a_place = load.waits[shape].ForAPlace(now);
  const bool is_told = load.told[shape] > now;
  out.is_known = for_a_place.has_value() || is_told;
  // A cluster without room is never earlier than with room, so that a rank only falls as runs come.
  const absl::Duration by_demand = kUnknownWait * std::max(1.0, used);
  const absl::Duration told = is_told ? load.told[shape] - now : absl::ZeroDuration();
  out.order = std::min(std::max(out.order, is_told ? told : by_demand), kLongest);
  if (for_a_place) out.wait = std::max(out.wait, *for_a_place * out.places);
  out.wait = std::max(out.wait, out.is_known ? told : by_demand);
  out.wait = std::min(out.wait, kLongest);
  return out;
}

Rank RankOf(const Estimate& estimate) {
  Rank rank{.used_after = estimate.used_after};
  if (estimate.order <= kAtOnce) return rank;
  const double times = absl::FDivDuration(estimate.order, kAtOnce);
  rank.wait_step = 1 + static_cast<int32_t>(std::floor(std::log(times) / std::log(kStep)));
  return rank;
}

std::optional<v1::StartEstimate> ToShow(const Estimate& estimate, const Load& load,
                                        absl::Time now) {
  if (!estimate.is_known) return std::nullopt;
  v1::StartEstimate out;
  SetTimestamp(now + estimate.wait, out.mutable_time());
  load.errors.PutInterval(now, &out);
  return out;
}

}  // namespace muster::core::placement
