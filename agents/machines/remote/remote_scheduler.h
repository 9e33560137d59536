// Starts runs on hosts over SSH when their turn has come, watches all their ranks to the end, and
// says on the board what it hears.
//
// Its actions about a run follow from the present facts about its ranks (Advance), whatever has
// happened before, so that a restart, a lost connection or a late answer needs no code of its own.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_SCHEDULER_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_SCHEDULER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/machines/load.h"
#include "agents/machines/remote/gang.h"
#include "agents/machines/remote/host_record.h"
#include "agents/machines/remote/host_router.h"
#include "agents/machines/remote/launch_record.h"
#include "agents/machines/remote/remote_host.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_scheduler.h"
#include "agents/machines/run_signal.h"
#include "agents/machines/scheduling/cluster_queue.h"

namespace muster::machines {

struct RemoteSchedulerOptions {
  std::string cluster;
  std::string runs_directory;   // the agent's own records
  std::string hosts_directory;  // likewise, of what hosts have
  std::string host_directory;   // on the hosts; empty: in the home there
  RunRules rules;
  std::string container_runtime;  // which is wanted
  absl::Duration lost_after;
  uint32_t keep_finished_runs = 0;
  absl::Duration keep_work = absl::InfiniteDuration();  // likewise files
  std::shared_ptr<const SupervisorProgram> program;
  uploads::JobFiles* files = nullptr;  // that jobs bring along; null: none
  // Returns the name of the file of the present lease (agents/machines/leases.h). Any thread.
  std::function<std::string()> lease_name;
  // Reads the file of hosts anew.
  std::function<absl::StatusOr<std::vector<HostConfig>>()> read_hosts;
};

// A run that waits, with what it will run.
struct WaitingRun {
  QueuedRun run;
  std::shared_ptr<const agent::v1::Assignment> assignment;
  uint32_t refusals = 0;  // by hosts that could not start it, after each of which it waited again
};

// A run that has its hosts.
struct PlacedRun {
  WaitingRun what;  // no assignment: the record of it is damaged
  std::vector<PlacedRank> placement;
  bool is_wanted = true;
  std::set<size_t> begun;
  std::map<size_t, v1::Failure> refused;
  absl::Time refused_at = absl::InfinitePast();
  absl::Time last_word = absl::InfinitePast();     // of its hosts, to an earlier agent
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;  // as the broker has it
  bool cancel_asked = false;
};

// Describes a run of which nobody wants to know any more; its output is where it was.
struct FinishedRun {
  std::string run_key;
  std::vector<PlacedRank> placement;
};

class RemoteScheduler : public RunScheduler {
 public:
  // Board and router outlive the scheduler.
  static absl::StatusOr<std::unique_ptr<RemoteScheduler>> Create(RemoteSchedulerOptions options,
                                                                 std::vector<HostConfig> hosts,
                                                                 RunBoard* board,
                                                                 HostRouter* router);
  // Runs go on without it.
  ~RemoteScheduler() override;

  // Waits until each host has answered or could not be reached, but at most `patience`.
  void AwaitHosts(absl::Duration patience);
  // Begins to work on runs; what else is said about runs comes later. `finished`: the oldest first.
  // `hold_starts`: nothing begins before AllowStarts.
  void Start(std::vector<PlacedRun> placed, std::deque<FinishedRun> finished, bool hold_starts);

  // Tells it as PENDING. Fetches its files first; then the run stands in the queue as if they had
  // been here.
  void Enqueue(WaitingRun run);
  // One that Start was not told of, as its record could not be read then.
  void Adopt(PlacedRun run);
  // Sends a signal to the ranks of a run that have begun; to the first of them, if only its first
  // process is to get it. Blocks. An error names a host. Hosts stay as long as the scheduler.
  absl::Status Signal(const std::string& run_key, const ProcessSignal& signal);
  // Writes a file of a lease to all hosts; returns at once.
  void PutLease(const std::string& name, const std::string& content);
  // Returns whether hosts have come, gone or changed since the last call.
  bool TakeNews() { return news_.exchange(false); }

