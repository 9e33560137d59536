#include "broker/store/sqlite/job_row.h"

#include <string>

#include "broker/core/changes.h"
#include "broker/core/timestamps.h"
#include "broker/store/job_view.h"

namespace muster::store {

void ReadJobRow(const Statement& row, v1::Job* job, uint32_t* runs) {
  if (!row.IsNull(13)) {
    const std::string_view labels = row.Blob(13);
    job->ParseFromArray(labels.data(), static_cast<int>(labels.size()));
  }
  auto set = [&](int column, std::string* text) { text->assign(row.Text(column)); };
  job->set_id(row.Int(0));
  job->set_state(static_cast<v1::JobState>(row.Int(1)));
  job->set_job_sequence(row.Int(2));
  job->set_cancel_requested(row.Int(3) != 0);
  *runs = static_cast<uint32_t>(row.Int(4));
  set(5, job->mutable_cluster());
  if (!row.IsNull(6)) core::SetTimestamp(row.Int(6), job->mutable_start_time());
  if (!row.IsNull(7)) core::SetTimestamp(row.Int(7), job->mutable_end_time());
  job->set_priority(static_cast<int32_t>(row.Int(8)));
  core::SetTimestamp(row.Int(9), job->mutable_create_time());
  set(10, job->mutable_name());
  set(11, job->mutable_project());
  set(12, job->mutable_user());
  PutHold(static_cast<core::HoldState>(row.Int(14)), job);
  if (!row.IsNull(15)) core::SetTimestamp(row.Int(15), job->mutable_retry_time());
  job->set_cluster_kind(static_cast<v1::ClusterKind>(row.Int(16)));
  if (!row.IsNull(17)) {
    job->mutable_failure()->set_failure_class(static_cast<v1::FailureClass>(row.Int(17)));
  }
  if (!row.IsNull(18)) job->mutable_exit()->set_code(static_cast<int32_t>(row.Int(18)));
  job->set_rerun_of(row.Int(19));
  if (!row.IsNull(21)) {
    const std::string_view withdrawal = row.Blob(21);
    job->mutable_withdrawal()->ParseFromArray(withdrawal.data(),
                                              static_cast<int>(withdrawal.size()));
  }
  if (!row.IsNull(20)) PutFailedDependency(row.Int(20), job);
}

}  // namespace muster::store
