// Makes the agent's decisions: what to launch, look up, cancel and report. This code follows the
// text of proto/decisions/0001-agent-protocol.md.
//
// Pure and single-threaded, like the broker's core: the owner is the agent's core thread. Inputs go
// in with the times; what is to be committed to the journal, and what is to be done after that
// commit, come out.
#ifndef MUSTER_AGENTS_CORE_AGENT_CORE_H_
#define MUSTER_AGENTS_CORE_AGENT_CORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::agents {

struct Options {
  std::string cluster;
  v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;
  uint64_t process = 0;          // random, for the hello; 0: not told
  std::string shared_user = {};  // for the hello: what it means that jobs share the agent's user
  // For the hello, see Capabilities; zero: no leases are kept.
  absl::Duration fence_delay = absl::ZeroDuration();
  uint32_t max_active_runs = 1000;  // what the hello says; the broker keeps to it
  // The backend is busy with at most this many launches; the rest stays ASSIGNED.
  int max_launches_in_flight = 4;
  // Launches of runs that bring files along at the same time; the number above leaves these out. 0:
  // the number above counts them, too.
  int max_file_launches_in_flight = 0;
  // The tasks of a job array are launched together, once all are there (kArrayPatience).
  bool gathers_arrays = false;
  // Ended runs are asked about once more: the cluster knows only later what they have used.
  bool asks_usage = false;
  absl::Duration lookup_grace = absl::Seconds(30);
  absl::Duration lookup_interval = absl::Seconds(2);  // between two look-ups of one run
  // A cancel or a hold that failed is repeated after this. A cancel that was taken is, too, if a
  // look begun so much later shows the run alive: programs take a while.
  absl::Duration cancel_interval = absl::Seconds(10);
  int max_unacked_events = 10000;  // sent and not acknowledged; the rest waits in the journal
  // Bounds their bytes, as events may name many nodes; it is half of what the link can queue.
  size_t max_unacked_event_bytes = 32 << 20;
  int silent_intervals = 3;  // without an answer to a heartbeat: the connection is given up
  absl::Duration handshake_timeout = absl::Seconds(30);  // from LinkUp to the broker's welcome
  // Shares of the journal's bound, 0 to 1. Above the first, new runs are held back, so that the
  // rest is for the events of runs that are there; below the second they are taken again. They are
  // apart, so that one run's end does not make the broker send all others again; the runs at work
  // alone fill a quarter at most (journal.h).
  double hold_back_above = 0.75;
  double take_again_below = 0.5;
};

// ---- what the journal holds

struct JournalRun {
  std::shared_ptr<const agent::v1::Assignment>
      assignment;  // never null; never changes, shared to spare copies of the spec
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
  std::string external_id;
  bool cancel_requested = false;
  bool logs_complete = false;
  absl::Time launch_time = absl::InfinitePast();
  uint64_t order = 0;  // of arrival
};
struct JournalMeta {
  std::string journal_id;
  std::string instance;
  uint64_t broker_epoch = 0;
  uint64_t next_event_sequence = 1;

  friend bool operator==(const JournalMeta&, const JournalMeta&) = default;
};
struct JournalContent {
  JournalMeta meta;
  std::vector<JournalRun> runs;             // by order
  std::vector<agent::v1::RunEvent> events;  // not acknowledged, by sequence
};

struct PutRun {
  JournalRun run;
};
struct DeleteRun {
  std::string run_key;
};
struct PutEvent {
  agent::v1::RunEvent event;
};
struct DeleteEventsUpTo {
  uint64_t sequence = 0;
};
struct PutMeta {
  JournalMeta meta;
};
using JournalChange = std::variant<PutRun, DeleteRun, PutEvent, DeleteEventsUpTo, PutMeta>;

// ---- inputs

