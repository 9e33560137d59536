// The contract that every kind of cluster fulfils for the agent.
//
//   Launch --> launched --> waits --> runs --> has ended --> Forget
//     |           Observe tells of each step, Hold keeps a run in "waits", End asks for its end
//     +--> refused: it is not there and never will be
//     +--> deferred: it is not there; Launch again after a while
//     +--> unclear --> Lookup --> found: as launched
//                        +------> absent, for as long as Capabilities::lookup_grace: Launch again
//                                   +--> Fence, if it is to end: it is not there and never will be
//
// The agent calls a backend from several threads at once, but never with two of Launch, Lookup,
// End, Hold, Fence and Forget for the same run at the same time; Observe and OpenLogs may overlap
// with any of them. Calls may block; each bounds its own time. Launch, End, Hold and Forget take
// one or more runs, none of them twice, and return an answer for each, in the same order.
#ifndef MUSTER_AGENTS_CORE_BACKEND_H_
#define MUSTER_AGENTS_CORE_BACKEND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.pb.h"
#include "muster/v1/signal_jobs.pb.h"

namespace muster::hosts {
class Host;
}  // namespace muster::hosts

namespace muster::agents {

// A run as the journal remembers it.
struct RunHandle {
  std::string run_key;
  std::string external_id;  // empty: not known
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
  absl::Time launch_time;  // of the latest Launch; infinite past: never launched
  std::shared_ptr<const agent::v1::Assignment> assignment;
  // True: the run is to be kept from starting, as far as is known. SetHeld follows if the broker
  // says so.
  bool held = false;
  // True: somebody has asked for the run's end.
  bool cancel_requested = false;
};

struct LaunchOutcome {
  enum class Kind {
    kLaunched,  // the scheduler has it
    kRefused,   // the scheduler does not have it and never will; `failure` says why
    kDeferred,  // the scheduler surely does not have it yet: launch it again after `retry_after`
    kUnclear,   // nobody knows: look it up
  };
  Kind kind = Kind::kUnclear;
  std::string external_id;  // kLaunched
  v1::Failure failure;      // kRefused
  v1::Evidence evidence;    // what the scheduler said, whole; kDeferred: why the run waits
  // With kDeferred; zero if the call itself has waited.
  absl::Duration retry_after = absl::ZeroDuration();
};

struct LookupOutcome {
  enum class Kind { kFound, kAbsent, kCouldNotAsk };
  Kind kind = Kind::kCouldNotAsk;
  std::string external_id;  // kFound
  v1::Evidence evidence;
};

// The proof that nothing of a run is left, or why there is none.
struct FenceOutcome {
  enum class Kind {
    kNeverBegins,  // proved: the run is not there, and no job of it will ever begin
    kEnded,        // proved: nothing of it is left; its end is observed
    kNotYet,       // a process may live or may yet begin, and a later call may prove the contrary
    kImpossible,   // nobody can ever prove it: a later call is of no use
  };
  Kind kind = Kind::kNotYet;
  v1::Evidence evidence;
};

// One Backend::Forget has at most this many runs, enough to make the round trip cheap for each.
inline constexpr size_t kMaxForgetBatch = 100;

// One Capabilities::usage_of has at most this many runs, as many ids as one call of sacct takes.
inline constexpr size_t kMaxUsageBatch = 500;

// Most replicas of a run that are reported, see Run.replicas.
inline constexpr size_t kMaxReplicas = 256;

// The cluster's present report about one run. Runs about which nothing is known have no report.
struct Observation {
  std::string run_key;
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
  v1::Evidence evidence;
  std::string external_id;
  // The reason that the run waits, cannot start, or is not known to go on; without a code: nothing
  // to say.
  v1::StateReason reason;
  std::vector<std::string> nodes;
  // All of the run's pods by rank, at most kMaxReplicas; empty if unchanged, or the run has none.
  std::vector<v1::Replica> replicas;
  std::optional<absl::Time> start_time;
  std::optional<absl::Time> end_time;
  // The number of times that the scheduler has started the run again by itself.
  uint32_t restarts = 0;
  // The time at which the scheduler expects to start a run that waits. None: it does not say.
  std::optional<absl::Time> estimated_start;
  std::optional<v1::ExitStatus> exit;
  std::optional<v1::Failure> failure;
  // The directory of the run's results; empty if not known, or unchanged.
  std::string results_directory;
  // The latest word of its status.json; nothing if there is none, or it is unchanged.
  std::optional<v1::Progress> progress;
  // The usage of an ended run; none: not known, or usage_of tells it.
  std::optional<v1::ResourceUsage> usage;
  // Slurm's choices for it; nothing if there are none, or they are unchanged.
  std::optional<v1::SlurmAllocation> slurm_allocation;
  // True: the ends of the run's logs may show that the cluster was at fault. Counts only for
  // failures other than PROGRAM and OOM: for these two the logs are always read.
  bool may_logs_tell = false;
};

struct ObserveOutcome {
  absl::Status
      scheduler;  // not OK: it could not be asked; what is in `observations` holds all the same
  std::vector<Observation> observations;
};

// The file with one output of one rank. It appears when the run starts, and only grows.
struct LogSource {
  uint32_t rank = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;
  std::string path;
};

// The paths of what a run leaves, on Capabilities::output_host.
struct RunOutput {
  std::vector<LogSource> logs;  // one for each rank and stream
  // The directory as the run's nodes or containers see it; empty if it has none.
  std::string results_directory;
  std::string readable_results;  // the same directory; empty: it cannot be read from here
  // A file that the run writes at each start, before its program. The file server dates it, as it
  // dates the results, so that the node's clock does not matter. Empty: the cluster has none.
  std::string start_mark;
  // False: the run has no GPUs, so that faults of GPUs in its output are not the cluster's.
  bool may_have_gpus = true;
};

// A signal to the processes of a run.
struct RunSignal {
  int number = 0;  // Linux's
  v1::SignalTarget target = v1::SIGNAL_TARGET_COMMAND;
};

// Usage by run key. A run without a value is known to have none; one that is left out is not known
// yet.
using UsageByRun = std::map<std::string, std::optional<v1::ResourceUsage>>;

using Assignments = std::vector<std::shared_ptr<const agent::v1::Assignment>>;

// The abilities and needs of only some kinds of cluster. Constant as long as the backend lives.
struct Capabilities {
  // The most runs in one Launch, at least 1. Use more than 1 only if many launches cost hardly more
  // than one, because all runs of a batch wait for the last one, and are in doubt together.
  size_t max_launch_batch = 1;
  // Returns whether a run goes into the batch of those before it, the first of which is given, and
  // their number. Any thread. Null: all do.
  std::function<bool(const agent::v1::Assignment& first, const agent::v1::Assignment& next,
                     size_t before)>
      goes_along = nullptr;
  // The most runs in one End or Hold, at least 1. Use more than 1 only if many cost hardly more
  // than one: the agent then makes one such call at a time, and collects the next batch meanwhile.
  size_t max_end_batch = 1;
  // Launches of runs that bring files along are limited to this, if such a launch takes long or
  // needs much memory. They do not count among the other launches. 0: they are launched like
  // others.
  int max_launches_with_files = 0;
  // The time over which look-ups must say "absent" before a launch is repeated.
  absl::Duration lookup_grace = absl::ZeroDuration();
  // The host that has what runs leave, which lives as long as the backend; null means this machine.
  hosts::Host* output_host = nullptr;
  // Lets waiting runs begin: the broker has said which of the adopted runs it no longer wants, and
  // End was called for these. Called once, after an Adopt with runs, however long the broker is
  // away: starting a run that may have been canceled is worse than waiting. Returns at once. Null:
  // the cluster's scheduler starts runs without the agent.
  std::function<void()> allow_starts = nullptr;
  // Notes the broker's latest wish about a run that Launch has or is about to get, so that a launch
  // of several steps can follow it. A launch that follows one wish must follow each later one.
  // Called on the agent's own thread, beside any other call; returns at once. If the latest wish
  // differs from the one in the assignment, Hold follows once the run is on the cluster. Null:
  // launches have one step.
  std::function<void(const std::string& run_key, bool held)> note_hold = nullptr;
  // Returns what at most kMaxUsageBatch ended runs have used. One call at a time, beside all
  // others. FAILED_PRECONDITION: the cluster does not count it; other errors: it could not be
  // asked. Null: observations have it, or nobody has.
  std::function<absl::StatusOr<UsageByRun>(const std::vector<RunHandle>& runs)> usage_of = nullptr;
  // Sends a signal to a run, once. Called beside any other call; may take some seconds. OK: the
  // cluster has taken it. FAILED_PRECONDITION: the run has not begun or has ended, or its processes
  // cannot get it; UNAVAILABLE: the cluster did not take it, or could not be asked. Null: the
  // cluster sends none.
  std::function<absl::Status(const RunHandle& run, const RunSignal& signal)> send_signal = nullptr;
  // True: the cluster itself reads what runs leave, and observations have all of it: failures with
  // the signs and last lines of logs, the word of status.json and the results directory. Nothing of
  // that is read again here.
  bool judges_ends = false;
  // A process of a run lives no longer than this after the run's lease has ended (KeepsLease): its
  // nodes stop it by themselves, whether or not this agent lives, and start none whose lease has
  // ended. Clocks may differ by a bound that this includes. Zero: the cluster cannot do that.
  absl::Duration fence_delay = absl::ZeroDuration();
  // Makes the leases of all runs that have one, and of those launched later, end `remaining` from
  // now; called again well before that. One call at a time, beside all others; may take some
  // seconds. An error: they end as before. Null if fence_delay is zero.
  std::function<absl::Status(absl::Duration remaining)> renew_leases = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Finds out whether the cluster works. An error keeps the agent from starting, and says what to
  // do.
  virtual absl::Status Probe() = 0;
  virtual absl::StatusOr<v1::Inventory> Inventory() = 0;