 private:
  struct HostEntry {
    std::unique_ptr<RemoteHost> link;
    HostView view;
    bool has_spoken = false;    // it is up, or could not be reached
    absl::Time down_since;      // steady; since then it has not reported
    bool has_reported = false;  // since it was down last
    std::string directory;      // there; empty: not known yet
    // The last time that the host was seen, by the time of day; InfinitePast if it was never seen
    // since the agent was started.
    absl::Time last_seen = absl::InfinitePast();
    absl::Time last_report = absl::InfinitePast();  // likewise
    // By the steady clock; it holds while start_trouble says why.
    absl::Time no_starts_until = absl::InfinitePast();
    absl::Duration start_pause = absl::ZeroDuration();  // the last one
    HostRecord record;
    std::optional<Machine> unwritten = {};  // what it has told, until it is written down
  };

  // A run that has hosts, until the broker has forgotten it and they have, too.
  struct Active {
    WaitingRun what;
    Allocation allocation;
    std::vector<PlacedRank> placement;
    std::vector<Rank> ranks;
    std::set<size_t> begun;                          // as it is on disk
    absl::Time last_word = absl::InfinitePast();     // of its hosts, to an earlier agent
    absl::Time latest_end = absl::InfiniteFuture();  // steady
    bool cancel_asked = false;
    bool forget = false;  // the broker has its end, or does not know it
    bool ended = false;   // its end has been said
    bool over = false;    // of every rank, and its place is free
    // The broker may have been told that some host that has it does not answer.
    bool silence_told = false;
    bool left_behind = false;  // only hosts that are down have something of it
    v1::RunState state = v1::RUN_STATE_UNSPECIFIED;  // as it was said last
    ProgressFacts told;                              // likewise
    // Set while the run's files are put onto its hosts.
    std::optional<v1::StateReason> files_reason;
  };

  // Names the place at which a rank gets a signal; `link` is null if the host is gone.
  struct SignalPlace {
    std::string host;
    RemoteHost* link = nullptr;
    std::string directory;
  };

  RemoteScheduler(RemoteSchedulerOptions options, RunBoard* board, HostRouter* router);

  void Loop();
  std::vector<SignalPlace> SignalPlacesOf(const std::string& run_key, bool first_only) const;

  // ---- messages
  void Wake() override { changed_.notify_all(); }
  void OnCancel(const std::string& run_key) override;
  void OnForget(const std::string& run_key) override;
  void OnStartsAllowed() override;
  void OnNoFiles(const std::string& run_key) override { waiting_.erase(run_key); }
  void Begin(std::vector<PlacedRun> placed, std::deque<FinishedRun> finished, bool hold_starts);
  void Take(WaitingRun run);
  void Take(PlacedRun run);
  void On(size_t host, HostIsUp event);
  void On(size_t host, const HostIsDown& event);
  void On(size_t host, const HostReported& event);
  void On(size_t host, const StartDone& event);
  void On(size_t host, const StopDone& event);
  void On(size_t host, const CleanDone& event);

  // ---- hosts (remote_scheduler_hosts.cc)
  absl::Status AddHost(const HostConfig& config);
  // Restores the resources that an earlier agent heard of.
  void Recall(HostEntry* entry) const;
  void WriteHostRecords();
  // Adds a host while the agent runs.
  void AddNewHost(const HostConfig& config);
  // Takes in new hosts, and whether known ones are cordoned.
  void ReadHosts();
  std::vector<v1::ClusterIssue> IssuesOfFile() const;
  HostState StateOf(const HostEntry& host) const;
  void SetState(size_t host);
  // Builds the queue anew from the capacity that the hosts have now.
  void RebuildQueue();
  std::optional<size_t> FindHost(const std::string& name) const;
  void AdvanceRunsOn(size_t host);
  // Makes a pause after a start that the host could not make; each pause is longer than the one
  // before.
  void PauseStarts(size_t host, const std::string& why);
  void EndPauses();
  void GiveUpLostRuns();
  // Returns the host that keeps a run's end from being known; none if all answer.
  std::optional<v1::StateReason> SilenceOf(const Active& run, absl::Time* since) const;
  void Publish();
  // Hosts have come, gone or changed.
  void NoteNews();

