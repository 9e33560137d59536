// Stores jobs until its process ends, for tests, the simulation and benchmarks of other
// parts.
//
// A restarted broker finds what Commit has taken, so a test crashes the broker by dropping its core
// and calling Restore again.
#ifndef MUSTER_BROKER_STORE_MEMORY_MEMORY_STORE_H_
#define MUSTER_BROKER_STORE_MEMORY_MEMORY_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/store/memory/usage_table.h"
#include "broker/store/store.h"
#include "sync/mutex.h"

namespace muster::store {

class MemoryStore : public Store {
 public:
  // Requests are remembered for `request_memory` after their jobs' end, see core::Options.
  explicit MemoryStore(std::string instance, absl::Duration request_memory = absl::Hours(24));

  absl::StatusOr<core::Restored> Restore(absl::Time now) override;
  absl::Status Commit(absl::Span<const core::Change> changes) override;
  absl::Status Idle() override;

  absl::StatusOr<v1::Job> GetJob(const Scope& scope, uint64_t id) const override;
  absl::StatusOr<std::vector<v1::Job>> GetJobs(const Scope& scope,
                                               absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<std::vector<v1::Job>> GetJobsAndRuns(
      const Scope& scope, absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<JobPage> ListJobs(const Scope& scope, const ListQuery& query) const override;
  absl::StatusOr<JobCounts> CountJobs(const Scope& scope, const CountQuery& query) const override;
  absl::StatusOr<std::vector<JobTransition>> ListTransitions(const Scope& scope,
                                                             absl::Span<const uint64_t> jobs,
                                                             uint64_t after_sequence,
                                                             int limit) const override;
  absl::StatusOr<std::vector<RunChange>> ListRunChanges(const Scope& scope,
                                                        absl::Span<const uint64_t> jobs,
                                                        uint64_t after_sequence,
                                                        int limit) const override;
  absl::StatusOr<std::vector<uint64_t>> ListEnded(absl::Time before, int max_rows) const override;
  absl::StatusOr<uint64_t> LastSequence() const override;
  absl::StatusOr<std::vector<StoredSpec>> GetSpecs(const Scope& scope,
                                                   absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<UsageRows> ListUsage(const Scope& scope, const UsageQuery& query) const override;
  absl::StatusOr<std::vector<v1::JobState>> GetStates(
      absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<std::vector<v1::Job>> GetJobsOfRequest(
      const Scope& scope, uint64_t first, const std::string& request_id) const override;

  // Makes every later Commit answer this and change nothing, as on a full disk.
  void FailCommits(absl::Status status);

 private:
  struct Record {
    v1::Job job;  // without spec and runs
    std::shared_ptr<const v1::JobSpec> spec;
    std::map<uint32_t, v1::Run> runs;
    std::set<uint32_t> open_runs;              // of which more may be heard
    std::map<uint32_t, uint64_t> run_changes;  // the sequence of each run's latest one
    core::HoldState hold = core::HoldState::kNone;
    uint32_t fail_overs = 0;
    uint32_t returned_runs = 0;
    std::vector<v1::Transition> transitions;
    std::map<uint64_t, Editable> edits;  // by the sequence of the step: what was before it
    std::string request_id;
    core::Fingerprint fingerprint = 0;
  };

  // Checks that numbers and sequences rise, as the core promises; a database would refuse to insert
  // them twice.
  absl::Status Check(absl::Span<const core::Change> changes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::InsertJob& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::UpdateJob& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::PutWithdrawal& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::EditJob& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::PutRun& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::PutUsage& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteChange(Record* record, uint64_t job, uint32_t run, uint64_t sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::AppendTransition& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::PutCluster& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::AdvanceCluster& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::RemoveCluster& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::PutBrokerEpoch& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::DeleteJob& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  v1::JobState StateOf(uint64_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the jobs that a job depends on, for one that never had a run.
  std::vector<core::LiveJob::Dependency> DependenciesOf(const Record& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::PutUse& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::RemoveUse& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const core::AddUsage& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<const Record*> Find(const Scope& scope, uint64_t id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool Sees(const Scope& scope, const Record& record);
  static v1::Job Show(const Record& record, bool include_spec);

  const std::string instance_;
  const absl::Duration request_memory_;

  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  uint64_t broker_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_job_ ABSL_GUARDED_BY(mutex_) = 0;  // the highest number of a job, ever
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Record> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> job_by_sequence_ ABSL_GUARDED_BY(mutex_);  // of each transition
  std::map<uint64_t, std::pair<uint64_t, uint32_t>> run_by_change_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, core::PutCluster> clusters_ ABSL_GUARDED_BY(mutex_);
  // They are by project and user.
  std::map<std::pair<std::string, std::string>, core::PutUse> uses_ ABSL_GUARDED_BY(mutex_);
  UsageTable usage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_MEMORY_MEMORY_STORE_H_
