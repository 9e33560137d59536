// Keeps the broker's truth: in memory (tests) or in SQLite (default); one conformance suite is in
// tests/unit/store.
#ifndef MUSTER_BROKER_STORE_STORE_H_
#define MUSTER_BROKER_STORE_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "broker/core/changes.h"
#include "broker/core/core.h"
#include "broker/store/scope.h"
#include "broker/store/usage_query.h"
#include "contract/filter.h"
#include "contract/job_order.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::contract {
class SpecMask;
}

namespace muster::store {

struct ListQuery {
  contract::Filter filter = {};
  contract::JobOrder order = {};
  int page_size = 100;
  std::string page_token = {};
  bool include_spec = false;
  bool include_latest_run = false;
  // The part of the spec, with include_spec. Null: all of it.
  std::shared_ptr<const contract::SpecMask> spec_mask = nullptr;
};

struct JobPage {
  std::vector<v1::Job> jobs;    // with at most the latest run
  std::string next_page_token;  // empty: there are no more
};

struct CountQuery {
  contract::Filter filter = {};
  std::vector<v1::JobGrouping> group_by = {};
  std::string label = {};  // with JOB_GROUPING_LABEL
  uint64_t limit = 1'000'000;
};

struct JobCounts {
  std::vector<v1::JobCount> counts;  // the largest first
  uint64_t total = 0;
  bool is_over =
      false;  // the filter takes more jobs than the limit; only `limit` of them were counted
};

// The fields of a job that a user may change.
struct Editable {
  int32_t priority = 0;
  std::map<std::string, std::string> labels;
};

struct JobTransition {
  uint64_t job = 0;
  v1::Transition transition;
  // The values before the step, if the step changed them.
  std::optional<Editable> edited = std::nullopt;
  // The values after this step, if a later step changed them. Nothing: the job's present values.
  // Steps that a release before this table recorded count as if they had changed neither.
  std::optional<Editable> edited_later = std::nullopt;
};

// The latest change of a run that no transition tells.
struct RunChange {
  uint64_t sequence = 0;
  uint64_t job = 0;  // 0: it is not in the scope
  v1::Run run;       // as it is now
};

// The part of an assignment that the core does not know.
struct StoredSpec {
  v1::JobSpec spec;
  std::string user;
  std::vector<std::string> excluded_nodes;  // see FailedNodes
};

class Store {
 public:
  virtual ~Store() = default;

  // ---- the writer: one thread, the engine's store thread (before it starts, the main thread)

  virtual absl::StatusOr<core::Restored> Restore(absl::Time now) = 0;
  // Commits all changes or none; they are durable when it returns OK. After an error the store must
  // not be used again.
  virtual absl::Status Commit(absl::Span<const core::Change> changes) = 0;
  // Does housekeeping while there is nothing to commit (checkpoints); takes at most about 100 ms.
  virtual absl::Status Idle() = 0;

  // ---- readers: any thread; they see what has been committed, and no job outside of the scope

  // NOT_FOUND: UNKNOWN_JOB, there never was such a job; JOB_DELETED, there was one. All reads have
  // these errors.
  virtual absl::StatusOr<v1::Job> GetJob(const Scope& scope, uint64_t id) const = 0;
  // Returns jobs in the order of the ids, without spec and runs. NOT_FOUND names the first unknown
  // one.
  virtual absl::StatusOr<std::vector<v1::Job>> GetJobs(const Scope& scope,
                                                       absl::Span<const uint64_t> ids) const = 0;
  // Returns the same jobs, each with all its runs; a run has only what ForFilters (job_past.h)
  // leaves.
  virtual absl::StatusOr<std::vector<v1::Job>> GetJobsAndRuns(
      const Scope& scope, absl::Span<const uint64_t> ids) const = 0;
  // INVALID_ARGUMENT: a page token that is not of this store, or of another filter or order. A page
  // ends early after a bounded amount of work.
  virtual absl::StatusOr<JobPage> ListJobs(const Scope& scope, const ListQuery& query) const = 0;
  // Takes about a second for a million jobs.
  virtual absl::StatusOr<JobCounts> CountJobs(const Scope& scope,
                                              const CountQuery& query) const = 0;
  // Returns at most `limit` transitions with a higher sequence, in order. No ids: those of all
  // jobs.
  virtual absl::StatusOr<std::vector<JobTransition>> ListTransitions(
      const Scope& scope, absl::Span<const uint64_t> jobs, uint64_t after_sequence,
      int limit) const = 0;
  // Lists changes of runs with a higher sequence, in order, at most `limit`, those of jobs outside
  // of the scope among them. No ids: those of all jobs.
  virtual absl::StatusOr<std::vector<RunChange>> ListRunChanges(const Scope& scope,
                                                                absl::Span<const uint64_t> jobs,
                                                                uint64_t after_sequence,
                                                                int limit) const = 0;
  // Lists jobs that ended before a time, the first ended first, that together have at most about
  // `max_rows` rows (see kMaxDeletedRows), or one job. Those with a run of which more may be heard
  // are left out. `core::DeleteJob` deletes them. For housekeeping, whatever the scope.
  virtual absl::StatusOr<std::vector<uint64_t>> ListEnded(absl::Time before,
                                                          int max_rows) const = 0;
  // Returns the sequence of the latest transition or change of a run, also of one that was deleted;
  // 0 if there is none.
  virtual absl::StatusOr<uint64_t> LastSequence() const = 0;
  virtual absl::StatusOr<std::vector<StoredSpec>> GetSpecs(
      const Scope& scope, absl::Span<const uint64_t> ids) const = 0;
  // Returns the states of the jobs, in the order of the ids, whatever the scope: another job of the
  // caller's names them. JOB_STATE_UNSPECIFIED: there is no such job, or it was deleted.
  virtual absl::StatusOr<std::vector<v1::JobState>> GetStates(
      absl::Span<const uint64_t> ids) const = 0;
  // Returns the use of the jobs in the scope, also of those that were deleted.
  virtual absl::StatusOr<UsageRows> ListUsage(const Scope& scope,
                                              const UsageQuery& query) const = 0;
  // Returns the jobs of one RerunJobs by number: those from `first` on that have this request id.
  virtual absl::StatusOr<std::vector<v1::Job>> GetJobsOfRequest(
      const Scope& scope, uint64_t first, const std::string& request_id) const = 0;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_STORE_H_
