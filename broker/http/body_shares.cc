#include "broker/http/body_shares.h"

namespace muster::http {

bool BodyShares::Take(const std::string& user, size_t bytes) {
  const MutexLock lock(mutex_);
  size_t& held = held_[user];
  held += bytes;
  return held <= most_;
}

void BodyShares::GiveBack(const std::string& user, size_t bytes) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(user);
  if (found == held_.end()) return;
  found->second -= bytes;
  if (found->second == 0) held_.erase(found);
}

}  // namespace muster::http
