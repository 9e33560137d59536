#include "broker/core/placement/amounts.h"

#include <algorithm>

namespace muster::core::placement {
namespace {

template <typename Need>
Amounts DemandOfAny(const Need& need) {
  constexpr uint64_t kOneCore = 1000;
  const uint64_t times = need.is_total ? 1 : need.nodes;
  return {.cpu_millis = std::max(need.cpu_millis, kOneCore) * times,
          .memory_bytes = need.memory_bytes * times,
          .gpu_millis = need.gpu_millis * times};
}

uint64_t Less(uint64_t a, uint64_t b) { return a - std::min(a, b); }

}  // namespace

Amounts DemandOf(const RoomNeed& need) { return DemandOfAny(need); }

Amounts DemandOf(const Requirements& job) { return DemandOfAny(job); }

Amounts operator+(const Amounts& a, const Amounts& b) {
  return {.cpu_millis = a.cpu_millis + b.cpu_millis,
          .memory_bytes = a.memory_bytes + b.memory_bytes,
          .gpu_millis = a.gpu_millis + b.gpu_millis};
}

Amounts operator-(const Amounts& a, const Amounts& b) {
  return {.cpu_millis = Less(a.cpu_millis, b.cpu_millis),
          .memory_bytes = Less(a.memory_bytes, b.memory_bytes),
          .gpu_millis = Less(a.gpu_millis, b.gpu_millis)};
}

bool IsWithin(const Amounts& asked, const Amounts& there) {
  return asked.cpu_millis <= there.cpu_millis && asked.memory_bytes <= there.memory_bytes &&
         asked.gpu_millis <= there.gpu_millis;
}

}  // namespace muster::core::placement
