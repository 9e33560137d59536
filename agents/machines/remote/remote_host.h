// Works on one host over SSH: what the agent does there, and what it hears from there.
//
// It has four threads: one asks for reports, which wait on the host until there is news, and
// prepares the host at first (the supervisor's program, the directory, what it has); one gives the
// commands, one after the other; one lays out what runs bring along before their starts are given,
// so that no command waits for it; one sends leases. They tell the scheduler through a callback,
// from their own threads. Another one, the lane's, reads files. Methods may be called from any
// thread, and return at once.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_HOST_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_HOST_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/files/host_trees.h"
#include "agents/files/job_files.h"
#include "agents/files/turns.h"
#include "agents/hosts/ssh_host.h"
#include "agents/machines/host_config.h"
#include "agents/machines/host_report.h"
#include "agents/machines/machine.h"
#include "agents/machines/remote/command_queue.h"
#include "agents/machines/remote/host_channel.h"
#include "agents/machines/remote/host_clock.h"
#include "agents/machines/remote/host_lane.h"
#include "agents/machines/remote/supervisor_program.h"
#include "agents/machines/run_signal.h"
#include "agents/machines/work_sweeper.h"
#include "sync/mutex.h"

namespace muster::machines {

// A report without news comes after this long: a sign of life.
inline constexpr absl::Duration kReportPatience = absl::Seconds(10);
// A look at the processes there.
inline constexpr absl::Duration kSignalPatience = absl::Seconds(10);
// Starting a process, and a few small files on disk; a host under load takes seconds.
inline constexpr absl::Duration kCommandPatience = absl::Seconds(60);
// The pause between two tries to reach a host.
inline constexpr absl::Duration kHostRetry = absl::Seconds(1);

// An agent sends files to this many hosts at a time: each has a part of an archive and the names of
// all files in the agent's memory meanwhile, some 10 to 20 MiB.
inline constexpr size_t kHostsSentTo = 4;

// The turns of all hosts together.
struct LayoutTurns {
  uploads::Turns reading{kHostsSentTo};  // what the files are: moments, where they have come
  uploads::Turns sending{kHostsSentTo};  // kFetchPatience each, and what is under way then

  void Stop() {
    reading.Stop();
    sending.Stop();
  }
};

// ---- what the host says

// A report follows at once.
struct HostIsUp {
  Machine machine;
  std::string directory;  // of this host, there: absolute
};
struct HostIsDown {
  std::string why;
};
struct HostReported {
  HostReport report;  // its times are by the agent's clock
};
// OK: the rank has begun there. UNAVAILABLE: nobody knows. INVALID_ARGUMENT: it was not started,
// and what the job names is not there as it says. Others: the host could not start it.
struct StartDone {
  std::string run_key;
  size_t rank = 0;
  absl::Status status;
  bool was_sent = false;  // the host may have been asked
  // The reason why the run is refused, if the host is not the reason.
  std::optional<v1::Failure> refused = {};
};
// OK: the host has it in hand. Others: ask again.
struct StopDone {
  std::string run_key;
  size_t rank = 0;
  absl::Status status;
};
// A clean-up is done, as far as the host could do it.
struct CleanDone {
  std::vector<std::string> directories;
  bool logs = false;
};
using HostEvent = std::variant<HostIsUp, HostIsDown, HostReported, StartDone, StopDone, CleanDone>;

class RemoteHost {
 public:
  struct Options {
    HostConfig config;
    std::string directory;  // on the host, "" for its home's: its own name is added
    std::string cluster;
    bool limits = true;  // hold runs to what they ask for
    std::string container_runtime = kNoContainers;
    absl::Duration keep_work = absl::InfiniteDuration();  // how long files of old runs stay
    std::shared_ptr<const SupervisorProgram> program;
    uploads::JobFiles* files = nullptr;  // that jobs bring along; outlives the host. Null: none
    LayoutTurns* turns = nullptr;        // likewise; stopped before the host ends
  };
  using Listener = std::function<void(HostEvent)>;

  static absl::StatusOr<std::unique_ptr<RemoteHost>> Create(Options options, Listener listener);
  // Runs go on. The listener is not called afterwards.
  ~RemoteHost();

  void StartThreads();

  const HostConfig& config() const { return options_.config; }
  // Returns the lane that reads files. It outlives the host, and answers nothing then.
  std::shared_ptr<HostLane> lane() const { return lane_; }

  // Reports tell of this run from the next question on, as long as it is not over. `directory` is
  // the run's, there; it stays where it is when the host's own changes.
  void Watch(const std::string& run_key, const std::string& directory, HostStage known);
  void Unwatch(const std::string& run_key);

  // Asks about the runs that are watched now; Start does so by itself.
  void AskAnew();
  // Watch comes first. Each is answered by an event. A start that has not been sent when the rank
  // is stopped never is; one whose files are being laid out then is answered when that step ends.
  void Start(RankStart start);
  void Stop(const std::string& run_key, size_t rank, const std::string& directory);
  // Signals the rank's processes, beside other commands. Blocks. UNAVAILABLE: the host does not
  // answer; FAILED_PRECONDITION: it says why not. Any thread.
  absl::Status Signal(const std::string& directory, const ProcessSignal& signal);
  // Writes a file of a lease into the host's directory, as soon as it can be reached; the latest
  // one counts.
  void PutLease(std::string name, std::string content);
  // Removes files of old runs there, step by step, when there is nothing else to do.
  void Sweep();
  // Returns the progress of a rank whose files have to be laid out before it can start.
  std::optional<FilesSent> LayoutOf(const std::string& run_key, size_t rank) const;
  // Repeated until it is done, then answered, as long as the agent lives.
  void Clean(const std::string& directory, bool logs);

