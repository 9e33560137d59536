#include "agents/core/link_refusal.h"

#include "contract/errors.h"

namespace muster::agents {

std::string ReasonOf(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

bool IsFinal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "WRONG_INSTANCE" || reason == "WRONG_CLUSTER";
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) ||
         absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace muster::agents