// There is a new connection, and the effects begin with its hello.
struct LinkUp {
  v1::Inventory inventory;
};
struct LinkDown {};
struct BrokerSaid {
  agent::v1::ConnectResponse message;
};
struct Launched {
  std::string run_key;
  LaunchOutcome outcome;
};
struct LookedUp {
  std::string run_key;
  LookupOutcome outcome;
};
struct Fenced {
  std::string run_key;
  FenceOutcome outcome;
};
struct CancelAsked {
  std::string run_key;
  absl::Status status;
};
struct HoldAsked {
  std::string run_key;
  bool held = false;
  absl::Status status;
};
// The answer of a look at the runs. It also says whether the scheduler answers: `outcome` has no
// observations after a failed Inventory().
struct Observed {
  ObserveOutcome outcome;
  std::map<std::string, uint64_t> scheduler_calls = {};  // empty: not read
  absl::Time began = absl::InfinitePast();               // when it was asked for, by Handle's `now`
};
// The ends of runs of an earlier Observed, whose files have been read since.
struct EndsRead {
  std::vector<Observation> observations;
  absl::Time began = absl::InfinitePast();  // as of that Observed
};
// The reason that the files of ended runs cannot be read. Empty: they can.
struct EndsHang {
  std::string why;
};
// The archive has every byte of a run that has ended.
struct LogsShipped {
  std::string run_key;
};
// The answer to DoReadUsage.
struct UsageRead {
  absl::StatusOr<UsageByRun> usage;
};
// The backend has nothing more to do for a run that was let go; or it has, and says why not yet.
struct Forgotten {
  std::string run_key;
  absl::Status status = {};
};
struct InventoryRead {
  v1::Inventory inventory;
  std::map<std::string, uint64_t> scheduler_calls;
};
// The share of its bound that the journal uses, 0 to 1.
struct JournalFilled {
  double share = 0;
};
struct Tick {};
// The agent is about to end: nothing new is launched. There is no way back.
struct Drain {};
using Input = std::variant<LinkUp, LinkDown, BrokerSaid, Launched, LookedUp, Fenced, CancelAsked,
                           HoldAsked, Observed, EndsRead, EndsHang, LogsShipped, UsageRead,
                           Forgotten, InventoryRead, JournalFilled, Tick, Drain>;

// ---- effects: to be carried out, in order, once the journal changes of the same Output are on
// disk

struct DoLaunch {
  RunHandle run;
};
struct DoLookup {
  RunHandle run;
};
// Prove that it does not live and never will.
struct DoFence {
  RunHandle run;
};
struct DoCancel {
  RunHandle run;
};
// Keep it from starting, or let it start.
struct DoHold {
  RunHandle run;
  bool held = false;
};
// The wish about a run whose launch is under way, see Capabilities::note_hold.
struct DoNoteHold {
  std::string run_key;
  bool held = false;
};
// Ship its logs from now on, until LogsShipped.
struct ShipLogs {
  RunHandle run;
  bool ended = false;  // no byte will be added: ship to the end, then say LogsShipped
};
// Ask what they have used; one question at a time.
struct DoReadUsage {
  std::vector<RunHandle> runs;
};
// The journal keeps the run until Forgotten, so that an agent that dies meanwhile repeats this.
struct DoForget {
  RunHandle run;
};
// The broker's wishes for the runs of an earlier process are known and passed on, see
// Capabilities::allow_starts.
struct DoAllowStarts {};
// Let the leases of all runs end at `end`, by the clock of Handle's `now`.
struct DoRenewLeases {
  absl::Time end;
};
struct SendToBroker {
  agent::v1::ConnectRequest message;
};
// Give this connection up and dial again; `status` is logged.
struct Redial {
  absl::Status status;
  absl::Duration after;
};
// The agent must not go on (a broker of another instance or of an older epoch).
struct Stop {
  absl::Status status;
};
using Effect =
    std::variant<DoLaunch, DoLookup, DoFence, DoCancel, DoHold, DoNoteHold, ShipLogs, DoReadUsage,
                 DoForget, DoAllowStarts, DoRenewLeases, SendToBroker, Redial, Stop>;

struct Output {
  std::vector<JournalChange> changes;
  std::vector<Effect> effects;
};

class AgentCore {
 public:
  // Runs found in LAUNCHING become LAUNCH_UNKNOWN: the last process may have died in the middle of
  // a launch. The effects that this needs come with the first Tick. If there are runs, nothing is
  // launched before the broker has said which of them it still wants.
  AgentCore(Options options, JournalContent content);
  ~AgentCore();

  // `now` comes from a clock that never jumps while this lives; every wait is measured by it.
  // `wall` is the time of day, for what is written down: launch_time, observed_at.
  void Handle(Input input, absl::Time now, absl::Time wall, Output* out);

  // The runs that Observe is to be asked about.
  std::vector<RunHandle> RunsToObserve() const;
  // Returns every run held, for Backend::Adopt.
  std::vector<RunHandle> AllRuns() const;
  // Nothing: it is not held.
  std::optional<RunHandle> FindRun(const std::string& run_key) const;
  // Returns whether new runs are held back, because the journal is nearly full.
  bool holds_back_runs() const;
  absl::Status CheckInvariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_AGENT_CORE_H_
