#include "agents/core/lease_lane.h"

#include <chrono>
#include <utility>

namespace muster::agents {
namespace {

// The pause after a call that failed. A cluster that is busy is not asked more often, and there are
// many tries within a lease.
constexpr std::chrono::seconds kRetry{1};

}  // namespace

LeaseLane::LeaseLane(RenewLeases renew, Clock now)
    : renew_(std::move(renew)), now_(std::move(now)) {
  if (renew_ != nullptr) thread_ = std::thread([this] { Work(); });
}

LeaseLane::~LeaseLane() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LeaseLane::Renew(absl::Time end) {
  {
    const MutexLock lock(mutex_);
    wanted_ = end;
  }
  changed_.notify_all();
}

bool LeaseLane::AreLive() const {
  const MutexLock lock(mutex_);
  return now_() < known_;
}

void LeaseLane::Work() {
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && !wanted_) lock.Wait(changed_);
    if (stopping_) return;
    const absl::Time end = *std::exchange(wanted_, std::nullopt);
    const absl::Duration remaining = end - now_();
    if (remaining <= absl::ZeroDuration()) continue;
    lock.Unlock();
    absl::Status status = renew_(remaining);
    failures_.Note("leases_not_renewed", "", status);
    lock.Lock();
    if (status.ok()) {
      known_ = end;
      continue;
    }
    const auto next = std::chrono::steady_clock::now() + kRetry;
    while (!stopping_ && !wanted_ && lock.WaitUntil(changed_, next)) continue;
    if (!wanted_) wanted_ = end;
  }
}

}  // namespace muster::agents
