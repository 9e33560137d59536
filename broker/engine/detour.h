// Carries out tasks that must read the store, on a thread of its own, so that the effects thread
// reads no disk. Tasks run in the order in which they came. Before other work with the same key is
// done, Holds tells whether it must wait behind a task.
//
// The effects thread calls Post and Holds.
#ifndef MUSTER_BROKER_ENGINE_DETOUR_H_
#define MUSTER_BROKER_ENGINE_DETOUR_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "sync/mutex.h"

namespace muster::broker {

class Detour {
 public:
  using Task = std::function<void()>;

  // `max_rows` bounds the rows of the tasks that wait, which were committed, or are to be read. It
  // bounds the memory and the time that the last task waits.
  explicit Detour(size_t max_rows) : max_rows_(max_rows) {}
  ~Detour();

  void Start();
  // True if a task of this key waits or runs.
  bool Holds(uint64_t key) const;
  // Blocks while too many rows wait; then the commits, the core and in the end the clients wait,
  // too. A task is always taken if none waits.
  void Post(uint64_t key, size_t rows, Task task);
  // Carries out what waits, then ends the thread. No Post may follow.
  void Stop();

 private:
  struct Item {
    uint64_t key = 0;
    size_t rows = 0;
    Task task;
  };
  void Run();

  const size_t max_rows_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  size_t rows_ ABSL_GUARDED_BY(mutex_) = 0;  // rows of items_
  // Number of tasks of each key, with the one that runs.
  absl::flat_hash_map<uint64_t, size_t> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_DETOUR_H_
