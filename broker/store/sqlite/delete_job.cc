// Implements Writer's deletion of a job.
#include "broker/store/sqlite/schema.h"
#include "broker/store/sqlite/writer.h"

namespace muster::store {

absl::Status Writer::Apply(const core::DeleteJob& change) {
  const uint64_t id = change.id;
  // Some may be the job's, or have the highest number.
  absl::Status status = AppendTransitions();
  // Once in a commit is enough: later inserts get higher numbers.
  if (status.ok() && thinned_.empty()) status = keep_numbers_.Start().Run();
  if (status.ok()) status = RemoveLabels(id);
  if (absl::IsNotFound(status)) return absl::OkStatus();  // the job was named twice
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> spec = ReadSpecOf(id);
  status = spec.status();
  if (status.ok()) status = delete_transitions_.Start().Bind(id).Run();
  if (status.ok()) status = delete_edits_.Start().Bind(id).Run();
  if (status.ok())
    status = delete_runs_.Start().Bind(RunRowId(id, 0)).Bind(RunRowId(id + 1, 0)).Run();
  if (status.ok()) status = delete_job_.Start().Bind(id).Run();
  if (status.ok()) spec_uses_.Remove(*spec);
  thinned_.insert(id / kBlockJobs);
  return status;
}

absl::StatusOr<int64_t> Writer::ReadSpecOf(uint64_t job) {
  ScopedReset reset(&spec_of_job_);
  absl::StatusOr<bool> row = spec_of_job_.Start().Bind(job).Step();
  if (!row.ok()) return row.status();
  return *row ? spec_of_job_.Int(0) : 0;
}

absl::Status Writer::DropBlocks() {
  for (const uint64_t block : thinned_) {
    absl::Status status = drop_block_.Start()
                              .Bind(block)
                              .Bind(block * kBlockJobs)
                              .Bind((block + 1) * kBlockJobs)
                              .Run();
    if (!status.ok()) return status;
  }
  thinned_.clear();
  return absl::OkStatus();
}

}  // namespace muster::store
