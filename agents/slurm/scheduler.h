// Declares the backend's questions to Slurm, which Slurm's commands or slurmrestd answer.
//
// UNAVAILABLE is the error of whatever kept Slurm from answering, or made its answer one that
// cannot be trusted: it says nothing about any job; PERMISSION_DENIED, if jobs run as their users:
// nothing runs as this user. Thread-safe. Calls block; each bounds its time.
#ifndef MUSTER_AGENTS_SLURM_SCHEDULER_H_
#define MUSTER_AGENTS_SLURM_SCHEDULER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/slurm/checks.h"
#include "agents/slurm/details.h"
#include "agents/slurm/history.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/job_id.h"
#include "agents/slurm/queue.h"
#include "agents/slurm/submit.h"
#include "agents/slurm/usage.h"
#include "muster/v1/cluster.pb.h"

namespace muster::slurm {

// The processes of a job that get a signal.
enum class SignalTo {
  kSteps,  // all of its steps; the batch script is none
  kBatch,  // the first process of the batch script
  kAll,    // all of both
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Returns whether Slurm can be asked at all. FAILED_PRECONDITION, or UNAVAILABLE if Slurm does
  // not answer, says what to do.
  virtual absl::StatusOr<ClusterSettings> Probe() = 0;
  virtual absl::StatusOr<ClusterSettings> Settings() = 0;
  // Returns partitions and their nodes.
  virtual absl::StatusOr<std::vector<v1::Pool>> Pools() = 0;
  // Returns the same in full, and everybody's jobs that have not ended, for people.
  virtual absl::StatusOr<std::vector<Partition>> Partitions() = 0;
  virtual absl::StatusOr<std::vector<v1::Node>> Nodes() = 0;
  virtual absl::StatusOr<std::vector<QueuedJob>> WholeQueue() = 0;

  // Adds what a preflight sees on the way to Slurm. Nothing: Slurm cannot be asked.
  virtual std::optional<Access> CheckAccess(agents::CheckList* checks) = 0;
  // Returns the rights that accounting gives the user on the cluster of this name; on all clusters
  // if it is empty.
  virtual absl::StatusOr<std::vector<Association>> Associations(const ClusterSettings& settings,
                                                                const std::string& user) = 0;

  // Returns those of the nodes that Slurm has: it refuses a job that excludes one that it does not
  // know.
  virtual absl::StatusOr<std::vector<std::string>> KnownNodes(
      const std::vector<std::string>& names) = 0;

  virtual SubmitOutcome Submit(const Submission& submission) = 0;
  // Returns the time at which Slurm would start the job, in Slurm's own words, with the time in
  // seconds since 1970; submits nothing, and the script need not be there. INVALID_ARGUMENT: Slurm
  // would refuse it, in these words. UNIMPLEMENTED: this way cannot tell.
  virtual absl::StatusOr<std::string> EstimateStart(const Submission& submission) = 0;

  // All jobs of the user in any state, ended ones too as long as slurmctld remembers them; with a
  // name, only those that are called so. If jobs run as their users: all users' jobs, whatever the
  // name.
  virtual absl::StatusOr<std::vector<QueueRow>> Queue(std::string_view name = {}) = 0;
  // Returns the rows of accounting for at most kMaxIdsPerHistoryCall ids; only the newest job of
  // each id. For a task, the rows of the whole array. FAILED_PRECONDITION: the cluster keeps no
  // accounting.
  virtual absl::StatusOr<std::vector<HistoryRow>> HistoryOf(const std::vector<JobId>& ids,
                                                            absl::Time since) = 0;
  // Returns the rows by name, with every job that a used id or a requeue left. A job that was never
  // eligible (held, waiting for another) may be missing, also after its end.
  virtual absl::StatusOr<std::vector<HistoryRow>> HistoryOf(std::string_view name,
                                                            absl::Time since) = 0;
  // Returns what accounting counted of at most kMaxIdsPerHistoryCall jobs, likewise.
  virtual absl::StatusOr<std::vector<UsageRow>> UsageOf(const std::vector<JobId>& ids,
                                                        absl::Time since) = 0;
  // Returns the memory that slurmctld still has of one job. NOT_FOUND: nothing.
  virtual absl::StatusOr<HistoryRow> ShowJob(const JobId& id) = 0;

  // Returns how many jobs one CancelMany or SetHeldMany takes, at least 1.
  virtual size_t MaxJobsInCall() const = 0;
  // Returns one answer for each, in the same order. OK: it was asked to end the job, or the job is
  // not there, or has ended.
  virtual std::vector<absl::Status> CancelMany(const std::vector<JobId>& ids) = 0;
  // Keeps jobs from being started, also those that run and are requeued, or lets them start. OK if
  // it is so already. NOT_FOUND: slurmctld does not know it; FAILED_PRECONDITION: it has ended.
  virtual std::vector<absl::Status> SetHeldMany(const std::vector<JobId>& ids, bool held) = 0;
  // Sends a signal, by Linux's number, to a job that runs. NOT_FOUND: slurmctld does not know it;
  // FAILED_PRECONDITION: it has ended. UNIMPLEMENTED: this way sends none.
  virtual absl::Status Signal(const JobId& id, int number, SignalTo to) = 0;

  absl::Status Cancel(const JobId& id) { return CancelMany({id}).front(); }
  absl::Status Hold(const JobId& id) { return SetHeldMany({id}, true).front(); }
  absl::Status Release(const JobId& id) { return SetHeldMany({id}, false).front(); }
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_SCHEDULER_H_