  // ---- questions of people; each call asks the cluster, leaves nothing there, and may take a
  // minute

  // Makes a preflight of everything that runs need, in the order in which things depend on each
  // other. Works also after a failed Probe: a line says what could not be checked.
  virtual v1::ClusterChecks Check() = 0;
  // Returns the resources and the present activity of the cluster; its jobs need not be counted if
  // that costs anything and they are not wanted. UNAVAILABLE: it could not be asked.
  virtual absl::StatusOr<v1::ClusterDetails> Describe(bool with_jobs) = 0;
  // Returns the submission that Launch would make for such a job of that user, the checks that
  // failed, and when it would start, if the cluster can say. `spec` is valid, with its defaults.
  // UNAVAILABLE: it could not be asked.
  virtual absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) = 0;

  // ---- runs

  // Takes over the runs of the journal. Called once, before any other call about runs. If there are
  // any, no run may begin before Capabilities::allow_starts, because a waiting run may have been
  // canceled while there was no agent. Runs that have begun go on.
  virtual absl::Status Adopt(const std::vector<RunHandle>& runs) = 0;
  // Launches runs in the order of their arrival. It is idempotent by run key, even if the runs come
  // in other batches than before: a run that the cluster has already is kLaunched and not launched
  // again. A held run is launched so that it does not start before Hold(run, false).
  virtual std::vector<LaunchOutcome> Launch(const Assignments& runs) = 0;
  virtual LookupOutcome Lookup(const RunHandle& run) = 0;
  // Observes all given runs in as few scheduler queries as possible.
  virtual ObserveOutcome Observe(const std::vector<RunHandle>& runs) = 0;
  // Asks the cluster to end the runs; idempotent. OK: it was asked, or the run is not there. The
  // end itself is observed.
  virtual std::vector<absl::Status> End(const std::vector<RunHandle>& runs) = 0;
  // Keeps waiting runs from starting, or lets them start; idempotent. Also OK if the run has begun,
  // has ended, or is not there.
  virtual std::vector<absl::Status> Hold(const std::vector<RunHandle>& runs, bool held) = 0;
  // Proves that no process of the run lives, and that none ever will: a run that is absent is kept
  // from beginning for good, also if its launch shows only later. It ends nothing: a run that waits
  // or has begun takes End, and is kEnded once nothing of it is left. Idempotent. After
  // kNeverBegins the agent never launches the run; one that died before noting that still may.
  virtual FenceOutcome Fence(const RunHandle& run) = 0;
  // Says where the run's output is, whether or not there is any yet.
  virtual RunOutput OpenLogs(const RunHandle& run) = 0;
  // Removes what is not the user's of at most kMaxForgetBatch runs whose ends and logs the broker
  // has. It is idempotent, and called again until it is OK, by the next agent if this one dies.
  virtual std::vector<absl::Status> Forget(const std::vector<RunHandle>& runs) = 0;

