// Carries out, on a thread of its own, what has to read the store first, so that the effects thread
// reads no disk. Tasks are done in the order in which they came. Whoever posts asks first whether
// tasks of the same key are still here: what follows them has to wait behind them.
//
// Post and Holds: the effects thread.
#ifndef MUSTER_BROKER_ENGINE_DETOUR_H_
#define MUSTER_BROKER_ENGINE_DETOUR_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/container/flat_hash_map.h"

namespace muster::broker {

class Detour {
 public:
  using Task = std::function<void()>;

  // `max_rows`: of the tasks that wait. They are rows that were committed, or are to be read, and
  // bound the memory and the time that the last of them waits.
  explicit Detour(size_t max_rows) : max_rows_(max_rows) {}
  ~Detour();

  void Start();
  // Whether a task of this key waits or runs.
  bool Holds(uint64_t key) const;
  // Blocks while too many rows wait: the commits, the core and in the end the clients wait then. A
  // task is taken whatever its rows if none waits.
  void Post(uint64_t key, size_t rows, Task task);
  // Carries out what waits and ends the thread. No Post may follow.
  void Stop();

 private:
  struct Item {
    uint64_t key = 0;
    size_t rows = 0;
    Task task;
  };
  void Run();

  const size_t max_rows_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  size_t rows_ = 0;                              // of items_
  absl::flat_hash_map<uint64_t, size_t> tasks_;  // of each key, the one that runs included
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_DETOUR_H_
