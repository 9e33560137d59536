#include "broker/app/user_meter.h"

#include <algorithm>

namespace muster::broker {

bool HasBounds(const Principal& principal) {
  if (principal.known_by == KnownBy::kCertificate) return false;
  return principal.token != nullptr || principal.role != Role::kAdmin;
}

UserMeter::UserMeter(uint64_t most, absl::Duration refill)
    : most_(static_cast<double>(most)), per_second_(most_ / absl::ToDoubleSeconds(refill)) {}

void UserMeter::Refill(absl::Time now, Account* account) const {
  // A clock that was put back is worth nothing.
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - account->at));
  account->left = std::min(most_, account->left + seconds * per_second_);
  account->at = now;
}

absl::Duration UserMeter::Take(const std::string& user, uint64_t amount, absl::Time now) {
  const double wanted = std::min(most_, static_cast<double>(amount));
  const MutexLock lock(mutex_);
  if (by_user_.size() >= kMaxUsers && !by_user_.contains(user)) {
    // Those who were quiet for long are as good as new ones.
    absl::erase_if(by_user_, [&](auto& entry) {
      Refill(now, &entry.second);
      return entry.second.left >= most_;
    });
  }
  Account& account = by_user_.try_emplace(user, Account{most_, now}).first->second;
  Refill(now, &account);
  if (account.left < wanted) return absl::Seconds((wanted - account.left) / per_second_);
  account.left -= wanted;
  return absl::ZeroDuration();
}

}  // namespace muster::broker
