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
// A full cluster is given this wait for each time that its capacity is asked for. It only has to
// lie between "at once" and a long wait that a scheduler tells.
constexpr absl::Duration kUnknownWait = absl::Minutes(10);
// A pool with as many runs that queue has no room for others, whatever these need: a scheduler that
// keeps nodes free for a large run would let ever smaller ones queue.
constexpr uint32_t kMostQueueing = 32;
// A cluster whose nodes are not known gets as many runs beyond those that run there before the
// first of them starts, or is said to queue.
constexpr uint32_t kMostUnderWay = 64;

// Returns the part of the whole that is used; 2 if nothing is there to use.
double Part(uint64_t used, uint64_t whole) {
  return whole == 0 ? 2 : static_cast<double>(used) / static_cast<double>(whole);
}

// Returns the largest part of a resource of the pool that would be in use with the job there.
double UsedAfter(const Capacity& capacity, const Amounts& taken, const PoolUse& use,
                 const Amounts& need) {
  if (!capacity.knows_nodes) {
    const double runs = use.waiting + use.running + 1;
    return runs / (runs + 1);
  }
  double used = Part(taken.cpu_millis + need.cpu_millis, capacity.usable.cpu_millis);
  if (need.memory_bytes > 0 && capacity.usable.memory_bytes > 0) {
    used =
        std::max(used, Part(taken.memory_bytes + need.memory_bytes, capacity.usable.memory_bytes));
  }
  if (need.gpu_millis > 0) {
    used = std::max(used, Part(taken.gpu_millis + need.gpu_millis, capacity.usable.gpu_millis));
  }
  return used;
}

bool HasRoom(const Requirements& job, const Capacity& capacity, const Load& load,
             const PoolUse& use) {
  if (capacity.is_full || use.queueing >= kMostQueueing) return false;
  Amounts taken = use.amounts;
  const auto less = [](uint64_t amount, uint64_t* from) { *from -= std::min(*from, amount); };
  // Runs that name no type may have GPUs of other types than the job's: as many as these have left.
  uint64_t elsewhere = capacity.other_gpu_millis;
  less(use.other_gpu_millis, &elsewhere);
  if (!job.gpu_type.empty()) less(std::min(elsewhere, use.untyped_gpu_millis), &taken.gpu_millis);
  if (use.queueing > 0) {
    // Runs that queue have nothing yet. There is no room behind one that needs no more.
    const RoomNeed need = RoomNeedOf(job);
    bool is_behind = false;
    load.ForEachQueueing(
        *capacity.pool, capacity.shares_nodes, [&](const RoomNeed& other, uint32_t runs) {
          is_behind = is_behind || NeedsNoMore(other, need);
          const Amounts each = DemandOf(other);
          less(each.cpu_millis * runs, &taken.cpu_millis);
          less(each.memory_bytes * runs, &taken.memory_bytes);
          const bool counts =
              need.gpu_type.empty() || other.gpu_type.empty() || need.gpu_type == other.gpu_type;
          if (counts) less(each.gpu_millis * runs, &taken.gpu_millis);
        });
    if (is_behind) return false;
  }
  // If nodes are not known, runs that do not start are the only sign.
  if (!capacity.knows_nodes) return use.waiting < kMostUnderWay + use.running;
  return capacity.good_nodes >= job.nodes && UsedAfter(capacity, taken, use, DemandOf(job)) <= 1;
}

// Takes into account that room is kept for a job.
void Heed(const KeptRoom& kept, const Requirements& job, const Turn& turn, const Capacity& capacity,
          const Load& load, absl::Time now, Estimate* out) {
  if (turn.job == kept.job) {
    out->is_kept = !out->has_room;
    out->may_go = !capacity.is_full;
    return;
  }
  if (turn.priority > kept.priority || !out->may_go) return;
  const PoolUse use = load.UseOf(*capacity.pool, capacity.shares_nodes, kept.gpu_type);
  if (out->has_room && LeavesRoom(kept, job, use.amounts, now)) return;
  // A run that waits there could start before the one for which the room is kept.
  if (out->has_room) out->kept_for = kept.job;
  out->has_room = out->may_go = false;
}

}  // namespace

Estimate MakeEstimate(const Requirements& job, const Turn& turn, const Capacity& capacity,
                      const Load& load, absl::Time now) {
  Estimate out{.wait = kLongest, .order = kLongest};
  if (capacity.pool == nullptr) return out;
  const PoolUse use = load.UseOf(*capacity.pool, capacity.shares_nodes, job.gpu_type);
  const double used = UsedAfter(capacity, use.amounts, use, DemandOf(job));
  const size_t shape = ShapeOf(job);
  const std::optional<absl::Duration> with_room = load.waits[shape].WithRoom(now);
  out.used_after = used;
  out.has_room = HasRoom(job, capacity, load, use);
  const bool may_wait =
      use.waiting < load.PlacesToWait(now) || (job.is_array_task && capacity.takes_arrays);
  out.may_go = out.has_room || (!capacity.is_full && may_wait);
  if (const KeptRoom* kept = load.KeptIn(*capacity.pool, capacity.shares_nodes))
    Heed(*kept, job, turn, capacity, load, now, &out);
  out.wait = with_room.value_or(absl::ZeroDuration());
  out.is_known = out.has_room && (capacity.knows_nodes || with_room.has_value());
  out.order = out.wait;
  if (out.has_room) return out;
  if (out.is_kept) {
    // It goes where room is kept for it, whatever other clusters promise.
    const absl::Time start = load.KeptIn(*capacity.pool, capacity.shares_nodes)->start;
    out.is_known = start != absl::InfiniteFuture();
    if (out.is_known) out.wait = std::min(std::max(out.wait, start - now), kLongest);
    return out;
  }
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
