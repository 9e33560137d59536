#include "contract/signal_error.h"

#include <string>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster::contract {

v1::SignalError ToSignalError(const absl::Status& status) {
  v1::SignalError error;
  error.set_code(static_cast<int>(status.code()));
  error.set_message(std::string(ToStd(status.message())));
  if (const auto info = GetErrorInfo(status)) error.set_reason(info->reason());
  return error;
}

absl::Status FromSignalError(const v1::SignalError& error) {
  constexpr int kHighestCode = static_cast<int>(absl::StatusCode::kUnauthenticated);
  const bool is_known = error.code() > 0 && error.code() <= kHighestCode;
  const auto code =
      is_known ? static_cast<absl::StatusCode>(error.code()) : absl::StatusCode::kUnknown;
  if (error.reason().empty()) return absl::Status(code, error.message());
  return Error(code, error.reason(), error.message());
}

}  // namespace muster::contract
