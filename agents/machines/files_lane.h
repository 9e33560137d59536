// Fetches and lays out the files that runs bring along, on threads of its own, so that runs without
// files and cancels need not wait.
//
// Runs have turns in the order of their arrival. A run whose files cannot be had now goes behind
// the others, and has its next turn after a pause. A run whose files are all here need not wait
// behind those that wait for the broker.
//
// Any thread may call; no call blocks. The lane's threads do the work and call the listener.
#ifndef MUSTER_AGENTS_MACHINES_FILES_LANE_H_
#define MUSTER_AGENTS_MACHINES_FILES_LANE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "contract/sentences.h"
#include "muster/v1/job_spec.pb.h"
#include "sync/mutex.h"

namespace muster::machines {

// Returns the reason of a run that waits for its first turn.
inline v1::StateReason FetchesFiles() {
  return contract::MakeReason(v1::STATE_REASON_CODE_BRINGING_FILES,
                              {.detail = "its files are being fetched"});
}

// There are two threads, so that one run's files are copied while another's are fetched, and a job
// with few files does not wait for one with many.
inline constexpr size_t kFilesThreads = 2;
// The patience of a turn that does not ask the broker.
inline constexpr absl::Duration kNoPatience = -absl::InfiniteDuration();
// A run whose files did not come has its next turn after this. It is short, because the turn itself
// waits for the broker; a damaged file ends it early.
inline constexpr absl::Duration kFetchRetry = absl::Seconds(2);
// A run whose files had no room has its next turn after this: soon enough for people who make
// some.
inline constexpr absl::Duration kRoomRetry = absl::Seconds(5);

struct FilesNews {
  enum class Kind {
    kReady,   // the files are there
    kWaits,   // they are not there yet: `reason`
    kFailed,  // they will never be there: `failure`
  };
  uint64_t ticket = 0;
  std::string run_key;
  Kind kind = Kind::kReady;
  v1::StateReason reason = {};
  v1::Failure failure = {};
};

class FilesLane {
 public:
  struct Task {
    uint64_t ticket = 0;
    std::string run_key;
    v1::JobSpec brought;         // the job's uploads, and nothing else of it
    bool makes_results = false;  // also make the directory of its results, in the working directory
    uint64_t bytes = 0;          // size of the copy on the disk; 0: not known yet
  };

  // The limits of a turn.
  class Turn {
   public:
    Turn(Mutex* mutex, const std::atomic<bool>* dropped, absl::Duration patience)
        : mutex_(mutex), dropped_(dropped), patience_(patience) {}
    // Returns the time that it may wait for the broker.
    absl::Duration patience() const { return patience_; }
    // Returns whether nobody wants the files any more.
    bool IsOver() const { return *dropped_; }
    // Takes the last step, which must be short. CANCELLED: nobody wants the files any more.
    absl::Status Conclude(const std::function<absl::Status()>& step) const;

   private:
    Mutex* const mutex_;
    const std::atomic<bool>* const dropped_;
    const absl::Duration patience_;
  };

  // Fetches the task's files and puts them into place. UNAVAILABLE, DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED: there will be other turns. The first turn may have kNoPatience.
  using Work = std::function<absl::Status(Task*, const Turn&)>;
  using Listener = std::function<void(FilesNews)>;

  FilesLane(Work work, Listener listener);
  // Waits for turns that are under way. The listener is not called afterwards.
  ~FilesLane();

  // Adds the run of a job with uploads. Returns the ticket that its news has.
  uint64_t Add(const std::string& run_key, const v1::JobSpec& job, bool makes_results);
  // Nobody wants the files any more: once this returns, nothing is put into place. News may still
  // come.
  void Drop(uint64_t ticket);

 private:
  struct Entry {
    Task task;
    std::chrono::steady_clock::time_point not_before = {};
    bool was_looked_for = false;  // a turn has begun, perhaps one with kNoPatience
    std::atomic<bool> dropped = false;
  };

  // Is the loop of each thread. With kNoPatience it has only first turns.
  void Loop(absl::Duration patience);
  // Takes an entry whose time has come; null if none.
  std::shared_ptr<Entry> TakeLocked(absl::Duration patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time of the next turn.
  std::chrono::steady_clock::time_point NextTimeLocked(absl::Duration patience) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts an entry back before those that came later.
  void PutBackLocked(std::shared_ptr<Entry> entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Work work_;
  const Listener listener_;

  Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  // At most one for each of the agent's active runs.
  std::deque<std::shared_ptr<Entry>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<Entry>> under_way_ ABSL_GUARDED_BY(mutex_);  // by ticket

  std::vector<std::thread> threads_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_FILES_LANE_H_
