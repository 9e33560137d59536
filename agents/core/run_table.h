// Holds every run of the agent, from its assignment until the broker has its end and its logs.
//
// Owner: the agent's core thread. Nothing is done here: changes to the journal and calls to the
// backend come out as AgentCore::Output.
#ifndef MUSTER_AGENTS_CORE_RUN_TABLE_H_
#define MUSTER_AGENTS_CORE_RUN_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/agent_core.h"
#include "agents/core/array_gathering.h"
#include "agents/core/event_log.h"
#include "agents/core/launch_queue.h"
#include "agents/core/usage_queue.h"

namespace muster::agents {

// Stands for one call of AgentCore::Handle.
struct Step {
  absl::Time now;   // for waits
  absl::Time wall;  // for stamps
  Output* out;
};

class RunTable {
 public:
  // `options` and `events` outlive the table.
  RunTable(const Options& options, EventLog* events, std::vector<JournalRun> runs);

  // Takes up every run where the last process left it; called once, before anything else.
  // `unacknowledged` are the events that were in the journal then.
  void Recover(const std::vector<agent::v1::RunEvent>& unacknowledged, const Step& step);

  // Handle what the broker says.
  absl::Status Take(const agent::v1::Assignment& assignment, const Step& step);
  void WantCancel(const std::string& run_key, const Step& step);
  void Release(const std::string& run_key, const Step& step);
  // Returns whether a run that keeps leases, and that the broker does not want any more, may still
  // begin: leases must not be renewed meanwhile.
  bool MayReleasedBegin() const;
  // The run is to be held, or released.
  void WantHeld(const std::string& run_key, bool held, const Step& step);
  // The broker has said which of the reported runs it does not want. Launches begin, and the
  // backend may start waiting runs once it has been asked for the known cancels.
  void BrokerHasSpoken();
  // True from the start if there were no runs.
  bool has_broker_spoken() const { return has_broker_spoken_; }
  // The broker has all events up to `sequence`.
  void Acknowledged(uint64_t sequence, const Step& step);

  // Handle the results of the effects.
  void OnLaunched(Launched launched, const Step& step);
  void OnLookedUp(LookedUp looked_up, const Step& step);
  void OnFenced(Fenced fenced, const Step& step);
  void OnCancelAsked(const CancelAsked& asked, const Step& step);
  void OnHoldAsked(const HoldAsked& asked, const Step& step);
  // `began`: when the cluster was looked at, or just before.
  void OnObserved(const std::vector<Observation>& observations, absl::Time began, const Step& step);
  void OnLogsShipped(const std::string& run_key, const Step& step);
  void OnUsageRead(UsageRead& read, const Step& step);
  void OnForgotten(const Forgotten& forgotten, const Step& step);

  // Asks no more about the runs that have ended so far.
  void GiveUpUsage(const Step& step);

  // Stops launches from now on.
  void Drain() { draining_ = true; }

  // Look-ups, launches, cancels and holds whose time has come.
  void OnTime(const Step& step);
  // Launches what waits, and adds the runs that changed to the journal's changes. Ends every step.
  void Finish(const Step& step);

  bool Holds(const std::string& run_key) const { return runs_.contains(run_key); }
  void AddTo(agent::v1::AgentHello* hello) const;
  std::vector<RunHandle> RunsToObserve() const;
  std::vector<RunHandle> AllRuns() const;
  // Nothing: it is not held.
  std::optional<RunHandle> FindRun(const std::string& run_key) const;
  absl::Status CheckInvariants() const;

 private:
  // Names the call that the backend is busy with for a run, which is at most one.
  enum class Call { kNone, kLaunch, kLookup, kFence, kCancel, kHold };

  struct Run {
    JournalRun record;
    agent::v1::RunEvent told;  // the details that events of this process have carried
    Call call = Call::kNone;
    absl::Time due = absl::InfiniteFuture();  // of the next look-up, launch, cancel or hold
    absl::Time asked = absl::InfinitePast();  // when the look-up under way was asked for
    absl::Time absent_since = absl::InfiniteFuture();  // the first of the answers "absent" in a row
    absl::Time canceled = absl::InfinitePast();        // when the cluster last took a cancel of it
    absl::Time seen_alive = absl::InfinitePast();      // when the last look at it alive began
    // The broker's wish; nothing if it has not said it to this process. The journal does not keep
    // it, because the broker repeats it on each connection.
    std::optional<bool> wants_held;
    // The hold that the cluster knows of; nothing if unknown, for example while it is being told.
    std::optional<bool> told_held;
    std::string hold_error;  // the last one that was reported
    absl::Time replicas_told = absl::InfinitePast();
    absl::Time why_told = absl::InfinitePast();  // the last reason of a launch that is not done
    bool cannot_be_fenced = false;               // as the backend says
    bool ships_logs = false;
    bool released = false;  // the broker does not want it: no events; it goes with its end
    bool let_go = false;    // it leaves as soon as the backend is done with it

