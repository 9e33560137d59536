#include "clients/cpp/broker_trust.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "pki/certificates.h"
#include "pki/shown_certificates.h"

namespace muster::client {
namespace {

// A handshake takes some 10 ms, and a few times the way to the broker.
constexpr absl::Duration kHandshakePatience = absl::Seconds(5);

// "head.lab" of "tls:head.lab:7443", "::1" of "tls:[::1]:7443".
std::string_view HostIn(std::string_view place) {
  std::string_view host = place.substr(0, place.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

absl::Status CheckTrust(const rpc::Address& address) {
  if (!address.unix_path.empty()) return absl::OkStatus();
  const std::string place(
      std::string_view(address.text).substr(address.is_tls ? std::string_view("tls:").size() : 0));
  const absl::StatusOr<std::string> shown = pki::ShownCertificates(place, kHandshakePatience);
  if (!address.is_tls) {
    if (!shown.ok()) return absl::OkStatus();
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "NEEDS_TLS",
        fmt::format("{} speaks TLS; write tls:{} as the broker's address", place, place));
  }
  if (absl::IsFailedPrecondition(shown.status())) {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "NO_TLS_THERE",
                           fmt::format("{}, or ask its operator for the right address",
                                       ToStd(shown.status().message())));
  }
  if (!shown.ok()) return absl::OkStatus();
  const absl::Status verdict =
      pki::Verify(*shown, address.ca, pki::Purpose::kServer, absl::Now(), HostIn(place));
  if (verdict.ok()) return absl::OkStatus();
  return contract::Error(
      absl::StatusCode::kUnauthenticated, "BROKER_NOT_TRUSTED",
      fmt::format("the broker at {} is not trusted, so that it got neither the call nor a token: "
                  "{}. If address and clock are right, ask the broker's operator before you go on: "
                  "somebody else may answer there",
                  address.text, ToStd(verdict.message())));
}

}  // namespace muster::client
