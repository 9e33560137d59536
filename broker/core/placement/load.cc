#include "broker/core/placement/load.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "broker/core/amounts.h"
#include "contract/text.h"

namespace muster::core::placement {
namespace {

// Returns the pool that counts the run: the first one that its job names.
std::string_view PoolOf(const Requirements& job) {
  return job.pools.empty() ? std::string_view() : std::string_view(job.pools.front());
}

void AddTo(PoolUse* sum, const PoolUse& use) {
  sum->amounts.cpu_millis += use.amounts.cpu_millis;
  sum->amounts.memory_bytes += use.amounts.memory_bytes;
  sum->amounts.gpu_millis += use.amounts.gpu_millis;
  sum->waiting += use.waiting;
  sum->running += use.running;
  sum->queueing += use.queueing;
}

}  // namespace

void RecentStarts::Add(absl::Time now) {
  if (now - began_ >= kRoundTrip || now < began_) {
    before_ = Count(now);
    now_ = 0;
    began_ = now;
  }
  ++now_;
}

uint32_t RecentStarts::Count(absl::Time now) const {
  const absl::Duration passed = now - began_;
  if (passed >= 2 * kRoundTrip) return 0;
  if (passed >= kRoundTrip) return now_;
  return std::max(now_, before_);
}

bool Load::CountsIn(const Requirements& job, const v1::Pool& pool, bool of_all) {
  return Counts(PoolOf(job), pool, of_all);
}

const KeptRoom* Load::KeptIn(const v1::Pool& pool, bool of_all) const {
  const auto found = std::find_if(kept.begin(), kept.end(), [&](const KeptRoom& one) {
    return of_all || one.pool == pool.name();
  });
  return found == kept.end() ? nullptr : &*found;
}

void Load::Add(const Requirements& job, Phase phase) {
  if (phase == Phase::kNone) return;
  PoolUse& use = At(job)->second;
  const Amounts amounts = DemandOf(job);
  use.amounts.cpu_millis += amounts.cpu_millis;
  use.amounts.memory_bytes += amounts.memory_bytes;
  use.amounts.gpu_millis += amounts.gpu_millis;
  if (amounts.gpu_millis > 0) use.gpu_millis[GpuTypeOf(job)] += amounts.gpu_millis;
  ++(phase == Phase::kWaits ? use.waiting : use.running);
}

void Load::Remove(const Requirements& job, Phase phase) {
  if (phase == Phase::kNone) return;
  const auto at = At(job);
  PoolUse& use = at->second;
  const Amounts amounts = DemandOf(job);
  use.amounts.cpu_millis -= amounts.cpu_millis;
  use.amounts.memory_bytes -= amounts.memory_bytes;
  use.amounts.gpu_millis -= amounts.gpu_millis;
  if (amounts.gpu_millis > 0) {
    const auto type = use.gpu_millis.find(GpuTypeOf(job));
    if (type != use.gpu_millis.end() && (type->second -= amounts.gpu_millis) == 0)
      use.gpu_millis.erase(type);
  }
  --(phase == Phase::kWaits ? use.waiting : use.running);
  DropIfUnused(at);
}

void Load::CountQueueing(const Requirements& job, bool begins) {
  const auto at = At(job);
  PoolUse& use = at->second;
  const auto need = use.queueing_needs.try_emplace(RoomNeedOf(job)).first;
  begins ? ++use.queueing : --use.queueing;
  begins ? ++need->second : --need->second;
  if (need->second == 0) use.queueing_needs.erase(need);
  DropIfUnused(at);
}

bool Load::HasPlaceToWait(int pools, absl::Time now) const {
  const uint32_t places = PlacesToWait(now);
  if (places == 0) return false;
  if (pools_.size() < static_cast<size_t>(std::max(1, pools))) return true;
  return std::any_of(pools_.begin(), pools_.end(),
                     [&](const auto& pool) { return pool.second.waiting < places; });
}

Load::Pools::iterator Load::At(const Requirements& job) {
  const std::string_view pool = PoolOf(job);
  const auto at = pools_.find(pool);
  return at != pools_.end() ? at : pools_.emplace(pool, PoolUse()).first;
}

void Load::DropIfUnused(Pools::iterator at) {
  if (at->second.waiting + at->second.running + at->second.queueing == 0) pools_.erase(at);
}

PoolUse Load::UseOf(const v1::Pool& pool, bool of_all, std::string_view gpu_type) const {
  PoolUse sum;
  uint64_t other_types = 0;
  const std::string wanted = absl::AsciiStrToLower(ToAbsl(gpu_type));
  for (const auto& [name, use] : pools_) {
    if (!Counts(name, pool, of_all)) continue;
    AddTo(&sum, use);
    for (const auto& [type, millis] : use.gpu_millis) {
      if (!wanted.empty() && !type.empty() && type != wanted) other_types += millis;
      if (type.empty()) sum.untyped_gpu_millis += millis;
    }
  }
  sum.amounts.gpu_millis -= other_types;
  sum.other_gpu_millis = other_types;
  return sum;
}

}  // namespace muster::core::placement
