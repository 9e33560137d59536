#include "oidc/discovery.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "oidc/json.h"

namespace muster::oidc {
namespace {

constexpr std::string_view kPath = "/.well-known/openid-configuration";

std::string AddressOf(std::string_view issuer) {
  if (issuer.ends_with('/')) issuer.remove_suffix(1);
  return fmt::format("{}{}", issuer, kPath);
}

}  // namespace

absl::Status CheckIssuer(std::string_view issuer) {
  if (absl::Status status = CheckUrl(issuer); !status.ok()) return status;
  if (issuer.find_first_of("?#") == issuer.npos) return absl::OkStatus();
  return absl::InvalidArgumentError("an issuer's URL has neither '?' nor '#'");
}

absl::StatusOr<Discovery> ReadDiscovery(std::string_view text, std::string_view issuer) {
  const std::optional<nlohmann::json> document = ParseObject(text);
  if (!document) {
    return absl::FailedPreconditionError(fmt::format("{} is no JSON object", AddressOf(issuer)));
  }
  if (TextMember(*document, "issuer") != issuer) {
    return absl::FailedPreconditionError(
        fmt::format("{} is of another issuer than {}; the two must be the same text",
                    AddressOf(issuer), issuer));
  }
  Discovery found;
  const std::pair<const char*, std::string*> members[] = {
      {"jwks_uri", &found.jwks_uri},
      {"token_endpoint", &found.token_endpoint},
      {"device_authorization_endpoint", &found.device_authorization_endpoint},
      {"revocation_endpoint", &found.revocation_endpoint}};
  for (const auto& [name, address] : members) {
    *address = TextMember(*document, name);
    const bool is_required = address == &found.jwks_uri || address == &found.token_endpoint;
    if (address->empty() && !is_required) continue;
    if (absl::Status status = CheckUrl(*address); !status.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("{}: {}: {}", AddressOf(issuer), name,
                      std::string_view(status.message().data(), status.message().size())));
    }
  }
  return found;
}

absl::StatusOr<Discovery> Discover(const Exchanger& exchange, std::string_view issuer,
                                   HttpsRequest wanted) {
  wanted.url = AddressOf(issuer);
  wanted.form.reset();
  const absl::StatusOr<HttpsAnswer> answer = exchange(wanted);
  if (!answer.ok()) return answer.status();
  if (answer->status != kHttpOk) {
    return absl::UnavailableError(
        fmt::format("{} answers with status {}", wanted.url, answer->status));
  }
  return ReadDiscovery(answer->body, issuer);
}

}  // namespace muster::oidc
