// Starts runs on the agent's own machine when their turn has come, watches them to their end, and
// says on the board what it sees.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULER_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "agents/machines/container_remover.h"
#include "agents/machines/files_lane.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_scheduler.h"
#include "agents/machines/scheduling/cluster_queue.h"
#include "agents/machines/supervisors.h"

namespace muster::machines {

struct SchedulerOptions {
  std::string runs_directory;
  HostView machine;
  std::vector<v1::ClusterIssue> issues;  // of it
  uint32_t keep_finished_runs = 0;
  // Brings the files of runs to their working directories; empty: no run brings any.
  FilesLane::Work lay_out = {};
};

// A run, and the files that it comes before.
struct ArrivingRun {
  QueuedRun run;
  v1::JobSpec brought = {};  // the job's uploads; none: nothing is to be fetched
  bool makes_results = false;
};

// A run that an earlier agent has started.
struct RunningRun {
  std::string run_key;
  Claim claim;
  Allocation allocation;
  absl::Duration time_limit = absl::InfiniteDuration();  // from the start of its supervisor
};

class Scheduler : public RunScheduler {
 public:
  // The board must outlive the scheduler.
  Scheduler(SchedulerOptions options, std::unique_ptr<Supervisors> supervisors, RunBoard* board);
  // Ends no run.
  ~Scheduler() override;

  // Begins to work, with the runs that were found in their directories: those to watch, and
  // finished ones, the oldest first. Messages wait until then. `hold_starts`: no run starts before
  // AllowStarts. Call Cancel after the cancel file was made, or could not be made.
  void Start(std::vector<RunningRun> running, std::deque<std::string> finished, bool hold_starts);

  // Tells it as PENDING. Fetches its files first.
  void Enqueue(ArrivingRun run);

 private:
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

  void Wake() override { supervisors_->Post(); }
  void OnCancel(const std::string& run_key) override;
  void OnForget(const std::string& run_key) override;
  void Loop();
  void Arrive(ArrivingRun run);
  void OnContainersGone(const std::string& run_key);
  void AdoptRunning(const RunningRun& run);

  void CloseCanceled();
  absl::Status StartRun(const ReadyRun& ready);
  // Pauses all starts after a run could not be taken or closed, which waits again.
  void PauseFor(const std::string& run_key, const std::string& why);
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
  // Watches the other supervisor and returns true if another one has taken the run.
  bool FollowClaim(Active active, const RunFiles& files);
  void Finish(const Active& active, const agents::Observation& end);

  RunDirectory DirectoryOf(const std::string& run_key) const;
  // Begins to remove the run's containers. True: OnContainersGone follows. False: it has none.
  bool RemoveContainers(const std::string& run_key);
  void CleanUp(const std::string& run_key);
  void PruneFinished();
  void Publish() {
    RunScheduler::Publish(closing_.size(), active_.size(), {options_.machine}, options_.issues);
  }

  const SchedulerOptions options_;
  const std::unique_ptr<Supervisors> supervisors_;
  std::atomic<bool> stop_ = false;

  // The thread owns these.
  std::set<std::string> closing_;         // canceled runs whose end could not be written yet
  std::map<std::string, Active> active_;  // by run key
  std::deque<std::string> finished_;      // run keys, the oldest first
  std::thread thread_;
  ContainerRemover remover_;  // posts messages
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULER_H_
