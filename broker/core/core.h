// Makes the broker's decisions: which jobs are accepted, where they run, and what a report from an
// agent means.
//
// Pure and single-threaded: the owner is the engine's core thread. Inputs go into Handle with the
// time; the changes to commit, and the effects to carry out after that commit, come out. Nothing
// here reads a clock, a file or a socket.
#ifndef MUSTER_BROKER_CORE_CORE_H_
#define MUSTER_BROKER_CORE_CORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/core/changes.h"
#include "broker/core/cluster_view.h"
#include "broker/core/requirements.h"
#include "broker/core/use_view.h"
#include "contract/place_limits.h"
#include "contract/project_shares.h"
#include "contract/refusals.h"
#include "contract/sentences.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::core {

// Names one request until its Reply; chosen by the maker of the input.
using Ticket = uint64_t;
// Names one connection of an agent; never used twice in the life of a process.
using SessionId = uint64_t;

struct Options {
  // affects behaviour
  absl::Duration heartbeat_interval = absl::Seconds(5);  // agents' sign of life
  int silent_heartbeats = 3;  // a connection that missed as many is closed
  // The leases of runs, counted from the last heartbeat that was answered. Longer than an agent may
  // be silent for a reason that passes: a restart, a change of its network.
  absl::Duration lease = absl::Minutes(1);
  uint64_t max_queued_jobs =
      10'000'000;  // QUEUED jobs held in memory (<= 700 B each); more are refused
  // QUEUED jobs of one user whose submits say that bounds hold for the user; 0: no bound.
  // One user's script leaves nine tenths of the queue to the others.
  uint64_t max_queued_jobs_per_user = 1'000'000;
  absl::Duration half_life = absl::Hours(24 * 7);   // of the use by which projects share
  absl::Duration request_memory = absl::Hours(24);  // how long a request_id outlives its job
  // At most this many requests are remembered at the same time, at about 60 B each; more are
  // refused until older ones expire.
  uint64_t max_remembered_requests = 20'000'000;
  // The least number of runs that may wait in a pool of a cluster without a queue of its own: one
  // run takes the room that comes free while the broker learns of it, and a large one can have room
  // kept for it.
  uint32_t sent_ahead_per_pool = 2;
  // The least number of runs that may wait in a pool of a cluster with a queue of its own. They can
  // only start there if they wait there, and what waits there obeys no share and no priority of
  // Muster's.
  uint32_t max_waiting_runs_per_pool = 8;
  // Room is kept for the first job that has waited longer since its submit. Until then what is free
  // goes to whoever fits, which keeps clusters busy.
  absl::Duration keep_room_after = absl::Minutes(10);
  // affects performance
  // Bounds what one batch adds to a commit and, because each assignment has a spec, to what is read
  // after it.
  int max_assignments_per_round = 1000;
  // Bounds what a round looks at again after inventories have changed, in checks of one group of
  // jobs against one cluster, at about 0.2 us each.
  int64_t max_fit_checks_per_round = 20'000;
  // Bounds what a round looks at to find runs that could end for a job of a higher priority, in
  // visits to one run, at about 1 us each. The next looks go on where it ended.
  size_t max_preemption_visits_per_round = 20'000;
};

// ---- inputs

