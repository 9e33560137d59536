#include "broker/notify/bell.h"

#include <chrono>

namespace muster::notify {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void Bell::Wake() {
  {
    const MutexLock lock(mutex_);
    is_rung_ = true;
  }
  changed_.notify_all();
}

void Bell::Stop() {
  is_stopped_ = true;
  {
    // The waiting thread looks at the flag under this lock, and must not miss the notice.
    const MutexLock lock(mutex_);
  }
  changed_.notify_all();
}

void Bell::Await(absl::Duration patience) {
  const Clock::time_point due = Clock::now() + absl::ToChronoNanoseconds(patience);
  MutexLock lock(mutex_);
  while (!is_stopped_ && !is_rung_ && lock.WaitUntil(changed_, due)) {
  }
  is_rung_ = false;
}

void Bell::Pause(absl::Duration pause) {
  const Clock::time_point due = Clock::now() + absl::ToChronoNanoseconds(pause);
  MutexLock lock(mutex_);
  while (!is_stopped_ && lock.WaitUntil(changed_, due)) {
  }
}

}  // namespace muster::notify
