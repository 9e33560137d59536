// The common part of the schedulers for the agent's own machine (scheduler.h) and for hosts over
// SSH (remote/remote_scheduler.h): messages to the thread that owns the runs, and the queue with
// all that keeps runs from starting: files that have yet to come, their turn, the broker's word
// after a restart of the agent, and a pause after trouble.
//
// One thread owns all that is protected here; the public calls may come from any thread and only
// leave a message.
#ifndef MUSTER_AGENTS_MACHINES_RUN_SCHEDULER_H_
#define MUSTER_AGENTS_MACHINES_RUN_SCHEDULER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/machines/files_lane.h"
#include "agents/machines/load.h"
#include "agents/machines/run_board.h"
#include "agents/machines/scheduling/cluster_queue.h"
#include "agents/machines/verdict.h"
#include "sync/mutex.h"

namespace muster::machines {

class RunScheduler {
 public:
  virtual ~RunScheduler() = default;

  void Cancel(const std::string& run_key) {
    Post([this, run_key] { OnCancel(run_key); });
  }
  void Forget(const std::string& run_key) {
    Post([this, run_key] { OnForget(run_key); });
  }
  // Holds or releases a waiting run; has no effect on any other.
  void SetHeld(const std::string& run_key, bool held) {
    Post([this, run_key, held] { OnHold(run_key, held); });
  }
  // Runs may start from now on, after the cancels and holds that were asked for before.
  void AllowStarts() {
    Post([this] { OnStartsAllowed(); });
  }

  // Returns the load of a moment ago.
  Load load() const;
  // Returns how long the run waits at most if it comes now; InfiniteDuration: nobody knows.
  absl::Duration WaitOf(const QueuedRun& run) const;
  // Returns the number of supervisors that have been started.
  uint64_t started() const { return started_; }
  Witness WitnessOf(const std::string& run_key) const {
    return {.run_key = run_key, .hostname = basics_.hostname, .now = absl::Now()};
  }

 protected:
  using Message = absl::AnyInvocable<void()>;

  struct Basics {
    std::string starter;         // that cannot start runs when there is trouble: "machine"
    std::string hostname = {};   // in evidence
    FilesLane::Work fetch = {};  // how the files of runs come; empty: none bring any
  };
  // The board outlives the scheduler.
  RunScheduler(Basics basics, std::vector<ClusterHost> hosts, RunBoard* board);

  // ---- messages

  // Any thread may use it.
  void Post(Message message);
  // Tells the thread that there is a message. Any thread.
  virtual void Wake() = 0;
  void HandleMessages();
  virtual void OnCancel(const std::string& run_key) = 0;
  virtual void OnForget(const std::string& run_key) = 0;
  virtual void OnStartsAllowed() { starts_held_ = false; }
  // The run will never have its files, and has been taken out.
  virtual void OnNoFiles(const std::string& /*run_key*/) {}
  // Ends the fetching of files. Destructors must call it, because files Wake the thread.
  void StopFetching() { files_lane_.reset(); }

  // ---- runs that wait

  void PushRun(QueuedRun run);
  bool TakesFiles() const { return files_lane_ != nullptr; }
  bool AwaitsFiles(const std::string& run_key) const { return awaiting_files_.contains(run_key); }
  // Fetches the uploads of the run's job first; its place in the queue is that of its arrival.
  // Nothing happens if that is under way.
  void AwaitFiles(QueuedRun run, const v1::JobSpec& brought, bool makes_results);
  // Returns false if the run does not wait.
  bool RemoveWaiting(const std::string& run_key);

  // ---- starts

  // Starts no run for a while after one could not be started: such trouble (a full disk, too many
  // processes) is not about the run, so the next one would not fare better.
  void Pause(const std::string& run_key, const std::string& why);
  // Returns how much of the pause is left.
  absl::Duration Rest() const;
  // Starts the runs whose turn has come. A pause begins if one could not be started.
  void StartReady(const std::function<absl::Status(const ReadyRun&)>& start);

  // Says on the board why runs wait, and notes the load. `others` wait beside the queue.
  void Publish(size_t others, size_t running, std::vector<HostView> hosts,
               std::vector<v1::ClusterIssue> issues);

  const agents::SteadyTime time_;  // for waits; reports have the time of day
  RunBoard* const board_;
  ClusterQueue queue_;        // the runs that have their files, and those that have hosts
  bool starts_held_ = false;  // until AllowStarts
  std::atomic<uint64_t> started_ = 0;

  mutable Mutex mutex_;
  // At most a few for each active run and host.
  std::vector<Message> messages_ ABSL_GUARDED_BY(mutex_);

 private:
  // A run whose files are not there yet.
  struct AwaitingFiles {
    QueuedRun run;
    uint64_t ticket = 0;  // of the lane
  };

  void OnHold(const std::string& run_key, bool held);
  void OnFiles(const FilesNews& news);
  bool MayStart() const { return !starts_held_ && Rest() <= absl::ZeroDuration(); }
  void PublishReasons();

  const Basics basics_;
  std::map<std::string, AwaitingFiles> awaiting_files_;  // by run key
  absl::Time hold_until_ = absl::InfinitePast();         // no run starts before
  v1::StateReason hold_reason_;
  Load load_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FilesLane> files_lane_;  // posts messages; null: no run brings files
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_SCHEDULER_H_