struct SubmitItem {
  std::shared_ptr<const v1::JobSpec> spec;  // normalized by the caller
  std::string request_id;
  // Fingerprint of the spec as it was sent, see RequestFingerprintOf. Needed only with a
  // request_id.
  Fingerprint fingerprint = 0;
  // Size of what the job brings along, see RequirementsOf; 0 if nothing, or not known.
  uint64_t archive_bytes = 0;
  // OK if all files that the job brings along are at this broker. An error is the answer to a new
  // job that is to be kept; a repeat, and a job that no cluster can take, are answered as if there
  // were no files.
  absl::Status files = absl::OkStatus();
  // OK if its user sees all jobs that depends_on names by number. An error is the answer to a new
  // job.
  absl::Status dependencies = absl::OkStatus();
  bool held = false;      // the job is held from its acceptance on
  uint64_t rerun_of = 0;  // the job whose spec it has; 0: none
};
// Makes a repeated RerunJobs harmless: its items have no request ids of their own.
struct RerunRequest {
  std::string request_id;
  Fingerprint fingerprint = 0;  // fingerprint of the whole request
};
struct Submit {
  Ticket ticket = 0;
  // All items are accepted, or none. Tasks of a job array are one after the other, all of them; a
  // task alone is an array of its own. A repeat of `rerun` is answered with one response for each
  // item; without items, with one response that has the first job of the rerun.
  std::vector<SubmitItem> items;
  std::string user;
  bool validate_only = false;
  std::optional<RerunRequest> rerun = std::nullopt;
  // The ends of jobs that items depend on and that have ended. The core knows those that have not;
  // it refuses a new job that depends on any other with refused::DependencyEnded, and the store
  // then tells that end.
  absl::flat_hash_map<uint64_t, v1::JobState> ends = {};
  bool is_bounded = false;  // max_queued_jobs_per_user holds for the user
};
struct Cancel {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
  std::string reason;
  std::string user;
  // If not empty, the job_sequence that each job had when it was chosen. Jobs that have changed
  // since are left as they are.
  std::vector<uint64_t> chosen_at = {};
  bool validate_only = false;
};
// Holds jobs back until they are released, or releases them.
struct Hold {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
  std::string reason;
  std::string user;
  bool held = true;  // else they are released
  // The same as in Cancel. Jobs that cannot be held are also left as they are.
  std::vector<uint64_t> chosen_at = {};
  bool validate_only = false;
};
// Lets runs that wait in clusters' queues come back, so that their jobs start where they can start
// first. Jobs without such a run are left as they are.
struct Move {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
  std::string reason;
  std::string user;
  std::vector<uint64_t> chosen_at = {};  // the same as in Cancel
  bool validate_only = false;
};
// Changes what a user may change of a job, whether or not it has ended.
struct Edit {
  Ticket ticket = 0;
  uint64_t job = 0;
  // The change was decided at this job_sequence; it is refused if the job has changed since.
  uint64_t job_sequence = 0;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  int32_t priority = 0;
  std::map<std::string, std::string> labels = {};
  int32_t priority_before = 0;
  std::map<std::string, std::string> labels_before = {};
  contract::UserRequest request = {};  // who changed what, and why
};
// Forgets a cluster that is gone for good. It must have no agent and no runs.
struct ForgetCluster {
  Ticket ticket = 0;
  std::string name;
};
// Lets a cluster take no new runs, or takes that wish back.
struct SetCordon {
  Ticket ticket = 0;
  std::string name;
  // The reason, the user and `drain`; nothing if it takes runs again. The time of a cordon that is
  // replaced stays.
  std::optional<v1::ClusterCordon> cordon = std::nullopt;
};
// Deletes jobs that have ended and need not be kept longer; nothing more will be heard of their
// runs.
struct DeleteJobs {
  Ticket ticket = 0;
  std::vector<uint64_t> jobs;
};
// Says anew what projects may use. Runs that clusters have go on there.
struct SetPlaceLimits {
  Ticket ticket = 0;
  std::shared_ptr<const contract::PlaceLimits> limits;
};
// Says anew which shares and quotas projects have. Runs and jobs that there are stay.
struct SetShares {
  Ticket ticket = 0;
  std::shared_ptr<const contract::ProjectShares> shares;
};
// The process is about to end: what projects have used until now is to be stored.
struct KeepUse {};
struct AgentConnected {
  SessionId session = 0;
  agent::v1::AgentHello hello;
};
struct AgentReported {
  SessionId session = 0;
  agent::v1::RunEvents events;
};
struct AgentBeat {
  SessionId session = 0;
  agent::v1::AgentHeartbeat heartbeat;
};
struct AgentGone {
  SessionId session = 0;
};
// Tells that time passes; sent at least once in each heartbeat interval.
struct Tick {
  // Somebody has set the clock by this much since the last Tick, forwards or backwards. That much
  // of the time since an agent was heard has not really passed.
  absl::Duration clock_set_by;
};

using Input = std::variant<Submit, Cancel, Hold, Move, Edit, ForgetCluster, SetCordon, DeleteJobs,
                           SetPlaceLimits, SetShares, KeepUse, AgentConnected, AgentReported,
                           AgentBeat, AgentGone, Tick>;

