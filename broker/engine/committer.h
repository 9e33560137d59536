// Runs the store thread: it takes what the core has decided, commits all that waits in one
// transaction (group commit), and only then lets the effects be carried out, in order.
#ifndef MUSTER_BROKER_ENGINE_COMMITTER_H_
#define MUSTER_BROKER_ENGINE_COMMITTER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/engine/commit_step.h"
#include "broker/engine/waiting_output.h"
#include "broker/store/store.h"
#include "sync/mutex.h"

namespace muster::broker {

class Committer {
 public:
  struct Options {
    // The core thread waits while this many changes and assignments wait. It bounds the memory and
    // the time of one commit with its effects: each change is a row to write, and each assignment
    // may have a spec to read (about 0.2 s at 100,000 rows/s).
    size_t max_waiting_rows = 20'000;
    // The store may do its housekeeping after this long without work, and again after each
    // idle_interval.
    absl::Duration idle_after = absl::Milliseconds(100);
    absl::Duration idle_interval = absl::Seconds(10);
  };
  // Called on the store thread.
  using CarryOut = CarryOutCommitted;
  // Called on the store thread around each commit: true at its begin, false at its end.
  using OnCommit = std::function<void(bool begins)>;
  // Called once, on the store thread; nothing is committed or carried out after it.
  using OnFailure = std::function<void(const absl::Status&)>;

  Committer(Options options, store::Store* store, OnCommit on_commit, CarryOut carry_out,
            OnFailure on_failure);
  ~Committer();

  void Start();
  // Runs on the core thread. It blocks while too much waits.
  void Offer(core::Output output);
  struct Counts {
    uint64_t commits = 0;    // commits since the start
    uint64_t rows = 0;       // rows in all of them
    uint64_t most_rows = 0;  // rows in the largest commit since the last call
  };
  // Any thread may use it.
  Counts TakeCounts();
  // The same; the largest commit is not forgotten.
  Counts counts() const;
  // Rows that wait for the disk.
  size_t waiting_rows() const;
  // Commits what waits, carries it out, then ends the thread. No Offer may follow.
  void Stop();

 private:
  void Run();
  // Returns what waits; empty after a time-out; nullopt if nothing waits and nothing will come.
  std::optional<core::Output> Take(absl::Duration timeout);
  absl::Status Commit(const core::Changes& changes);
  void Fail(const absl::Status& status);

  const Options options_;
  store::Store* const store_;
  const OnCommit on_commit_;
  const CarryOut carry_out_;
  const OnFailure on_failure_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  WaitingOutput waiting_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_COMMITTER_H_
