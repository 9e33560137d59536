// The connection that writes. Owner: the store's writer thread.
#ifndef MUSTER_BROKER_STORE_SQLITE_WRITER_H_
#define MUSTER_BROKER_STORE_SQLITE_WRITER_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "broker/core/changes.h"
#include "broker/store/sqlite/database.h"
#include "broker/store/sqlite/row_inserter.h"
#include "broker/store/sqlite/spec_table.h"
#include "broker/store/sqlite/spec_uses.h"
#include "broker/store/sqlite/sqlite_store.h"

namespace muster::store {

class Writer {
 public:
  // The file must exist. Brings its schema up to date.
  static absl::StatusOr<std::unique_ptr<Writer>> Open(const std::string& path,
                                                      const SqliteOptions& options);

  absl::Status Commit(absl::Span<const core::Change> changes);
  // Moves what is committed from the WAL to the database, if it is enough.
  absl::Status Idle();

  const Database& database() const { return *database_; }

 private:
  struct Times {
    int64_t first;
    int64_t last;
  };
  // A row of table `job` to come.
  struct NewJob {
    const core::InsertJob* change;
    int64_t spec;
    std::string labels;
  };

  Writer(std::unique_ptr<Database> database, const SqliteOptions& options);

  absl::Status Prepare();
  absl::Status ApplyAll(absl::Span<const core::Change> changes);
  // Insert what waits for that.
  absl::Status InsertJobs();
  absl::Status AppendTransitions();
  absl::Status Apply(const core::InsertJob& change);
  absl::Status Apply(const core::UpdateJob& change);
  absl::Status Apply(const core::EditJob& change);
  absl::Status Apply(const core::PutRun& change);
  absl::Status Apply(const core::PutUsage& change);
  absl::Status Apply(const core::PutWithdrawal& change);
  absl::Status Apply(const core::AppendTransition& change);
  absl::Status Apply(const core::PutCluster& change);
  absl::Status Apply(const core::AdvanceCluster& change);
  absl::Status Apply(const core::RemoveCluster& change);
  absl::Status Apply(const core::PutBrokerEpoch& change);
  absl::Status Apply(const core::DeleteJob& change);
  absl::Status Apply(const core::PutUse& change);
  absl::Status Apply(const core::RemoveUse& change);
  absl::Status Apply(const core::AddUsage& change);
  // Writes the run's outcome into its job's columns, if the run is the latest.
  absl::Status PutOutcome(uint64_t job, const v1::Run& run);
  absl::Status InsertLabels(uint64_t job,
                            const google::protobuf::Map<std::string, std::string>& labels);
  absl::Status RemoveLabels(uint64_t job);
  absl::Status InsertEdit(const core::EditJob& change);
  // Returns the labels in the form of column `labels`; empty: NULL.
  static std::string LabelBytes(const google::protobuf::Map<std::string, std::string>& labels);
  // Returns the number of the job's row in table spec; 0 if there is no such job.
  absl::StatusOr<int64_t> ReadSpecOf(uint64_t job);
  absl::Status PutBlocks();
  absl::Status DropBlocks();
  absl::Status CheckpointIfDue();
  absl::Status Checkpoint(int mode);
  int64_t wal_bytes() const;

  const SqliteOptions options_;
  const std::unique_ptr<Database> database_;
  absl::Status broken_;       // error of the first commit that failed: nobody knows what is on disk
  int64_t wal_pages_ = 0;     // after the last commit
  int64_t restart_at_bytes_;  // length of the WAL at which a commit waits for readers
  std::map<uint64_t, Times> blocks_;  // blocks of the jobs that the current commit inserts
  std::set<uint64_t> thinned_;        // blocks of the jobs that it deletes
  // Rows of the current commit that are inserted together: jobs before anything else is done to a
  // job, transitions at the end.
  std::vector<NewJob> new_jobs_;
  std::vector<const core::AppendTransition*> new_transitions_;
  std::array<std::string, RowInserter::kMaxRows> buffers_;  // of new_transitions_, serialised
  std::string buffer_;
  SpecTable specs_;
  SpecUses spec_uses_;
  RowInserter insert_job_, append_transition_;

  Statement begin_, commit_;
  Statement insert_label_, put_block_;
  Statement update_job_, update_cluster_of_job_, put_failed_dependency_, put_withdrawal_;
  Statement edit_job_, insert_edit_, labels_, delete_label_;
  Statement put_run_, put_run_change_, put_outcome_, run_, put_usage_;
  Statement put_cluster_, advance_cluster_, remove_cluster_, put_epoch_;
  Statement put_use_, remove_use_, add_usage_, forget_usage_;
  int64_t last_usage_day_ = 0;  // rows that are too old by then are gone
  Statement keep_numbers_, spec_of_job_, delete_job_, delete_runs_;
  Statement delete_transitions_, delete_edits_, drop_block_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_WRITER_H_
