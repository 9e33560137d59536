#include "agents/hosts/host.h"

#include <cerrno>

#include "absl/strings/cord.h"
#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// The payload stays within this process.
constexpr char kCauseUrl[] = "muster.hosts/cause";

}  // namespace

bool NotStarted(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return true;
    default:
      return false;
  }
}

absl::Status NotStartedError(int error, const std::string& message) {
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case E2BIG:
      return absl::InvalidArgumentError(message);
    default:
      return absl::FailedPreconditionError(message);
  }
}

absl::Status LostError(const std::string& program, const absl::Status& cause) {
  const std::string words = MessageOf(cause);
  absl::Status error = absl::UnavailableError(fmt::format("\"{}\": {}", program, words));
  cause.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { error.SetPayload(type, payload); });
  error.SetPayload(kCauseUrl, absl::Cord(words));
  return error;
}

std::string CauseOf(const absl::Status& status) {
  const auto cause = status.GetPayload(kCauseUrl);
  return cause.has_value() ? std::string(*cause) : MessageOf(status);
}

}  // namespace muster::hosts
