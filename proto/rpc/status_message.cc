#include "rpc/status_message.h"

#include <string>

#include "absl/strings/cord.h"
#include "contract/text.h"

namespace muster::rpc {

google::rpc::Status ToMessage(const absl::Status& status) {
  google::rpc::Status message;
  message.set_code(static_cast<int>(status.code()));
  message.set_message(std::string(ToStd(status.message())));
  status.ForEachPayload([&message](absl::string_view type_url, const absl::Cord& payload) {
    auto* detail = message.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
  });
  return message;
}

absl::Status FromMessage(const google::rpc::Status& message) {
  constexpr int kLastCode = 16;  // UNAUTHENTICATED
  const bool is_code = message.code() >= 0 && message.code() <= kLastCode;
  const auto code =
      is_code ? static_cast<absl::StatusCode>(message.code()) : absl::StatusCode::kUnknown;
  absl::Status status(code, message.message());
  for (const auto& detail : message.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return status;
}

}  // namespace muster::rpc
