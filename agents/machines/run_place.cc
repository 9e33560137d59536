#include "agents/machines/run_place.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/machines/run_request.h"
#include "google/protobuf/util/time_util.h"

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

QueuedRun QueuedFrom(const agent::v1::Assignment& assignment, uint64_t order, bool held,
                     absl::Duration cancel_grace) {
  const v1::JobSpec& job = assignment.spec();
  const int64_t limit_ms =
      google::protobuf::util::TimeUtil::DurationToMilliseconds(job.time_limit());
  return {.run_key = assignment.run_key(),
          .priority = job.priority(),
          .order = order,
          .request = RequestOf(assignment),
          .time_limit = limit_ms == 0 ? absl::InfiniteDuration()
                                      : absl::Milliseconds(limit_ms) + cancel_grace,
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
