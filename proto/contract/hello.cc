#include "contract/hello.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "contract/duration_text.h"
#include "contract/errors.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

constexpr uint32_t kMaxActiveRuns = 1'000'000;  // as AgentHello says
// Bounds what one agent makes the broker keep in memory and on disk.
constexpr size_t kMaxInventoryBytes = 1 << 20;
// The bound is a day, because nobody waits longer for a fence than for the longest lease.
constexpr int64_t kMaxFenceDelaySeconds = 86'400;
constexpr size_t kMaxSharedUserBytes = 1024;  // as AgentHello says

}  // namespace

absl::Status ValidateHello(const agent::v1::AgentHello& hello) {
  if (absl::Status name = ValidateClusterName(hello.cluster()); !name.ok()) return name;
  FieldErrors errors;
  if (!v1::ClusterKind_IsValid(hello.kind()) || hello.kind() == v1::CLUSTER_KIND_UNSPECIFIED) {
    errors.Add("hello.kind",
               fmt::format("{} is no kind of cluster", static_cast<int>(hello.kind())));
  }
  if (hello.journal_id().empty()) errors.Add("hello.journal_id", "is empty");
  if (hello.inventory().identity().empty()) {
    errors.Add("hello.inventory.identity", "is empty; it must tell this cluster from others");
  }
  if (hello.max_active_runs() < 1 || hello.max_active_runs() > kMaxActiveRuns) {
    errors.Add("hello.max_active_runs",
               fmt::format("is {}, must be 1 to {}", hello.max_active_runs(), kMaxActiveRuns));
  }
  if (const size_t size = hello.inventory().ByteSizeLong(); size > kMaxInventoryBytes) {
    errors.Add("hello.inventory", fmt::format("has {} bytes, at most {} are taken; group nodes "
                                              "that are alike",
                                              size, kMaxInventoryBytes));
  }
  if (const size_t size = hello.shared_user().size(); size > kMaxSharedUserBytes) {
    errors.Add("hello.shared_user",
               fmt::format("has {} bytes, at most {} are taken", size, kMaxSharedUserBytes));
  }
  const auto& delay = hello.fence_delay();
  const bool is_valid = delay.seconds() >= 0 && delay.nanos() >= 0 && delay.nanos() < 1'000'000'000;
  if (!is_valid || delay.seconds() >= kMaxFenceDelaySeconds) {
    errors.Add("hello.fence_delay", fmt::format("is {}, must be 0s to less than {}s",
                                                DurationText(delay), kMaxFenceDelaySeconds));
  }
  return errors.ToStatus();
}

}  // namespace muster::contract
