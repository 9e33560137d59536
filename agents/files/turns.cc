#include "agents/files/turns.h"

#include <algorithm>

#include "absl/status/status.h"
#include "sync/mutex.h"

namespace muster::uploads {

absl::StatusOr<Turns::Turn> Turns::Take() {
  MutexLock lock(mutex_);
  const uint64_t number = next_++;
  while (!stopped_ && number >= ended_ + at_once_) lock.Wait(changed_);
  if (stopped_) return absl::UnavailableError("the agent ends");
  return Turn(this);
}

void Turns::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

size_t Turns::waiting() const {
  const MutexLock lock(mutex_);
  return next_ - std::min(next_, ended_ + at_once_);
}

void Turns::End() {
  {
    const MutexLock lock(mutex_);
    ++ended_;
  }
  changed_.notify_all();
}

}  // namespace muster::uploads
