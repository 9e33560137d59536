// The broker's decisions: which jobs are accepted, where they run, what a report from an agent
// means.
//
// Pure and single-threaded: the owner is the engine's core thread. Inputs go into Handle with the
// time, what is to be committed and what is to be done after that commit come out. Nothing here
// reads a clock, a file or a socket.
#ifndef MUSTER_BROKER_CORE_CORE_H_
#define MUSTER_BROKER_CORE_CORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/core/changes.h"
#include "muster/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::core {

// Names one request until its Reply; chosen by whoever makes the input.
using Ticket = uint64_t;
// Names one connection of an agent; never used twice in the life of a process.
using SessionId = uint64_t;

struct Options {
  // affects behaviour
  absl::Duration heartbeat_interval = absl::Seconds(5);  // agents' sign of life
  int silent_heartbeats = 3;  // a connection that missed as many is closed
  uint64_t max_queued_jobs =
      10'000'000;  // QUEUED jobs held in memory (<= 700 B each); more are refused
  absl::Duration request_memory = absl::Hours(24);  // how long a request_id outlives its job
  // Requests remembered at the same time, about 60 B each; more are refused until older ones
  // expire.
  uint64_t max_remembered_requests = 20'000'000;
  // affects performance
  // Bounds what one batch adds to a commit and, because each assignment has a spec, to what is read
  // after it.
  int max_assignments_per_round = 1000;
};

// ---- inputs

// Clusters and what their agents say against a job.
using Refusals = std::map<std::string, std::string>;

struct SubmitItem {
  std::shared_ptr<const v1::JobSpec> spec;  // normalized by the caller
  std::string request_id;
  // Those that can never run it, whatever their inventory promises; it is placed on none of them.
  Refusals refused_by = {};
  bool held = false;  // from the moment when it is accepted
};
struct Submit {
  Ticket ticket = 0;
  std::vector<SubmitItem> items;  // all or none
  std::string user;
  bool validate_only = false;
};
struct Cancel {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
  std::string reason;
  std::string user;
};
// Holds jobs back until they are released, or releases them.
struct Hold {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
  std::string reason;
  std::string user;
  bool held = true;  // else they are released
};
// Why does no cluster have these jobs?
struct Explain {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
};
// Some clusters, by name; inventories are large, and the core thread copies no more than is asked
// for.
struct ListClusters {
  Ticket ticket = 0;
  std::string name = {};   // not empty: this one alone
  std::string after = {};  // those whose names come later
  size_t max_clusters = 1000;
  size_t max_bytes = 2 << 20;  // of them all; the first one is given whatever its size
  // Not null: only those that are connected and could take such a job, without their inventories.
  std::shared_ptr<const v1::JobSpec> that_could_take = nullptr;
  bool at_once = false;  // of these, only those whose pool takes jobs at the moment
};
struct AgentConnected {
  SessionId session = 0;
  v1::AgentHello hello;
};
struct AgentReported {
  SessionId session = 0;
  v1::RunEvents events;
};
struct AgentBeat {
  SessionId session = 0;
  v1::AgentHeartbeat heartbeat;
};
struct AgentGone {
  SessionId session = 0;
};
// Time passes; at least once for each heartbeat interval.
struct Tick {
  // How far somebody set the clock since the last one, forwards or backwards: that much of the time
  // since an agent was heard has not passed.
  absl::Duration clock_set_by;
};

using Input = std::variant<Submit, Cancel, Hold, Explain, ListClusters, AgentConnected,
                           AgentReported, AgentBeat, AgentGone, Tick>;

// ---- effects: to be carried out, in order, once the changes of the same Output are on disk

struct SubmitReply {
  Ticket ticket = 0;
  absl::StatusOr<v1::SubmitJobsResponse> result;
};
// To Cancel and Hold.
struct StatusReply {
  Ticket ticket = 0;
  absl::Status status;
};
struct ExplainReply {
  Ticket ticket = 0;
  // One for each job. Empty: it does not wait for a cluster, or not yet: it is held, or waits for
  // the time of its next run; or there were too many different jobs before it
  // (kMaxExplainedShapes).
  std::vector<std::string> reasons;
};
struct ClustersReply {
  Ticket ticket = 0;
  std::vector<v1::Cluster> clusters;  // by name
  // With that_could_take: what keeps the job from those that take it later, by their names. Their
  // inventories have the pool that it waits for, with the warnings of theirs; others' are empty.
  std::map<std::string, std::string> not_now;
  bool more = false;  // there are others after these
};
struct SendToAgent {
  SessionId session = 0;
  v1::ConnectResponse message;
};
// A run to assign. The core does not keep specs: whoever carries this out adds spec and user from
// the store.
struct SendAssignments {
  SessionId session = 0;
  std::vector<v1::Assignment> assignments;  // without spec and user
};
struct CloseAgent {
  SessionId session = 0;
  absl::Status status;  // for the agent; OK: it was replaced
};
// Watchers may look again: these jobs have new transitions, the latest of them with this sequence.
struct JobsChanged {
  std::vector<uint64_t> jobs;
  uint64_t sequence = 0;
};

using Effect = std::variant<SubmitReply, StatusReply, ExplainReply, ClustersReply, SendToAgent,
                            SendAssignments, CloseAgent, JobsChanged>;

struct Output {
  Changes changes;
  std::vector<Effect> effects;
};

// What the store knew when the broker started.
struct Restored {
  std::string instance;
  uint64_t broker_epoch = 0;  // of the previous start
  uint64_t next_job_id = 1;
  uint64_t next_sequence = 1;
  std::vector<InsertShape> shapes;
  std::vector<PutCluster> clusters;
  std::vector<LiveJob> jobs;  // not ended
  // Runs that have not ended, or the rest of whose logs may still come.
  std::vector<PutRun> runs;
  std::vector<RememberedRequest> requests;
};

struct Counters {
  uint64_t queued = 0;  // held ones and those that wait for their time included
  uint64_t active_runs = 0;
  uint64_t retries = 0;              // decided since the start
  uint64_t illegal_transitions = 0;  // events that were dropped, see the agent protocol
  uint64_t stale_messages = 0;       // from superseded sessions
};

class Core {
 public:
  // Raises the broker epoch; its change comes with the first Output.
  Core(Options options, Restored restored);
  ~Core();

  void Handle(Input input, absl::Time now, Output* out);
  // Assigns queued jobs to clusters, and again the runs that an agent has lost. Call after each
  // batch of inputs, so that a burst costs one round. True: the round ended at
  // max_assignments_per_round, call again once this output has been handed on.
  bool PlaceJobs(absl::Time now, Output* out);

  Counters counters() const;
  // Cross-checks queues, runs and clusters; the tests and the simulation call it. INTERNAL names
  // what is wrong.
  absl::Status CheckInvariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_CORE_H_
