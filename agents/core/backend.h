// The contract that every kind of cluster fulfils for the agent.
//
// The agent calls a backend from several threads at once, but never with two of Launch, Lookup,
// Cancel, SetHeld and Forget (or one of them for many) for the same run at the same time; Observe
// and Logs may overlap with any of them. Calls may block; each bounds its own time.
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
  // It is to be kept from starting, as far as is known; SetHeld follows if the broker says so.
  bool held = false;
  // Its end was asked for.
  bool cancel_requested = false;
};

struct LaunchOutcome {
  enum class Kind {
    kLaunched,  // the scheduler has it
    kRefused,   // the scheduler does not have it and never will; `failure` says why
    kNotSent,   // its time to wait was over before the scheduler could be asked: launch it again
    kUnclear,   // nobody knows: look it up
  };
  Kind kind = Kind::kUnclear;
  std::string external_id;  // kLaunched
  v1::Failure failure;      // kRefused
  v1::Evidence evidence;    // what the scheduler said, whole
};

struct LookupOutcome {
  enum class Kind { kFound, kAbsent, kCouldNotAsk };
  Kind kind = Kind::kCouldNotAsk;
  std::string external_id;  // kFound
  v1::Evidence evidence;
};

// Runs in one Backend::ForgetMany: enough to make a round trip for each of them cheap.
inline constexpr size_t kMaxForgetBatch = 100;

// Replicas of a run that are told of, as Run.replicas says.
inline constexpr size_t kMaxReplicas = 256;

// The cluster's present report about one run. A run about which nothing could be learnt is left
// out.
struct Observation {
  std::string run_key;
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
  v1::Evidence evidence;
  std::string external_id;
  // Why it waits, cannot start, or is not known to go on; without a code: nothing to say.
  v1::StateReason reason;
  std::vector<std::string> nodes;
  // Its pods, all of them, by rank, at most kMaxReplicas; empty: not changed, or it has none.
  std::vector<v1::Replica> replicas;
  std::optional<absl::Time> start_time;
  std::optional<absl::Time> end_time;
  // How often the scheduler has started the run again by itself.
  uint32_t restarts = 0;
  // For a run that waits: when the scheduler expects to start it. None: it does not say.
  std::optional<absl::Time> estimated_start;
  std::optional<v1::ExitStatus> exit;
  std::optional<v1::Failure> failure;
  // For a failure that is neither the program's nor for want of memory: whether the ends of the
  // run's logs may show that the cluster was at fault. For the other two the logs are always read.
  bool may_logs_tell = false;
};

struct ObserveOutcome {
  absl::Status
      scheduler;  // not OK: it could not be asked; what is in `observations` holds all the same
  std::vector<Observation> observations;
};

// Where one output of one rank is. Files appear when the run starts and only grow.
struct LogSource {
  uint32_t rank = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;
  std::string path;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Finds out whether the cluster works and what is missing; an error keeps the agent from starting
  // and says what to do.
  virtual absl::Status Probe() = 0;
  virtual absl::StatusOr<v1::Inventory> Inventory() = 0;

  // ---- what people ask; each looks anew, leaves nothing behind, and may take a minute