    const std::string& key() const { return record.assignment->run_key(); }
    // Its launch was put off, and is due or in the queue again.
    bool is_deferred() const {
      return record.state == v1::RUN_STATE_LAUNCHING && call == Call::kNone;
    }
    bool brings_files() const { return record.assignment->spec().uploads_size() > 0; }
  };

  // Replicas that changed soon after others of their run were told.
  struct LateReplicas {
    absl::Time due;             // when they are told
    agent::v1::RunEvent event;  // with them and their evidence
  };

  Run* Find(const std::string& run_key);
  // Ends a call. Returns the run, if the backend was busy with this call for it.
  Run* Settle(const std::string& run_key, Call call);
  RunHandle Handle(const Run& run) const;

  void Resume(Run& run, const Step& step);
  void AllowStarts(const Step& step);
  // Has the run launched as soon as it may; a task of an array goes with the others where arrays go
  // whole.
  void AwaitLaunch(Run& run, const Step& step);
  void LaunchAgain(Run& run, const Step& step);
  void StartLaunch(Run& run, std::string_view why, const Step& step);
  void AskLookup(Run& run, const Step& step);
  void AskFence(Run& run, const Step& step);
  // Asks for a cancel, unless the cluster has taken one or a failed one waits to be repeated.
  void AskFirstCancel(Run& run, const Step& step);
  void AskCancel(Run& run, const Step& step);
  // Tells the cluster what the broker wants, if it matters now and the cluster may not know it.
  void AskHold(Run& run, const Step& step);
  void Adopt(Run& run, const std::string& external_id, v1::Evidence evidence, const Step& step);
  // Reports why a run that is being launched is not known to be on its cluster, now and then.
  void TellWhy(Run& run, v1::StateReasonCode code, v1::Evidence evidence, const Step& step);
  // Puts off a launch: the cluster surely does not have the run, which stays LAUNCHING.
  void Defer(Run& run, v1::Evidence evidence, absl::Duration retry_after, const Step& step);
  void OnAbsent(Run& run, v1::Evidence evidence, const Step& step);
  void Observe(Run& run, const Observation& seen, const Step& step);
  // Puts changed replicas into the event: at once if the run `moves` to another state, else not
  // before their time. Returns whether there were any.
  bool TakeReplicas(Run& run, const Observation& seen, bool moves, const Step& step,
                    agent::v1::RunEvent* event);
  void TellLateReplicas(const Step& step);

  // Puts the run in the state that the event has and records both.
  void Change(Run& run, agent::v1::RunEvent event, v1::RunState state, const Step& step);
  // Ends a run that the cluster never had: there are no logs to wait for.
  void EndUnlaunched(Run& run, agent::v1::RunEvent event, v1::RunState state, const Step& step);
  // Sends the event to the broker, with the present state of the run.
  void Tell(const Run& run, agent::v1::RunEvent event, const Step& step);
  void AfterChange(Run& run, const Step& step);
  // Asks about the usage of an ended run, if its cluster may know it.
  void AwaitUsage(const Run& run, const Step& step);
  // Returns the run, even if it is leaving; `usage_` has it.
  Run& AwaitingUsage(const std::string& run_key);
  void AskUsage(const Step& step);
  void TellUsage(Run& run, v1::ResourceUsage usage, const Step& step);
  // Moves an ended run to leaving_. Nothing of it is called or due.
  void LetGo(Run& run, const Step& step);
  // Ends a run that is leaving, unless the backend or its usage is awaited.
  void DropIfDone(const std::string& run_key, const Step& step);
  // Asks again for the runs that the backend could not forget; works like late_replicas_.
  void ForgetAgain(const Step& step);
  void SetDue(Run& run, absl::Time due);

  const Options& options_;
  EventLog& events_;
  std::map<std::string, Run> runs_;
  uint64_t next_order_ = 1;
  bool draining_ = false;
  bool has_broker_spoken_ = false;
  bool are_starts_allowed_ = false;
  // Run keys; until these cancels and holds are asked for nothing starts.
  std::set<std::string> wishes_first_;
  // Runs that are ASSIGNED, or were put off and are due again, are in one of the two.
  ArrayGathering gathering_;
  LaunchQueue launch_queue_;
  UsageQueue usage_;
  std::set<std::pair<absl::Time, std::string>> due_;  // runs with a finite due time
  std::map<uint64_t, std::string>
      logs_event_;  // unacknowledged events with logs_complete, by sequence
  std::map<uint64_t, std::string> changed_;            // in this step, by order
  std::map<std::string, LateReplicas> late_replicas_;  // by run key
  // Runs that were let go, until the backend has forgotten them and nobody asks for their usage any
  // more; by run key. As many at most as the journal has.
  struct Leaving {
    Run run;
    absl::Time due;  // when the backend is asked again; infinite future: it has been asked
    bool is_forgotten = false;
  };
  std::map<std::string, Leaving> leaving_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RUN_TABLE_H_
