// Starts runs when their turn has come, watches them to their end, and says on the board what it
// sees.
//
// One thread owns queue and supervisors; the public calls may come from any thread and
// only leave a message.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULER_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/machines/container_remover.h"
#include "agents/machines/files_lane.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/scheduling/cluster_queue.h"
#include "agents/machines/supervisors.h"
#include "agents/machines/verdict.h"

namespace muster::machines {

struct SchedulerOptions {
  std::string runs_directory;
  std::string hostname;
  uint32_t keep_finished_runs = 0;
  // How the files of runs come to their working directories; empty: none bring any.
  FilesLane::Work lay_out = {};
};

// A run that comes before its files.
struct RunWithFiles {
  QueuedRun run;
  v1::JobSpec brought;  // the job's uploads
  bool makes_results = false;
};

// A run that an earlier agent has started.
struct RunningRun {
  std::string run_key;
  Claim claim;
  Allocation allocation;
  absl::Duration time_limit = absl::InfiniteDuration();  // from the start of its supervisor
};

class Scheduler {
 public:
  // `hosts`: only this machine. The board must outlive the scheduler.
  Scheduler(SchedulerOptions options, std::vector<ClusterHost> hosts,
            std::unique_ptr<Supervisors> supervisors, RunBoard* board);
  // Ends no run.
  ~Scheduler();

  // Begins to work, with the runs that were found in their directories: those to watch, and
  // finished ones, the oldest first. Messages wait until then. `hold_starts`: no run starts before
  // AllowStarts.
  void Start(std::vector<RunningRun> running, std::deque<std::string> finished, bool hold_starts);

  void Enqueue(QueuedRun run);
  // Fetches the run's files first; its place in the queue is that of its arrival.
  void Enqueue(RunWithFiles run);
  // Call it after the cancel file was made, or could not be made.
  void Cancel(const std::string& run_key);
  void Forget(const std::string& run_key);
  // Has no effect on a run that does not wait.
  void SetHeld(const std::string& run_key, bool held);
  // Runs may start from now on, after the cancels and holds that were asked for before.
  void AllowStarts();

  // The allocations of runs and the queue, as they were a moment ago.
  struct Load {
    Ledger ledger;
    Occupants occupants = {};
    QueueOutlook outlook = {};  // its waiting runs include those that wait for files
    size_t waiting = 0;         // with held and canceled runs
    size_t running = 0;
  };
  Load load() const;
  // Returns how long the run waits at most if it comes now; InfiniteDuration: nobody knows.
  absl::Duration WaitOf(const QueuedRun& run) const;

  uint64_t supervisors_started() const { return supervisors_started_; }

 private:
  struct CancelMessage {
    std::string run_key;
  };
  struct ForgetMessage {
    std::string run_key;
  };
  struct HoldMessage {
    std::string run_key;
    bool held;
  };
  struct AllowStartsMessage {};
  struct ContainersGoneMessage {
    std::string run_key;
  };
  using Message = std::variant<QueuedRun, RunWithFiles, FilesNews, CancelMessage, ForgetMessage,
                               HoldMessage, AllowStartsMessage, ContainersGoneMessage>;

  // A run whose files are not there yet.
  struct AwaitingFiles {
    QueuedRun run;
    uint64_t ticket = 0;  // of the lane
  };

  // A run that has a supervisor.
  struct Active {
    QueuedRun run;
    pid_t supervisor = -1;
    bool cancel_asked = false;
    bool forget_at_end = false;
    bool running = false;
    bool awaits_removal = false;          // only its containers are left
    std::optional<int> wait_status = {};  // of its supervisor, with awaits_removal
  };

  void Post(Message message);
  void Loop();
  void Handle(QueuedRun run);
  void Handle(RunWithFiles run);
  void Handle(FilesNews news);
  void Handle(const CancelMessage& message);
  void Handle(const ForgetMessage& message);
  void Handle(const HoldMessage& message);
  void Handle(const AllowStartsMessage&) { starts_held_ = false; }
  void Handle(const ContainersGoneMessage& message);
  void AdoptRunning(const RunningRun& run);

  void StartReady();
  absl::Status StartRun(const ReadyRun& ready);
  // Pauses all starts after a run could not be started or closed: such trouble (a full disk, too
  // many processes) is the machine's, so that the next run in the queue would not fare better.
  void HoldStarts(const std::string& run_key, const std::string& why);
  bool AreStartsHeld() const { return starts_held_ || time_.Now() < hold_until_; }
  // Removes a run that has no supervisor. Returns false if there is none of this key.
  bool TakeWaiting(const std::string& run_key);
  // Ends a run that has not started and never will.
  void CloseUnstarted(const std::string& run_key);

  // Looks whether the command has started.
  void OnStarted(const std::string& run_key);
  // The run's processes are gone, and its exit record goes to the disk: others may have its place.
  void OnExitRecord(const std::string& run_key);
  void OnEnded(const std::string& run_key);
  // The supervisor has ended without taking the run: the only case in which a run is started again.
  void OnNotTaken(const Active& active, int wait_status);
  // Ends a run that has begun and whose supervisor has ended. If there is no exit record, it waits
  // until all processes of the run are gone; the run keeps its place until then.
  void Conclude(Active active, RunFiles files);
  // If another supervisor has taken the run, watches that one and returns true.
  bool FollowClaim(Active active, const RunFiles& files);
  void Finish(const Active& active, const agents::Observation& end);

  RunDirectory DirectoryOf(const std::string& run_key) const;
  Witness WitnessOf(const std::string& run_key) const;
  void PublishReasons();
  void PublishLoad();
  // Begins to remove the run's containers. True: ContainersGoneMessage follows. False: it has none.
  bool RemoveContainers(const std::string& run_key);
  void CleanUp(const std::string& run_key);
  void PruneFinished();

  const SchedulerOptions options_;
  const agents::SteadyTime time_;  // for waits; reports have the time of day
  RunBoard* const board_;
  const std::unique_ptr<Supervisors> supervisors_;
  std::atomic<uint64_t> supervisors_started_ = 0;
  std::atomic<bool> stop_ = false;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Message> messages_;  // at most a few for each of the agent's active runs
  Load load_;

  // Owned by the thread.
  ClusterQueue queue_;
  std::map<std::string, AwaitingFiles> awaiting_files_;  // by run key
  std::set<std::string> closing_;         // canceled runs whose end could not be written yet
  std::map<std::string, Active> active_;  // by run key
  std::deque<std::string> finished_;      // run keys, the oldest first
  bool starts_held_ = false;              // until AllowStarts
  absl::Time hold_until_ = absl::InfinitePast();  // no run starts before
  v1::StateReason hold_reason_;
  std::thread thread_;
  ContainerRemover remover_;               // posts messages
  std::unique_ptr<FilesLane> files_lane_;  // likewise; null: no run brings files
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULER_H_
