#include "agents/files/turns.h"

#include <algorithm>

#include "absl/status/status.h"

namespace muster::uploads {

absl::StatusOr<Turns::Turn> Turns::Take() {
  std::unique_lock lock(mutex_);
  const uint64_t number = next_++;
  changed_.wait(lock, [&] { return stopped_ || number < ended_ + at_once_; });
  if (stopped_) return absl::UnavailableError("the agent ends");
  return Turn(this);
}

void Turns::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

size_t Turns::waiting() const {
  const std::lock_guard lock(mutex_);
  return next_ - std::min(next_, ended_ + at_once_);
}

void Turns::End() {
  {
    const std::lock_guard lock(mutex_);
    ++ended_;
  }
  changed_.notify_all();
}

}  // namespace muster::uploads
