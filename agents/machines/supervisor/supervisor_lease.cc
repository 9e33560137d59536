#include <algorithm>
#include <string>

#include "agents/machines/clock_now.h"
#include "agents/machines/small_file.h"
#include "agents/machines/supervisor/supervisor.h"

namespace muster::machines {
namespace {

constexpr int64_t kMicrosecondsPerMs = 1000;

}  // namespace

bool Supervisor::LeaseIsOver() {
  if (spec_.lease_file.empty()) return false;
  next_look_ms_ = SteadyMilliseconds() + agents::kLeaseLookMs;
  std::optional<agents::LeaseFile> lease;
  std::string text;
  if (ReadSmallFile(spec_.lease_file, agents::kMaxLeaseFileBytes, &text) == 0)
    lease = agents::ParseLeaseFile(text);
  const int64_t since_boot = MillisecondsSinceBoot();
  const int64_t now = NowMicroseconds() / kMicrosecondsPerMs;
  if (lease_.has_value()) return lease_->Over(lease, since_boot, now);
  if (!agents::MayStartUnderLease(lease, now)) return true;
  lease_.emplace(*lease, since_boot, now);
  return false;
}

int64_t Supervisor::UntilLook(int64_t until_ms) const {
  if (!lease_.has_value()) return until_ms;
  return until_ms == 0 ? next_look_ms_ : std::min(until_ms, next_look_ms_);
}

}  // namespace muster::machines
