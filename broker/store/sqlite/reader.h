// One read-only connection with the queries of the Store. Owner: the holder of its lease, see
// ReaderPool.
#ifndef MUSTER_BROKER_STORE_SQLITE_READER_H_
#define MUSTER_BROKER_STORE_SQLITE_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "broker/store/sqlite/database.h"
#include "broker/store/sqlite/list_plan.h"
#include "broker/store/sqlite/sqlite_store.h"

namespace muster::store {

class Reader {
 public:
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path,
                                                      const SqliteOptions& options);

  // These do as in Store.
  absl::StatusOr<v1::Job> GetJob(const Scope& scope, uint64_t id);
  absl::StatusOr<std::vector<v1::Job>> GetJobs(const Scope& scope, absl::Span<const uint64_t> ids);
  absl::StatusOr<std::vector<v1::Job>> GetJobsAndRuns(const Scope& scope,
                                                      absl::Span<const uint64_t> ids);
  absl::StatusOr<JobPage> ListJobs(const Scope& scope, ListQuery query);
  absl::StatusOr<JobCounts> CountJobs(const Scope& scope, const CountQuery& query);
  absl::StatusOr<std::vector<v1::Job>> GetJobsOfRequest(const Scope& scope, uint64_t first,
                                                        const std::string& request_id);
  absl::StatusOr<std::vector<JobTransition>> ListTransitions(const Scope& scope,
                                                             absl::Span<const uint64_t> jobs,
                                                             uint64_t after_sequence, int limit);
  absl::StatusOr<std::vector<RunChange>> ListRunChanges(const Scope& scope,
                                                        absl::Span<const uint64_t> jobs,
                                                        uint64_t after_sequence, int limit);
  absl::StatusOr<std::vector<uint64_t>> ListEnded(absl::Time before, int max_rows);
  absl::StatusOr<uint64_t> LastSequence();
  absl::StatusOr<std::vector<StoredSpec>> GetSpecs(const Scope& scope,
                                                   absl::Span<const uint64_t> ids);
  absl::StatusOr<std::vector<v1::JobState>> GetStates(absl::Span<const uint64_t> ids);
  absl::StatusOr<UsageRows> ListUsage(const Scope& scope, const UsageQuery& query);

 private:
  // All reads during its life see the same commit.
  class Snapshot {
   public:
    explicit Snapshot(Reader* reader) : reader_(reader), status_(reader->begin_.Start().Run()) {}
    ~Snapshot() {
      if (status_.ok()) reader_->end_.Start().Run().IgnoreError();
    }
    const absl::Status& status() const { return status_; }

   private:
    Reader* const reader_;
    const absl::Status status_;
  };
  // A page that is being filled.
  struct Listing;

  explicit Reader(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  absl::Status Prepare();
  // Returns a statement of ListJobs; it holds until the next call.
  absl::StatusOr<Statement*> Prepared(const std::string& sql);
  // Returns the reason why the job is not there, or an error.
  absl::Status NotHere(uint64_t id);
  // NOT_FOUND: the scope has no such job.
  absl::Status ReadJob(const Scope& scope, uint64_t id, v1::Job* job, uint32_t* runs);
  // Reads the latest run, and what the job shows of it. The job keeps the run if it is asked for.
  absl::Status ReadLatestRun(uint32_t runs, v1::Job* job, bool keeps_run = false);
  absl::Status ReadHold(v1::Job* job);
  absl::Status ReadRuns(uint64_t id, google::protobuf::RepeatedPtrField<v1::Run>* runs);
  // Reads the spec of a job whose row was read. `mask` is the part of it; null means all.
  absl::Status ReadSpec(v1::Job* job, const contract::SpecMask* mask = nullptr);

  // ---- list_jobs.cc
  // False: no index finds few enough jobs to sort them.
  absl::StatusOr<bool> SortFew(Listing* listing);
  absl::StatusOr<bool> AreFew(const std::vector<Access>& accesses);
  absl::Status Sort(const std::vector<Access>& accesses, Listing* listing);
  absl::Status ListById(Listing* listing);
  // Returns where jobs created within the plan's times can be, in the order of the list.
  // `go_on_after`: a page that is not full by then ends there, because there may be more ranges.
  absl::StatusOr<std::vector<IdRange>> RangesFor(const Listing& listing, IdRange ids,
                                                 std::optional<uint64_t>* go_on_after);
  absl::Status ListRange(IdRange range, Listing* listing);
  absl::Status ListInOrder(Listing* listing);
  absl::Status TakeRows(Statement& rows, Walk::Skip skip, Listing* listing);
  absl::Status AddToPage(v1::Job job, uint32_t runs, Listing* listing);

  // Reads a row of kTransitionColumns.
  absl::Status ReadTransition(const Statement& row, JobTransition* item) const;
  // Returns the rows of a statement of them.
  absl::StatusOr<std::vector<JobTransition>> TakeTransitions(Statement& rows);
  absl::StatusOr<std::vector<JobTransition>> TransitionsOf(const Scope& scope,
                                                           absl::Span<const uint64_t> jobs,
                                                           uint64_t after_sequence, int limit);
  template <typename Message>
  absl::Status Parse(std::string_view bytes, Message* out) const;

  const std::unique_ptr<Database> database_;
  std::string instance_;

  Statement begin_, end_;
  Statement job_, state_, run_, runs_, spec_, request_;
  Statement blocks_, blocks_upwards_;
  Statement transitions_, transition_, sequences_, run_changes_, run_changes_of_job_, latest_steps_,
      last_numbers_, ended_;
  std::map<std::string, Statement> lists_;  // by their SQL
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_READER_H_
