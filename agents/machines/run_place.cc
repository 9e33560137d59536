#include "agents/machines/run_place.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/machines/run_request.h"

namespace muster::machines {

absl::Duration LongestLife(const RunSpec& spec) {
  if (spec.time_limit_ms == 0) return absl::InfiniteDuration();
  return absl::Milliseconds(spec.time_limit_ms + spec.grace_ms);
}

QueuedRun QueuedFrom(const RunSpec& spec, bool held) {
  return {.run_key = spec.run_key,
          .priority = spec.priority,
          .order = spec.order,
          .request = RequestOf(spec),
          .time_limit = LongestLife(spec),
          .held = held};
}

Allocation AllocationOf(const RunFiles& files) {
  NodeAllocation node;
  uint32_t millis = kWholeGpu;  // of each device
  if (files.spec.has_value()) {
    node.cores = files.spec->cores;
    node.memory_bytes = files.spec->memory_bytes;
    if (RequestOf(*files.spec).SharesGpu()) millis = files.spec->gpu_millis;
  }
  for (const absl::string_view text :
       absl::StrSplit(files.claim->devices, ',', absl::SkipEmpty())) {
    uint32_t index = 0;
    if (absl::SimpleAtoi(text, &index)) node.gpus[index] = millis;
  }
  return {.nodes = {std::move(node)}};
}

}  // namespace muster::machines
