#include "broker/core/amounts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/ascii.h"

namespace muster::core {
namespace {

constexpr uint64_t kMillisOfCore = 1000;

}  // namespace

void AddTo(const Amounts& amounts, Amounts* sum) {
  for (size_t i = 0; i < kResources; ++i) (*sum)[i] += amounts[i];
}

uint64_t GpuMillisOf(const Requirements& requirements) {
  return requirements.gpu_millis * (requirements.is_total ? 1 : requirements.nodes);
}

Amounts AmountsOf(const Requirements& requirements) {
  const double times = requirements.is_total ? 1 : requirements.nodes;
  const uint64_t cpu_millis =
      requirements.cpu_millis == 0 ? kMillisOfCore : requirements.cpu_millis;
  return {times * static_cast<double>(cpu_millis),
          times * static_cast<double>(requirements.memory_bytes),
          static_cast<double>(GpuMillisOf(requirements))};
}

std::string GpuTypeOf(const Requirements& requirements) {
  return absl::AsciiStrToLower(requirements.gpu_type);
}

Amounts CapacityOf(const v1::Inventory& inventory) {
  using Shape = std::tuple<uint32_t, uint64_t, uint64_t>;  // cores, memory, GPUs of each node
  std::map<Shape, uint64_t> most;
  for (const v1::Pool& pool : inventory.pools()) {
    std::map<Shape, uint64_t> nodes;
    for (const v1::NodeGroup& group : pool.node_groups()) {
      uint64_t gpus = 0;
      for (const auto& [type, count] : group.gpus()) gpus += count;
      nodes[{group.cpus(), group.memory_bytes(), gpus}] += group.count();
    }
    for (const auto& [shape, count] : nodes) most[shape] = std::max(most[shape], count);
  }
  Amounts capacity = {};
  for (const auto& [shape, count] : most) {
    const auto& [cpus, memory, gpus] = shape;
    const auto nodes = static_cast<double>(count);
    capacity[0] += nodes * cpus * kMillisOfCore;
    capacity[1] += nodes * static_cast<double>(memory);
    capacity[2] += nodes * static_cast<double>(gpus) * 1000;
  }
  return capacity;
}

}  // namespace muster::core