  // ---- runs (remote_scheduler_runs.cc)
  // Takes a run out that has no hosts, and whether there was one.
  bool TakeWaiting(const std::string& run_key);
  absl::Status PlaceRun(const ReadyRun& ready);
  // Returns whether the cluster can never run it, and reports that then; nobody knows as long as
  // some host has not said what it has now.
  bool RefuseMisfit(const WaitingRun& run);
  void RefuseMisfits();
  // Runs of which no host has heard, and one of theirs takes none now, wait again.
  void PutBackUnsent();
  bool MayBePutBack(const Active& run) const;
  void PutBack(const std::string& run_key);
  void Advance(Active* run);
  // Tells whether no rank will send any more news.
  bool IsSettled(const Active& run) const;
  void StartRank(Active* run, size_t rank, HostEntry* host);
  absl::StatusOr<RankStart> DescribeStart(const Active& run, size_t rank) const;
  void StopRank(Active* run, size_t rank, HostEntry* host);
  void NoteBegun(Active* run, size_t rank);
  void Refuse(Active* run, size_t rank, v1::Failure failure);
  void SayProgress(Active* run);
  // Returns whether it brings files, and has no rank that has begun, or may have.
  bool IsWaitingForFiles(const Active& run) const;
  v1::StateReason FilesReasonOf(const Active& run) const;
  void RenewFilesReasons();
  // Ranks that nobody can end now do not keep the places of the run's other ranks.
  void LeaveBehind(Active* run);

  // ---- what is left of them (remote_scheduler_leftovers.cc)
  void FinishIfForgotten(const std::string& run_key);
  void Clean(FinishedRun run);
  void CleanedOn(const std::string& host, const std::string& run_key);
  void PrunedOn(const std::string& host, const std::string& run_key);
  void PruneFinished();
  // Tells the hosts to remove files of old runs.
  void SweepHosts();
  // Runs that were left on a host which was not in the file for a while.
  void TakeUpLeftovers(const std::string& host);
  LaunchRecord RecordOf(const std::string& run_key) const {
    return LaunchRecord(options_.runs_directory + "/" + run_key);
  }

  const RemoteSchedulerOptions options_;
  HostRouter* const router_;
  std::atomic<bool> news_ = false;

  std::condition_variable changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  size_t silent_ ABSL_GUARDED_BY(mutex_) = 0;  // hosts that have not spoken

  LayoutTurns layout_turns_;
  // The thread owns these once it runs.
  std::vector<HostEntry> hosts_;
  std::map<std::string, WaitingRun> waiting_;  // by run key: those in the queue
  std::map<std::string, Active> active_;       // by run key
  // Holds the run, and the hosts that have yet to remove the files that only Muster needs, by run
  // key. The agent's own record stays until then, too.
  struct Cleaning {
    FinishedRun run;
    std::set<std::string> hosts;
  };
  std::map<std::string, Cleaning> cleaning_;
  std::deque<FinishedRun> finished_;  // the oldest first
  // The hosts that have yet to remove the output, by run key. These are runs of hosts that are
  // away.
  std::map<std::string, std::set<std::string>> pruning_;
  bool is_working_ = false;                               // Start was called
  absl::Time next_look_ = absl::InfinitePast();           // at the file of hosts
  absl::Time next_sweep_ = absl::InfinitePast();          // of the files of old runs
  absl::Time next_files_reasons_ = absl::InfinitePast();  // of runs whose files are copied
  absl::Status last_read_;                                // of it
  std::map<std::string, absl::Status> not_added_;         // by name: what is wrong with these
  std::thread thread_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_SCHEDULER_H_
