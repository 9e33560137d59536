#include "clients/cpp/broker_trust.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "pki/shown_certificates.h"

namespace muster::client {
namespace {

// A handshake takes some 10 ms, and a few times the way to the broker.
constexpr absl::Duration kHandshakePatience = absl::Seconds(5);

}  // namespace

absl::Status CheckTrust(const rpc::Address& address) {
  if (!address.unix_path.empty()) return absl::OkStatus();
  const std::string place(
      std::string_view(address.text).substr(address.is_tls ? std::string_view("tls:").size() : 0));
  if (!address.is_tls) {
    if (!pki::ShownCertificates(place, kHandshakePatience).ok()) return absl::OkStatus();
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "NEEDS_TLS",
        fmt::format("{} speaks TLS; write tls:{} as the broker's address", place, place));
  }
  const absl::Status verdict = pki::CheckShownCertificates(place, address.ca, kHandshakePatience);
  if (absl::IsFailedPrecondition(verdict)) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "NO_TLS_THERE",
        fmt::format("{}, or ask its operator for the right address", ToStd(verdict.message())));
  }
  if (!absl::IsUnauthenticated(verdict)) return absl::OkStatus();
  return contract::Error(
      absl::StatusCode::kUnauthenticated, "BROKER_NOT_TRUSTED",
      fmt::format("the broker at {} is not trusted, so that it got neither the call nor a token: "
                  "{}. If address and clock are right, ask the broker's operator before you go on: "
                  "somebody else may answer there",
                  address.text, ToStd(verdict.message())));
}

}  // namespace muster::client