  // A preflight of everything that runs need, in the order in which things depend on each other.
  // Also if Probe has failed: what could not be looked at is a line that says so.
  virtual v1::ClusterChecks Check() = 0;
  // Returns what the cluster has and does. UNAVAILABLE: it could not be asked.
  virtual absl::StatusOr<v1::ClusterDetails> Describe() = 0;
  // Returns the submission that Launch would make for such a job of that user, the checks that
  // failed, and when it would start, if the cluster can say. `spec` is valid, with its defaults.
  // UNAVAILABLE: it could not be asked.
  virtual absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) = 0;

  // ---- runs

  // The runs in the journal, once, before any other call about runs. If there are any, nothing
  // begins before AllowStarts: a run that waits may have been canceled while no agent was there to
  // hear it. Runs that have begun go on.
  virtual absl::Status Adopt(const std::vector<RunHandle>& runs) = 0;
  // The broker has said which of the adopted runs it no longer wants, and Cancel has been called
  // for those: what waits may begin. Once, after an Adopt with runs; from then on the agent may
  // lose the broker. There is no time-out: to start what may have been canceled is worse than to
  // wait. Returns at once. Nothing to do for a cluster whose scheduler starts runs without the
  // agent.
  virtual void AllowStarts() {}
  // The latest wish of the broker's for a run that has been given to Launch, or is about to be: one
  // of several steps may still heed it, and then heeds each that comes later, too. From the agent's
  // own thread, beside any other call; returns at once. Once the run is on the cluster, SetHeld
  // follows if the latest wish is another than the one that its launch was given.
  virtual void NoteHold(const std::string& /*run_key*/, bool /*held*/) {}
  // Idempotent by run key: a run that the cluster has already is kLaunched and not launched again.
  // An assignment that is held is launched so that it does not start before SetHeld(run, false).
  virtual LaunchOutcome Launch(const agent::v1::Assignment& assignment) = 0;
  // Launches the runs that wait at the same time, 1 to MaxLaunchBatch() runs in the order of their
  // arrival; never one twice. One outcome each, in the same order, and each as Launch promises it:
  // idempotent by run key, whatever runs came together the last time.
  virtual std::vector<LaunchOutcome> LaunchMany(
      const std::vector<std::shared_ptr<const agent::v1::Assignment>>& assignments) {
    std::vector<LaunchOutcome> outcomes;
    for (const auto& assignment : assignments) outcomes.push_back(Launch(*assignment));
    return outcomes;
  }
  // The most runs in one LaunchMany, at least 1. More than 1 is for clusters to which many launches
  // cost hardly more than one: all of a batch wait for its last, and are in doubt together.
  virtual size_t MaxLaunchBatch() const { return 1; }
  // The most launches at once of runs that bring files along, beside those of all others, where
  // such a launch takes long or much memory. 0: they are launched among the others.
  virtual int MaxLaunchesWithFiles() const { return 0; }
  virtual LookupOutcome Lookup(const RunHandle& run) = 0;
  // All given runs in as few scheduler queries as possible.
  virtual ObserveOutcome Observe(const std::vector<RunHandle>& runs) = 0;
  // Asks the cluster to end the run; idempotent. OK: it was asked, or the run is not there. The end
  // itself is observed.
  virtual absl::Status Cancel(const RunHandle& run) = 0;
  // Cancels all runs that wait for it at the same time, 1 to MaxCancelBatch(); none is named twice.
  // One answer each, in the same order.
  virtual std::vector<absl::Status> CancelMany(const std::vector<RunHandle>& runs) {
    std::vector<absl::Status> statuses;
    for (const RunHandle& run : runs) statuses.push_back(Cancel(run));
    return statuses;
  }
  // Keeps a run that waits from starting, or lets it start; idempotent. OK as well: the run has
  // begun, has ended, or is not there.
  virtual absl::Status SetHeld(const RunHandle& run, bool held) = 0;
  // Holds or releases many runs, by the rules of CancelMany.
  virtual std::vector<absl::Status> SetHeldMany(const std::vector<RunHandle>& runs, bool held) {
    std::vector<absl::Status> statuses;
    for (const RunHandle& run : runs) statuses.push_back(SetHeld(run, held));
    return statuses;
  }
  // The most runs in one CancelMany or SetHeldMany, at least 1. More than 1 is for clusters to
  // which many cost hardly more than one: one such call is made at a time then, so that what comes
  // meanwhile goes together.
  virtual size_t MaxCancelBatch() const { return 1; }
  // One source for each rank and stream.
  virtual std::vector<LogSource> Logs(const RunHandle& run) = 0;
  // The directory of the run's results, for jobs with status_json; empty: it has none.
  virtual std::string ResultsDirectory(const RunHandle& /*run*/) { return {}; }
  // A file that is written where the run begins each time, before its program: it is dated by the
  // file server, as the results are, and not by the node. Empty: the cluster has none.
  virtual std::string StartMark(const RunHandle& /*run*/) { return {}; }
  // Returns whether the run may have GPUs: only then is what its output says of them the cluster's
  // fault.
  virtual bool MayHaveGpus(const RunHandle& run) {
    if (run.assignment == nullptr) return true;
    const v1::Resources& resources = run.assignment->spec().resources();
    return resources.gpus_size() > 0 && resources.gpus(0).count_millis() > 0;
  }
  // Where logs and results are read, as long as the backend lives; null: on this machine.
  virtual hosts::Host* LogHost() { return nullptr; }
  // The broker has the end and the logs: clean up what is not the user's. Idempotent: unless it is
  // OK it is called again, by the next agent if this one dies before.
  virtual absl::Status Forget(const RunHandle& run) = 0;
  // Forgets all runs that wait for it at the same time, up to kMaxForgetBatch. One answer each, in
  // the same order.
  virtual std::vector<absl::Status> ForgetMany(const std::vector<RunHandle>& runs) {
    std::vector<absl::Status> statuses;
    for (const RunHandle& run : runs) statuses.push_back(Forget(run));
    return statuses;
  }

  // How long a look-up must go on saying "absent" before a launch is repeated.
  virtual absl::Duration LookupGrace() const = 0;
  // How often to observe. `wake` in SetWaker asks for an observation at once.
  virtual absl::Duration ObserveInterval() const = 0;
  // `wake` may be called from any thread, as long as the backend lives.
  virtual void SetWaker(std::function<void()> wake) = 0;
  // Returns whether what the latest Inventory has told is known not to be so any more: the next one
  // is read soon, and not after the usual time. Asked after each wake; tells it once, and returns
  // at once.
  virtual bool TakeInventoryNews() { return false; }
  // Scheduler calls since the start, by command name.
  virtual std::map<std::string, uint64_t> SchedulerCalls() const = 0;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BACKEND_H_
