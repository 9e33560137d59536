#include "rpc/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "google/rpc/status.pb.h"

namespace muster::rpc {
namespace {

// gRPC drops a call whose trailers exceed 8 KiB (GRPC_ARG_MAX_METADATA_SIZE). The message travels
// twice, once percent-encoded, and the details in base64.
constexpr size_t kMaxMessageBytes = 1000;
constexpr size_t kMaxDetailsBytes = 4000;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message(
      contract::CutBetweenCharacters(ToStd(status.message()), kMaxMessageBytes));
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(message);
  status.ForEachPayload([&wire](absl::string_view type_url, const absl::Cord& payload) {
    auto* detail = wire.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
    if (wire.ByteSizeLong() > kMaxDetailsBytes) wire.mutable_details()->RemoveLast();
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      wire.details().empty() ? "" : wire.SerializeAsString());
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status wire;
  // Details that are not ours, or broken, are no reason to lose the error itself.
  if (!wire.ParseFromString(status.error_details())) return result;
  for (const auto& detail : wire.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace muster::rpc
