#include "contract/gpu_share.h"

#include <algorithm>
#include <string>

#include "contract/counted.h"
#include "contract/namespace_limits.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr uint64_t kWholeCore = 1000;
constexpr uint64_t kWholeGibibyte = uint64_t{1} << 30;
// The part of a node that is left for what runs there besides: DaemonSets ask for cores and memory,
// too, and a job with all GPUs of a node would wait for ever.
constexpr uint64_t kKeptPart = 10;

void TakeLess(uint64_t amount, std::optional<uint64_t>* least) {
  *least = least->has_value() ? std::min(**least, amount) : amount;
}

// Returns whole units, unless it is less than one.
uint64_t RoundedDown(uint64_t amount, uint64_t unit) {
  return amount < unit ? amount : amount / unit * unit;
}

uint64_t Bounded(const std::optional<uint64_t>& share, const std::optional<uint64_t>& most,
                 uint64_t unit, uint64_t least) {
  if (!share.has_value()) return least;
  const uint64_t bounded = most.has_value() ? std::min(*share, *most) : *share;
  return std::max(RoundedDown(bounded, unit), least);
}

}  // namespace

void GpuShare::AddNode(uint64_t cpu_millis, uint64_t memory_bytes, uint64_t gpus) {
  if (gpus == 0 || gpus < gpus_) return;
  const auto share = [&](uint64_t amount) { return (amount - amount / kKeptPart) / gpus * gpus_; };
  TakeLess(share(cpu_millis), &cpu_millis_);
  TakeLess(share(memory_bytes), &memory_bytes_);
}

void GpuShare::AddLimit(std::string_view resource, int64_t pod_millis) {
  const auto most = static_cast<uint64_t>(std::max<int64_t>(0, pod_millis));
  if (resource == "limits.cpu") return;
  const std::string_view bare = BareResource(resource);
  if (bare == "cpu") TakeLess(most, &most_cpu_millis_);
  if (bare == "memory") TakeLess(most / 1000, &most_memory_bytes_);
}

uint64_t GpuShare::CpuMillis(uint64_t default_millis) const {
  return Bounded(cpu_millis_, most_cpu_millis_, kWholeCore, default_millis);
}

uint64_t GpuShare::MemoryBytes(uint64_t default_bytes) const {
  return Bounded(memory_bytes_, most_memory_bytes_, kWholeGibibyte, default_bytes);
}

std::optional<v1::ClusterCheck> TellDefaults(const PodAmounts& asked, uint64_t gpus,
                                             const PodAmounts& got, const PodAmounts& defaults) {
  const bool is_cpu_open = asked.cpu_millis == 0;
  const bool is_memory_open = asked.memory_bytes == 0;
  if (gpus == 0 || got.memory_bytes == 0 || (!is_cpu_open && !is_memory_open)) return std::nullopt;
  const bool is_share = (is_cpu_open && got.cpu_millis > defaults.cpu_millis) ||
                        (is_memory_open && got.memory_bytes > defaults.memory_bytes);
  const std::string cores =
      fmt::format("{} core{}", FormatCpus(got.cpu_millis), got.cpu_millis == kWholeCore ? "" : "s");
  const std::string memory = FormatBytes(got.memory_bytes) + " of memory";
  v1::ClusterCheck check;
  check.set_subject(is_memory_open ? "resources.memory" : "resources.cpus");
  check.set_result(v1::CHECK_RESULT_WARN);
  check.set_seen(fmt::format("{} left open: the job gets {} on each node, {}",
                             is_memory_open && is_cpu_open ? "and resources.cpus are" : "is",
                             !is_memory_open ? cores
                             : is_cpu_open   ? memory + " and " + cores
                                             : memory,
                             is_share
                                 ? fmt::format("the share of {} of a node", Counted(gpus, "GPU"))
                                 : "the cluster's default"));
  check.set_remedy(is_memory_open ? "Set it if the job needs more: what uses more memory is killed."
                                  : "Set it if the job needs more.");
  return check;
}

}  // namespace muster::contract
