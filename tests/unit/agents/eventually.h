// A value that other threads change and a test waits for.
#ifndef MUSTER_TESTS_UNIT_AGENTS_EVENTUALLY_H_
#define MUSTER_TESTS_UNIT_AGENTS_EVENTUALLY_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace muster::agents {

// This is long enough for a loaded machine; a test that waits for all of it has failed.
inline constexpr std::chrono::seconds kPatience(60);

template <typename State>
class Shared {
 public:
  // Calls `use` with the state, alone, and wakes those who wait.
  template <typename Use>
  auto With(Use use) {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
    return use(state_);
  }
  // Returns whether the condition comes true in time.
  template <typename Condition>
  bool Eventually(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return condition(state_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_{};
};

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_EVENTUALLY_H_
