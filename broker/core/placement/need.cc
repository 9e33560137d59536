#include "broker/core/placement/need.h"

#include <bit>
#include <limits>

#include "absl/strings/ascii.h"

namespace muster::core::placement {
namespace {

// Leaves the three highest bits.
uint64_t Rounded(uint64_t amount) {
  constexpr int kKept = 3;
  const int dropped = std::bit_width(amount) - kKept;
  return dropped <= 0 ? amount : amount >> dropped << dropped;
}

}  // namespace

RoomNeed RoomNeedOf(const Requirements& job) {
  RoomNeed need;
  need.nodes = job.nodes;
  need.cpu_millis = job.cpu_millis;
  need.memory_bytes = job.memory_bytes;
  need.gpu_millis = job.gpu_millis;
  need.is_total = job.is_total;
  need.is_array_task = job.is_array_task;
  need.time_limit_s = job.time_limit_s.value_or(std::numeric_limits<int64_t>::max());
  need.gpu_type = absl::AsciiStrToLower(job.gpu_type);
  need.pools = job.pools;
  return need;
}

RoomNeed RoomClassOf(const Requirements& job) {
  RoomNeed need = RoomNeedOf(job);
  need.cpu_millis = Rounded(need.cpu_millis);
  need.memory_bytes = Rounded(need.memory_bytes);
  // It decides where room is kept for another job.
  need.time_limit_s = static_cast<int64_t>(Rounded(static_cast<uint64_t>(need.time_limit_s)));
  return need;
}

bool NeedsNoMore(const RoomNeed& a, const RoomNeed& b) {
  // Totals and amounts of each node do not compare.
  return a.is_total == b.is_total && a.nodes <= b.nodes && a.cpu_millis <= b.cpu_millis &&
         a.memory_bytes <= b.memory_bytes && a.gpu_millis <= b.gpu_millis &&
         a.time_limit_s <= b.time_limit_s &&
         (a.gpu_millis == 0 || a.gpu_type.empty() || a.gpu_type == b.gpu_type);
}

}  // namespace muster::core::placement
