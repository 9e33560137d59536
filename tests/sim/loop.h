// Runs virtual time: actions by their times, and in the order of their making if equal.
#ifndef MUSTER_TESTS_SIM_LOOP_H_
#define MUSTER_TESTS_SIM_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace muster::sim {

class Loop {
 public:
  absl::Time now() const { return now_; }

  void After(absl::Duration delay, std::function<void()> action) {
    actions_.emplace(std::pair(now_ + delay, next_++), std::move(action));
  }

  // Does what is due until `end`, or until `done` says so.
  void RunUntil(absl::Time end, const std::function<bool()>& done) {
    while (!done() && !actions_.empty() && actions_.begin()->first.first <= end) {
      auto first = actions_.extract(actions_.begin());
      now_ = first.key().first;
      first.mapped()();
    }
    if (!done()) now_ = end;
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  uint64_t next_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> actions_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_LOOP_H_