  virtual Capabilities capabilities() = 0;
  // Returns the time between two observations. `wake` of SetWaker asks for one at once.
  virtual absl::Duration ObserveInterval() const = 0;
  // `wake` may be called from any thread, as long as the backend lives.
  virtual void SetWaker(std::function<void()> wake) = 0;
  // Returns whether the latest Inventory is known to be out of date, so that the agent reads the
  // next one soon. Called after each wake; returns true once for each change, and returns at once.
  virtual bool TakeInventoryNews() { return false; }
  // Returns the number of scheduler calls since the start, by command name.
  virtual std::map<std::string, uint64_t> SchedulerCalls() const = 0;
};

// Makes a call for each item: for clusters where many cost as much as each alone.
template <typename Item, typename Call>
auto OneByOne(const std::vector<Item>& items, const Call& call) {
  std::vector<decltype(call(items.front()))> answers;
  answers.reserve(items.size());
  for (const Item& item : items) answers.push_back(call(item));
  return answers;
}

// Returns whether the run has a lease, and ends with it.
inline bool KeepsLease(const agent::v1::Assignment& assignment) {
  return assignment.spec().on_cluster_loss() == v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED;
}

// Returns whether the job of the run asks for GPUs, or is not known.
inline bool MayHaveGpus(const RunHandle& run) {
  if (run.assignment == nullptr) return true;
  const v1::Resources& resources = run.assignment->spec().resources();
  return resources.gpus_size() > 0 && resources.gpus(0).count_millis() > 0;
}

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BACKEND_H_
