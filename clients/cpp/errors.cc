#include "clients/cpp/errors.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <string>

#include "absl/time/time.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::client {
namespace {

// gRPC names each layer that passed the error on, with colons between; the last one says what
// happened.
std::string_view Cause(std::string_view message) {
  const size_t at = message.rfind(": ");
  return at == std::string_view::npos ? message : message.substr(at + 2);
}

std::string Remedy(const Address& address) {
  struct stat info;
  if (address.unix_path.empty()) {
    return "Is the broker running there, and does it listen on that port (muster-broker --listen)?";
  }
  if (stat(address.unix_path.c_str(), &info) != 0) {
    return "There is no such socket: start the broker (muster-broker --state-dir DIR serves "
           "DIR/broker.sock), or name another one with --broker or MUSTER_BROKER.";
  }
  if (!S_ISSOCK(info.st_mode)) return "That is not a socket.";
  return "The socket is there, but no broker answers on it: start it again, or look at its log.";
}

}  // namespace

bool IsTransportError(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) &&
         !contract::GetErrorInfo(status).has_value();
}

bool MayPass(const absl::Status& status) {
  return (absl::IsUnavailable(status) && IsTransportError(status)) ||
         contract::GetRetryDelay(status).has_value();
}

absl::Duration RetryDelay(const absl::Status& status) {
  return contract::GetRetryDelay(status).value_or(absl::ZeroDuration());
}

absl::Status Explain(const absl::Status& status, const Address& address, absl::Duration timeout) {
  if (!IsTransportError(status)) return status;
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(fmt::format("the broker at {} did not answer within {}",
                                                   address.text,
                                                   ToStd(absl::FormatDuration(timeout))));
  }
  return absl::UnavailableError(fmt::format("cannot reach the broker at {}: {}. {}", address.text,
                                            Cause(ToStd(status.message())), Remedy(address)));
}

absl::Status Interruption(const absl::Status& status, const Address& address) {
  return absl::Status(status.code(), fmt::format("lost the broker at {}: {}", address.text,
                                                 Cause(ToStd(status.message()))));
}

}  // namespace muster::client
