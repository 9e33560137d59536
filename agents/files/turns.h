// Gives out turns at something that only a few callers may do at a time: first come, first served.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_FILES_TURNS_H_
#define MUSTER_AGENTS_FILES_TURNS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "sync/mutex.h"

namespace muster::uploads {

class Turns {
 public:
  explicit Turns(size_t at_once) : at_once_(at_once) {}

  // A turn, which lasts as long as this object lives. The Turns must outlive it.
  class Turn {
   public:
    explicit Turn(Turns* turns) : turns_(turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->End();
    }

   private:
    Turns* turns_;
  };

  // Waits for the turns before this one, each of which has a bound of its own. UNAVAILABLE: the
  // agent ends.
  absl::StatusOr<Turn> Take();
  // Refuses callers that wait now, and all later ones.
  void Stop();
  size_t waiting() const;

 private:
  void End();

  const size_t at_once_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  // Turns begin in the order of their numbers.
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_TURNS_H_