 private:
  struct Watched {
    std::string directory;
    HostStage known;
  };

  RemoteHost(Options options, Listener listener, std::unique_ptr<hosts::SshHost> ssh);

  // ---- the thread of reports
  void ReportLoop();
  // Prepares the host if nobody has yet, and returns the news to tell once the host has reported.
  absl::StatusOr<std::optional<HostIsUp>> Prepare();
  // UNAVAILABLE: the host could not be asked.
  absl::StatusOr<LimitsFound> FindLimits(HostChannel* channel);
  // Asks, and tells the answer.
  absl::Status Report(std::optional<HostIsUp> is_up);
  struct Answer {
    HostReport report;
    int64_t question;  // that it answers
  };
  absl::StatusOr<Answer> AskForReport(absl::Duration patience);
  // Returns whether one of them was not known.
  bool TakeStages(const HostReport& report);
  bool NoteStage(const std::string& run_key, HostStage stage);
  // Returns whether the agent has not asked anything else since.
  bool IsLatest(int64_t question) const;
  // False: the agent stops.
  bool Pause(absl::Duration time);

  // ---- the thread of leases (remote_host_leases.cc)
  void LeaseLoop();
  // Sends the latest one. FAILED_PRECONDITION: there is none, or the host cannot write it.
  absl::Status SendLease();

  // ---- the thread of commands
  void CommandLoop();
  void Do(const RankStart& start);
  void Do(const RankStop& stop);
  void Do(const CleanCommand& clean);
  void Do(const SweepCommand& sweep);
  // Null: the host is not prepared.
  std::shared_ptr<HostChannel> CommandsChannel() const;
  std::string RunsDirectory() const;
  absl::Status NoAnswer() const;
  static absl::Status WasToEnd() {
    return absl::UnavailableError("it was to end before it was started");
  }

  // ---- starts: the thread of commands, and that of layouts (remote_host_starts.cc)
  void LayoutLoop();
  void LayOut(RankStart start);
  StartDone StartRank(const RankStart& start);
  // Returns whether the host can be asked now.
  absl::Status Reach();
  // Prepares the files and directories that a start needs. Returns the answer to the start if they
  // are not ready; DEADLINE_EXCEEDED: they are on their way. `made_work`: the files were laid out
  // now.
  StartDone PrepareRank(const RankStart& start, bool* made_work);
  // UNAVAILABLE: nobody knows; INVALID_ARGUMENT: the job is wrong.
  absl::Status PrepareStart(const RankStart& start, std::optional<v1::Failure>* refused,
                            bool* made_work);
  // Lays out the files of the job as the rank's working directory. DEADLINE_EXCEEDED: they are on
  // their way. UNAVAILABLE, INVALID_ARGUMENT as above; FAILED_PRECONDITION: there is no room for
  // it. `refused`: the files could not be fetched, whatever the host.
  absl::Status LayOutFiles(const RankStart& start, std::optional<v1::Failure>* refused);
  // Errors concern the files, with `refused`, or come from HostTrees.
  absl::StatusOr<uploads::LocalFiles> FetchFiles(const RankStart& start,
                                                 std::optional<v1::Failure>* refused);
  absl::StatusOr<uploads::TreeName> ReadTreeName(const RankStart& start,
                                                 std::optional<v1::Failure>* refused);
  // Sends the files when their turn comes. Returns the archive's SHA-256.
  absl::StatusOr<std::string> SendFiles(const RankStart& start, const uploads::TreeName& tree,
                                        uploads::HostTrees* trees,
                                        std::optional<v1::Failure>* refused);
  absl::Status PutFiles(const RankStart& start, uploads::HostTrees* trees,
                        std::optional<v1::Failure>* refused);
  bool IsLayoutWanted() const;
  void NoteSent(const FilesSent& sent);
  // Removes the work directory of a rank of which nothing runs and nothing will. Files that cannot
  // be removed stay.
  void RemoveWork(const RankStart& start);
  // Has the supervisor's program there carry out a command. UNAVAILABLE: it may have run;
  // FAILED_PRECONDITION: it says that it could not.
  absl::StatusOr<std::string> RunSupervisor(std::vector<std::string> words, std::string input,
                                            absl::Duration patience);
  absl::StatusOr<std::string> Give(const std::shared_ptr<HostChannel>& channel,
                                   std::vector<std::string> words, std::string input,
                                   absl::Duration patience) const;

  const Options options_;
  const Listener listener_;
  const std::unique_ptr<hosts::SshHost> ssh_;
  const std::shared_ptr<HostLane> lane_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Null: the host is not prepared.
  std::shared_ptr<HostChannel> commands_channel_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<HostChannel> reports_channel_ ABSL_GUARDED_BY(mutex_);
  std::string runs_directory_ ABSL_GUARDED_BY(mutex_);  // there, once prepared
  // There, once prepared, if jobs may bring files.
  std::shared_ptr<uploads::HostTrees> trees_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Watched> watched_ ABSL_GUARDED_BY(mutex_);  // by run key
  // Its number, which is a new one when more runs are watched.
  int64_t question_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t told_ ABSL_GUARDED_BY(mutex_) = 1;  // the latest one that the host knows to come
  CommandQueue commands_ ABSL_GUARDED_BY(mutex_);
  std::string lease_name_ ABSL_GUARDED_BY(mutex_);
  std::string lease_ ABSL_GUARDED_BY(mutex_);
  bool is_lease_new_ ABSL_GUARDED_BY(mutex_) = false;  // it was not sent yet

  HostClock clock_;   // the thread of reports has it
  SweepSteps sweep_;  // the thread of commands has it
  std::thread report_thread_;
  std::thread command_thread_;
  std::thread layout_thread_;
  std::thread lease_thread_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_HOST_H_