// ---- effects: carried out in order once the changes of the same Output are on disk

struct SubmitReply {
  Ticket ticket = 0;
  std::variant<v1::SubmitJobsResponse, contract::Refusal> result = {};
};
// Answers Cancel, Hold, Move, Edit, ForgetCluster, SetCordon, DeleteJobs, SetPlaceLimits and
// SetShares.
struct StatusReply {
  Ticket ticket = 0;
  std::optional<contract::Refusal> refusal = {};  // nothing: it was done
  // With chosen_at, the jobs that were changed. `is_stale`: some of the others had changed since.
  std::vector<uint64_t> changed = {};
  bool is_stale = false;
};
struct SendToAgent {
  SessionId session = 0;
  agent::v1::ConnectResponse message;
};
// Runs to assign. The core keeps no specs: the engine adds spec and user from the store.
struct SendAssignments {
  SessionId session = 0;
  std::vector<agent::v1::Assignment> assignments;  // spec and user are missing
};
struct CloseAgent {
  SessionId session = 0;
  std::optional<contract::Refusal> why = {};  // told to the agent; nothing: it was replaced
};
// Tells watchers to look again: these jobs have changed, the last change has this sequence.
struct JobsChanged {
  std::vector<uint64_t> jobs;
  uint64_t sequence = 0;
};

using Effect =
    std::variant<SubmitReply, StatusReply, SendToAgent, SendAssignments, CloseAgent, JobsChanged>;

struct Output {
  Changes changes;
  // The clusters to show to readers before the first effect. The core's caller fills this in from
  // TakeShownClusters.
  std::vector<ShownCluster> clusters;
  std::vector<ShownUse> uses;  // likewise, from TakeShownUses
  std::vector<Effect> effects;
};

// The state of the store when the broker started.
struct Restored {
  std::string instance;
  uint64_t broker_epoch = 0;  // of the previous start
  uint64_t next_job_id = 1;
  uint64_t next_sequence = 1;
  // The requirements of `jobs`, without duplicates; see RequirementsOf and RequirementsList.
  std::vector<Requirements> requirements;
  std::vector<std::string> users;  // of `jobs`, without duplicates
  std::vector<PutCluster> clusters;
  std::vector<LiveJob> jobs;  // not ended
  // Runs that have not ended, and ended ones of whose logs more may come.
  std::vector<PutRun> runs;
  std::vector<RememberedRequest> requests;
  std::vector<PutUse> uses;
  // The places that projects may use, from the broker's file of projects; null means all.
  std::shared_ptr<const contract::PlaceLimits> limits = nullptr;
  // The shares and quotas of projects, likewise; null if nobody has made a project.
  std::shared_ptr<const contract::ProjectShares> shares = nullptr;
};

struct Counters {
  uint64_t queued = 0;  // held jobs and jobs that wait for their time or other jobs included
  uint64_t groups = 0;  // different requirements of jobs that have not ended
  uint64_t active_runs = 0;
  // ---- counted since the start
  uint64_t succeeded = 0;  // jobs that ended so
  uint64_t failed = 0;
  uint64_t canceled = 0;
  uint64_t retries = 0;              // retries that were decided
  uint64_t illegal_transitions = 0;  // events that were dropped, see the agent protocol
  uint64_t stale_messages = 0;       // messages from superseded sessions
};

class Core {
 public:
  // Raises the broker epoch; its change comes with the first Output.
  Core(Options options, Restored restored);
  ~Core();

  void Handle(Input input, absl::Time now, Output* out);
  // Assigns queued jobs to clusters, and assigns again the runs that an agent has lost. Call it
  // after each batch of inputs, so that a burst costs one round. If it returns true, the round
  // ended at one of its bounds: call it again once this output has been handed on.
  bool PlaceJobs(absl::Time now, Output* out);

  // Returns the clusters that have changed since the last call, once each; the first call returns
  // all. Call it after PlaceJobs, because it goes by whether a cluster is full then.
  std::vector<ShownCluster> TakeShownClusters(absl::Time now);
  // The same for what projects have and use.
  std::vector<ShownUse> TakeShownUses();

  // The place of the latest change among all changes, including those of earlier processes.
  uint64_t last_sequence() const;
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
