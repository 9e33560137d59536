// The changes that the core wants on disk. A batch is committed whole, in order, or not at all.
#ifndef MUSTER_BROKER_CORE_CHANGES_H_
#define MUSTER_BROKER_CORE_CHANGES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/amounts.h"
#include "contract/launch_refusals.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::core {

// Detects that a repeated request_id came with another spec.
using Fingerprint = uint64_t;

// A job that has just been accepted.
struct InsertJob {
  uint64_t id = 0;
  std::shared_ptr<const v1::JobSpec> spec;  // normalized
  std::string request_id;                   // empty: none
  Fingerprint fingerprint = 0;              // fingerprint of the spec as it was sent
  std::string user;
  absl::Time create_time;
  uint64_t rerun_of = 0;  // the job whose spec this one has; 0: none
};

// Says if a job waits for its release. The numbers are stored.
enum class HoldState : uint8_t {
  kNone = 0,
  kHeld = 1,
  // The job was held, and its run may still be: the agent must hear of the release on every
  // connection.
  kReleased = 2,
};

// The columns of a job that change during its life.
struct UpdateJob {
  uint64_t id = 0;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  uint64_t job_sequence = 0;
  bool cancel_requested = false;
  uint32_t runs = 0;    // number of runs so far, which is also the latest one's number
  std::string cluster;  // the latest run's cluster; empty: as it was
  v1::ClusterKind cluster_kind = v1::CLUSTER_KIND_UNSPECIFIED;  // kind of that cluster
  std::optional<absl::Time> start_time;                         // first start of its command
  std::optional<absl::Time> end_time;
  HoldState hold = HoldState::kNone;
  std::optional<absl::Time> retry_time;  // time of its next run, while it waits for one
  // The job whose end let this one fail, which never had a run; 0 if none.
  uint64_t failed_dependency = 0;
  uint32_t fail_overs = 0;  // number of runs that were given up with their clusters
};

// A job's run is to come back from its cluster, or not any longer.
struct PutWithdrawal {
  uint64_t job = 0;
  std::optional<v1::Withdrawal> withdrawal = std::nullopt;
  uint32_t returned_runs = 0;  // number of its runs so far that came back before they began
};

// A user's edit of a job: the values from now on. The job may have ended.
struct EditJob {
  uint64_t id = 0;
  uint64_t job_sequence = 0;
  uint64_t sequence = 0;  // of its transition
  int32_t priority = 0;
  std::map<std::string, std::string> labels;
  // The values before the change. They are stored with the sequence, for those who ask what the job
  // was earlier.
  int32_t priority_before = 0;
  std::map<std::string, std::string> labels_before = {};
};

// A run as it is now: inserted or replaced.
struct PutRun {
  uint64_t job = 0;
  v1::Run run;
  // True: no more news of the run will come, although its logs are not complete; it is not
  // restored.
  bool is_last = false;
  // If not 0, the place among all changes of a change that lists show and that no transition tells.
  // The latest one of each run is stored.
  uint64_t sequence = 0;
};

// The usage of a run that was put with is_last, the only thing that may come later. Nothing happens
// if the run is not there any more, is not that cluster's, or has the same usage.
struct PutUsage {
  uint64_t job = 0;
  uint32_t run = 0;
  std::string cluster;
  v1::ResourceUsage usage;
  uint64_t sequence = 0;  // as in PutRun
};

struct AppendTransition {
  uint64_t job = 0;
  v1::Transition transition;
  // The run as it was right after the step, for those who watch; it is not stored. Null: as the
  // next PutRun of this run has it.
  std::shared_ptr<const v1::Run> run_then = nullptr;
};

// A cluster as the broker remembers it while its agent is away.
struct PutCluster {
  std::string name;
  v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;
  v1::Inventory inventory;
  std::string agent_version;
  std::string journal_id;
  uint64_t acked_event_sequence = 0;  // of that journal
  uint64_t agent_epoch = 0;
  uint32_t max_active_runs = 0;
  absl::Time last_seen;
  // The operators' wish that it takes no new runs; nothing if it takes some.
  std::optional<v1::ClusterCordon> cordon = std::nullopt;
  // A process lives there no longer than this after the end of its run's lease; zero means that the
  // cluster cannot stop runs by itself.
  absl::Duration fence_delay = absl::ZeroDuration();
  // The length of the leases that it was given last; zero if it was given none.
  absl::Duration lease = absl::ZeroDuration();
};

// Changes only the position in a cluster's event stream, and far more often than the rest changes.
struct AdvanceCluster {
  std::string name;
  uint64_t acked_event_sequence = 0;
};

// The cluster is no longer known.
struct RemoveCluster {
  std::string name;
};

struct PutBrokerEpoch {
  uint64_t epoch = 0;
};

// Deletes a job that has ended, with its runs, its history and its request. Its number is never
// used again.
struct DeleteJob {
  uint64_t id = 0;
};

// The use of a user in a project, in amounts times seconds, as it was at a time. It replaces what
// was stored of it.
struct PutUse {
  std::string project;
  std::string user;
  Amounts used = {};
  absl::Time at;
};

// The rest of a use is not worth keeping.
struct RemoveUse {
  std::string project;
  std::string user;
};

// The use of resources by runs that have ended, to be added to what is stored of the same day,
// project, user, cluster and type of GPU.
struct AddUsage {
  int64_t day = 0;  // since 1970, in UTC
  std::string project;
  std::string user;
  std::string cluster;
  std::string gpu_type;  // as in GpuDemand
  int64_t runs = 0;      // that ended on this day
  // The milliseconds of commands, of cores and of whole GPUs.
  int64_t run_ms = 0;
  int64_t core_ms = 0;
  int64_t gpu_ms = 0;
};

using Change = std::variant<InsertJob, UpdateJob, PutWithdrawal, EditJob, PutRun, PutUsage,
                            AppendTransition, PutCluster, AdvanceCluster, RemoveCluster,
                            PutBrokerEpoch, DeleteJob, PutUse, RemoveUse, AddUsage>;
using Changes = std::vector<Change>;

// A job that has not ended, from which the core is restored.
struct LiveJob {
  uint64_t id = 0;
  absl::Time create_time;
  uint32_t requirements = 0;  // index into Restored::requirements
  uint32_t user = 0;          // index into Restored::users
  int32_t priority = 0;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  uint64_t job_sequence = 0;
  bool cancel_requested = false;
  uint32_t runs = 0;
  std::optional<absl::Time> start_time;
  HoldState hold = HoldState::kNone;
  std::optional<absl::Time> retry_time;
  uint32_t fail_overs = 0;
  std::optional<v1::Withdrawal> withdrawal = std::nullopt;  // as in PutWithdrawal
  uint32_t returned_runs = 0;                               // likewise
  // A job that it depends on.
  struct Dependency {
    uint64_t job = 0;
    v1::JobOutcome outcome = v1::JOB_OUTCOME_SUCCEEDED;
    std::optional<v1::JobState> end = {};  // nothing: it has not ended, or was deleted since
  };
  // Only jobs that never had a run need it.
  std::vector<Dependency> depends_on = {};
  // The clusters that have refused runs of it.
  std::vector<contract::RefusingCluster> refusals = {};
};

struct RememberedRequest {
  std::string project;
  std::string request_id;
  Fingerprint fingerprint = 0;
  uint64_t job = 0;
  std::optional<absl::Time> end_time;  // end of the job
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_CHANGES_H_
