// One read-only connection and the queries of the Store on it. Owner: whoever holds its lease, see
// ReaderPool.
#ifndef MUSTER_BROKER_STORE_SQLITE_READER_H_
#define MUSTER_BROKER_STORE_SQLITE_READER_H_

#include <cstdint>
#include <map>
#include <memory>
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

  // As in Store.
  absl::StatusOr<v1::Job> GetJob(uint64_t id);
  absl::StatusOr<std::vector<v1::Job>> GetJobs(absl::Span<const uint64_t> ids);
  absl::StatusOr<JobPage> ListJobs(const contract::Filter& filter, int page_size,
                                   const std::string& page_token, bool include_spec);
  absl::StatusOr<std::vector<JobTransition>> ListTransitions(absl::Span<const uint64_t> jobs,
                                                             uint64_t after_sequence, int limit);
  absl::StatusOr<uint64_t> LastSequence();
  absl::StatusOr<std::vector<StoredSpec>> GetSpecs(absl::Span<const uint64_t> ids);

 private:
  // All reads within its life see the same commit.
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
  // A page being filled.
  struct Listing;
  // Ids from `first` on and below `end`.
  struct Range {
    uint64_t first;
    uint64_t end;
  };

  explicit Reader(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  absl::Status Prepare();
  absl::StatusOr<Statement*> ListStatement(ListPlan::Index index);
  // NOT_FOUND: no such job.
  absl::Status ReadJob(uint64_t id, v1::Job* job, uint32_t* runs);
  // And what the job shows of it.
  absl::Status ReadLatestRun(uint32_t runs, v1::Job* job);
  absl::Status ReadHold(v1::Job* job);
  absl::Status ReadRuns(uint64_t id, google::protobuf::RepeatedPtrField<v1::Run>* runs);
  absl::Status ReadSpec(uint64_t id, v1::JobSpec* spec);
  absl::Status ListRange(Range range, Listing* listing);
  // Where jobs created within the plan's times can be, below `before`, the highest ids first.
  absl::StatusOr<std::vector<Range>> RangesFor(const ListPlan& plan, uint64_t before,
                                               uint64_t* next);
  absl::StatusOr<std::vector<JobTransition>> TransitionsOfAll(uint64_t after_sequence, int limit);
  absl::StatusOr<std::vector<JobTransition>> TransitionsOf(absl::Span<const uint64_t> jobs,
                                                           uint64_t after_sequence, int limit);
  template <typename Message>
  absl::Status Parse(std::string_view bytes, Message* out) const;

  const std::unique_ptr<Database> database_;
  std::string instance_;

  Statement begin_, end_;
  Statement job_, run_, runs_, spec_, spec_and_user_, blocks_;
  Statement transitions_, transition_, sequences_, latest_steps_, last_sequence_;
  std::map<ListPlan::Index, Statement> lists_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_READER_H_
