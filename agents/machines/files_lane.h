// Fetches and lays out the files that runs bring along, beside everything else: meanwhile runs
// without files start, and cancels are heard.
//
// Runs have turns in the order of their arrival. One whose files cannot be had now goes behind the
// others, and has its next turn after a pause. One whose files are all here has a turn beside those
// that wait for the broker.
//
// Any thread may call, and nothing waits. The work is done, and its news told, by threads of the
// lane.
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
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "contract/sentences.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::machines {

// Why a run waits that has come to the lane and has not had a turn.
inline v1::StateReason FetchesFiles() {
  return contract::MakeReason(v1::STATE_REASON_CODE_BRINGING_FILES,
                              {.detail = "its files are being fetched"});
}

// While one run's files are copied, another's are fetched; and a job with little to bring does not
// wait for a large one.
inline constexpr size_t kFilesThreads = 2;
// The patience of a turn that asks nobody.
inline constexpr absl::Duration kNoPatience = -absl::InfiniteDuration();
// Until the next turn of a run whose files could not be had from the broker: the turn itself waits
// for it, but not if a file was damaged on the way.
inline constexpr absl::Duration kFetchRetry = absl::Seconds(2);
// Until the next turn of a run for whose files there was no room: soon enough for people who make
// some.
inline constexpr absl::Duration kRoomRetry = absl::Seconds(5);

struct FilesNews {
  enum class Kind {
    kReady,   // they are there
    kWaits,   // they are not there yet: `reason`
    kFailed,  // they never will be: `failure`
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
    bool makes_results = false;  // also the directory of its results, in the working directory
    uint64_t bytes = 0;          // that its copy takes; 0: not known yet
  };

  // The news from outside that a turn is given.
  class Turn {
   public:
    Turn(std::mutex* mutex, const std::atomic<bool>* dropped, absl::Duration patience)
        : mutex_(mutex), dropped_(dropped), patience_(patience) {}
    // How long it may wait for the broker.
    absl::Duration patience() const { return patience_; }
    // Nobody wants the files any more.
    bool IsOver() const { return *dropped_; }
    // Takes the last step, which must be short, unless they are not wanted any more: CANCELLED.
    absl::Status Conclude(const std::function<absl::Status()>& step) const;

   private:
    std::mutex* const mutex_;
    const std::atomic<bool>* const dropped_;
    const absl::Duration patience_;
  };

  // Fetches the task's files and puts them where they belong. UNAVAILABLE, DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED: there will be other turns. A first one may be without patience.
  using Work = std::function<absl::Status(Task*, const Turn&)>;
  using Listener = std::function<void(FilesNews)>;

  FilesLane(Work work, Listener listener);
  // Waits for turns that are under way. The listener is not called afterwards.
  ~FilesLane();

  // The ticket, which its news have. `job`: whose uploads they are.
  uint64_t Add(const std::string& run_key, const v1::JobSpec& job, bool makes_results);
  // Nobody wants them any more: when this returns nothing more is put anywhere. News that is on its
  // way may still come.
  void Drop(uint64_t ticket);

 private:
  struct Entry {
    Task task;
    std::chrono::steady_clock::time_point not_before = {};
    bool was_looked_for = false;  // a turn has begun, perhaps one that asked nobody
    std::atomic<bool> dropped = false;
  };

  // The loop of each thread. Without patience: first turns alone.
  void Loop(absl::Duration patience);
  // One whose time has come; null: none.
  std::shared_ptr<Entry> TakeLocked(absl::Duration patience);
  // When the next one's time comes.
  std::chrono::steady_clock::time_point NextTimeLocked(absl::Duration patience) const;
  // Before those that came later.
  void PutBackLocked(std::shared_ptr<Entry> entry);

  const Work work_;
  const Listener listener_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool stopping_ = false;
  uint64_t next_ticket_ = 1;
  std::deque<std::shared_ptr<Entry>> waiting_;  // at most one for each of the agent's active runs
  std::map<uint64_t, std::shared_ptr<Entry>> under_way_;  // by ticket

  std::vector<std::thread> threads_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_FILES_LANE_H_
