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

Amounts DemandOf(const Requirements& job) {
  constexpr uint64_t kOneCore = 1000;
  Amounts out{job.cpu_millis, job.memory_bytes, GpuMillisOf(job)};
  out.cpu_millis = std::max(out.cpu_millis, kOneCore);
  if (job.is_total) return out;
  out.cpu_millis *= job.nodes;
  out.memory_bytes *= job.nodes;
  return out;
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
  begins ? ++at->second.queueing : --at->second.queueing;
  DropIfUnused(at);
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
    if (!of_all && name != pool.name() && !(name.empty() && pool.is_default())) continue;
    AddTo(&sum, use);
    for (const auto& [type, millis] : use.gpu_millis) {
      if (!wanted.empty() && !type.empty() && type != wanted) other_types += millis;
    }
  }
  sum.amounts.gpu_millis -= other_types;
  return sum;
}

}  // namespace muster::core::placement
