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

// A run that was started before this agent was.
struct RunningRun {
  std::string run_key;
  Claim claim;
  Allocation allocation;
  absl::Duration time_limit = absl::InfiniteDuration();  // from the start of its supervisor
};

class Scheduler {
 public:
  // `hosts`: this machine alone. The board outlives the scheduler.
  Scheduler(SchedulerOptions options, std::vector<ClusterHost> hosts,
            std::unique_ptr<Supervisors> supervisors, RunBoard* board);
  // Runs go on without it.
  ~Scheduler();

  // Begins to work, with what was found in the runs' directories: runs to watch, and finished runs,
  // the oldest first. Before it, messages wait. `hold_starts`: nothing begins before AllowStarts.
  void Start(std::vector<RunningRun> running, std::deque<std::string> finished, bool hold_starts);

  void Enqueue(QueuedRun run);
  // Its files come first; then it stands in the queue where it would if they had been there.
  void Enqueue(RunWithFiles run);
  // The cancel file is there already, or could not be made.
  void Cancel(const std::string& run_key);
  void Forget(const std::string& run_key);
  // Nothing changes for a run that does not wait.
  void SetHeld(const std::string& run_key, bool held);
  // Cancels and holds that were asked for before this come first.
  void AllowStarts();

  // The allocations of runs and the queue, at some moment just past.
  struct Load {
    Ledger ledger;
    Occupants occupants = {};
    QueueOutlook outlook = {};  // those that wait for files are among the waiting
    size_t waiting = 0;         // held and canceled ones too
    size_t running = 0;
  };
  Load load() const;
  // How long the run waits at the most if it comes now; InfiniteDuration: nobody knows.
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
    bool awaits_removal = false;          // has ended, but for its containers
    std::optional<int> wait_status = {};  // of its supervisor, then
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
  // The run could not be started or closed: waits a while before the next try, of any. Such trouble
  // (a full disk, too many processes) is the machine's, so the next run in the queue would not fare
  // better.
  void HoldStarts(const std::string& run_key, const std::string& why);
  bool AreStartsHeld() const { return starts_held_ || time_.Now() < hold_until_; }
  // Takes a run out that has no supervisor, and whether there was one.
  bool TakeWaiting(const std::string& run_key);
  // Ends a run that has not started and never will.
  void CloseUnstarted(const std::string& run_key);

  // Looks whether the command has started.
  void OnStarted(const std::string& run_key);
  // The exit record is being put on disk; nothing of the run is left, so others may have its place.
  void OnExitRecord(const std::string& run_key);
  void OnEnded(const std::string& run_key);
  // Its supervisor says that it has ended without having taken the run: the only case in which a
  // run is started again.
  void OnNotTaken(const Active& active, int wait_status);
  // Ends a run that has begun, whose supervisor has ended; without its exit record, once all of its
  // processes have gone: until then it has its place, and nobody may start it anew.
  void Conclude(Active active, RunFiles files);
  // Returns whether another supervisor has the run, and is now watched in place of the one that has
  // ended.
  bool FollowClaim(Active active, const RunFiles& files);
  void Finish(const Active& active, const agents::Observation& end);

  RunDirectory DirectoryOf(const std::string& run_key) const;
  Witness WitnessOf(const std::string& run_key) const;
  void PublishReasons();
  void PublishLoad();
  // Begins to remove its containers, if it has any; ContainersGoneMessage follows.
  bool RemoveContainers(const std::string& run_key);
  void CleanUp(const std::string& run_key);
  void PruneFinished();

  const SchedulerOptions options_;
  const agents::SteadyTime time_;  // for waits; what is reported has the time of day
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
  std::set<std::string> closing_;         // canceled, and their end could not be written yet
  std::map<std::string, Active> active_;  // by run key
  std::deque<std::string> finished_;      // run keys, the oldest first
  bool starts_held_ = false;              // until the broker's wishes are known
  absl::Time hold_until_ = absl::InfinitePast();  // no start before
  v1::StateReason hold_reason_;
  std::thread thread_;
  ContainerRemover remover_;               // posts messages
  std::unique_ptr<FilesLane> files_lane_;  // likewise; null: no run brings files
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULER_H_
