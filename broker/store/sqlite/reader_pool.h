// Lends a few readers to any number of threads.
#ifndef MUSTER_BROKER_STORE_SQLITE_READER_POOL_H_
#define MUSTER_BROKER_STORE_SQLITE_READER_POOL_H_

#include <condition_variable>
#include <memory>
#include <utility>
#include <vector>

#include "broker/store/sqlite/reader.h"
#include "sync/mutex.h"

namespace muster::store {

// All methods may be called from any thread.
class ReaderPool {
 public:
  explicit ReaderPool(std::vector<std::unique_ptr<Reader>> readers) : free_(std::move(readers)) {}

  // Calls `query` with a reader of its own; waits for one if all are busy. Queries are short (see
  // list_limits.h), and so is the wait.
  template <typename F>
  auto With(F query) {
    std::unique_ptr<Reader> reader = Take();
    auto result = query(*reader);
    GiveBack(std::move(reader));
    return result;
  }

 private:
  std::unique_ptr<Reader> Take() {
    MutexLock lock(mutex_);
    while (free_.empty()) lock.Wait(returned_);
    std::unique_ptr<Reader> reader = std::move(free_.back());
    free_.pop_back();
    return reader;
  }

  void GiveBack(std::unique_ptr<Reader> reader) {
    {
      const MutexLock lock(mutex_);
      free_.push_back(std::move(reader));
    }
    returned_.notify_one();
  }

  Mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Reader>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_READER_POOL_H_
