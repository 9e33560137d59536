// Implements Writer's part in UpdateJob, and writes the labels of new jobs.
#include <optional>
#include <string>

#include "broker/store/errors.h"
#include "broker/store/sqlite/writer.h"
#include "contract/filter.h"

namespace muster::store {

absl::Status Writer::InsertLabels(uint64_t job,
                                  const google::protobuf::Map<std::string, std::string>& labels) {
  for (const auto& [key, value] : labels) {
    absl::Status status = insert_label_.Start()
                              .Bind(std::string_view(key))
                              .Bind(std::string_view(value))
                              .Bind(job)
                              .Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Writer::RemoveLabels(uint64_t job) {
  v1::Job old;
  {
    ScopedReset reset(&labels_);
    absl::StatusOr<bool> row = labels_.Start().Bind(job).Step();
    if (!row.ok()) return row.status();
    if (!*row) return NoSuchJob(job);
    const std::string_view bytes = labels_.Blob(0);
    if (!old.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return database_->ToStatus(SQLITE_CORRUPT, "read the labels of a job");
    }
  }
  for (const auto& [key, value] : old.labels()) {
    absl::Status status = delete_label_.Start()
                              .Bind(std::string_view(key))
                              .Bind(std::string_view(value))
                              .Bind(job)
                              .Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Writer::Apply(const core::EditJob& change) {
  v1::Job job;
  job.set_id(change.id);
  job.set_priority(change.priority);
  for (const auto& [key, value] : change.labels) (*job.mutable_labels())[key] = value;
  absl::Status status = RemoveLabels(change.id);
  if (status.ok()) status = InsertLabels(change.id, job.labels());
  if (status.ok()) status = InsertEdit(change);
  if (!status.ok()) return status;
  edit_job_.Start().Bind(change.priority);
  const std::string labels = LabelBytes(job.labels());
  labels.empty() ? edit_job_.BindNull() : edit_job_.BindBlob(labels);
  return edit_job_.Bind(change.job_sequence).Bind(change.id).Run();
}

absl::Status Writer::InsertEdit(const core::EditJob& change) {
  v1::Job before;
  before.set_priority(change.priority_before);
  for (const auto& [key, value] : change.labels_before) (*before.mutable_labels())[key] = value;
  before.SerializeToString(&buffer_);
  return insert_edit_.Start().Bind(change.id).Bind(change.sequence).BindBlob(buffer_).Run();
}

std::string Writer::LabelBytes(const google::protobuf::Map<std::string, std::string>& labels) {
  if (labels.empty()) return "";
  v1::Job job;
  *job.mutable_labels() = labels;
  return job.SerializeAsString();
}

absl::Status Writer::PutOutcome(uint64_t job, const v1::Run& run) {
  const v1::FailureClass failure = run.failure().failure_class();
  const bool has_failure = failure != v1::FAILURE_CLASS_UNSPECIFIED;
  if (!has_failure && !run.has_exit()) return absl::OkStatus();
  put_outcome_.Start();
  has_failure ? put_outcome_.Bind(static_cast<int>(failure)) : put_outcome_.BindNull();
  const auto code = run.has_exit() ? contract::ExitCodeOf(run.exit()) : std::nullopt;
  code ? put_outcome_.Bind(*code) : put_outcome_.BindNull();
  return put_outcome_.Bind(job).Bind(run.number()).Run();
}

}  // namespace muster::store
