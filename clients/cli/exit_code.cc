#include "clients/cli/exit_code.h"

#include <string>

#include "contract/errors.h"

namespace muster::cli {

ExitCode CodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kNotAllowed;
    case absl::StatusCode::kDeadlineExceeded:
      return kTimeOut;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition: {
      const auto info = contract::GetErrorInfo(status);
      const std::string reason = info ? info->reason() : "";
      const bool is_misplaced = reason == "CANNOT_BE_PLACED" || reason == "UNKNOWN_CLUSTER";
      return is_misplaced ? kCannotBePlaced : kError;
    }
    default:
      return kError;
  }
}

ExitCode CodeFor(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_SUCCEEDED:
      return kOk;
    case v1::JOB_STATE_CANCELED:
      return kJobCanceled;
    case v1::JOB_STATE_FAILED: {
      const bool is_lost =
          !job.runs().empty() && job.runs().rbegin()->state() == v1::RUN_STATE_LOST;
      const v1::FailureClass kind = job.failure().failure_class();
      const bool by_registry = kind == v1::FAILURE_CLASS_IMAGE && job.failure().retriable();
      const bool by_cluster = is_lost || by_registry || kind == v1::FAILURE_CLASS_INFRA ||
                              kind == v1::FAILURE_CLASS_PREEMPTED;
      return by_cluster ? kInfrastructure : kJobFailed;
    }
    default:
      return kError;
  }
}

}  // namespace muster::cli
