#include "clients/cpp/login/device_login.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "clients/cpp/login/token_endpoint.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "oidc/json.h"

namespace muster::client {
namespace {

using nlohmann::json;
using oidc::TextMember;

// RFC 8628 has this pause between two questions, if the provider does not say, and by how much
// "slow_down" lengthens it.
constexpr absl::Duration kDefaultInterval = absl::Seconds(5);
constexpr absl::Duration kSlowDown = absl::Seconds(5);
constexpr absl::Duration kMinInterval = absl::Seconds(1);
constexpr absl::Duration kMaxInterval = absl::Minutes(1);
// Nobody waits longer for a person.
constexpr absl::Duration kMaxLifetime = absl::Hours(1);
constexpr absl::Duration kDefaultLifetime = absl::Minutes(10);

struct Device {
  std::string code;  // the secret of this program, as against the person's
  DevicePrompt prompt;
  absl::Duration interval;
};

absl::Status Impossible(std::string_view text) {
  return absl::FailedPreconditionError(ToAbsl(text));
}

absl::Duration SecondsIn(const json& answer, const char* name, absl::Duration otherwise,
                         absl::Duration least, absl::Duration most) {
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_number()) return otherwise;
  return std::clamp(absl::Seconds(found->get<double>()), least, most);
}

absl::StatusOr<Device> AskForDevice(const v1::GetLoginInfoResponse& info,
                                    const std::string& endpoint, const oidc::Exchanger& exchange) {
  const absl::StatusOr<oidc::HttpsAnswer> got =
      exchange({.url = endpoint,
                .ca = info.ca_certificates(),
                .form = Form{{"client_id", info.client_id()}, {"scope", info.scopes()}}});
  if (!got.ok()) return got.status();
  const std::optional<json> answer = oidc::ParseObject(got->body);
  if (!answer || got->status != oidc::kHttpOk) {
    const std::string error = answer ? TextMember(*answer, "error") : "";
    const std::string words = answer ? TextMember(*answer, "error_description") : "";
    return Impossible(fmt::format(
        "the identity provider does not let {} log in by the device flow (status {}{}{}); ask the "
        "operator of the broker to allow it there",
        contract::Quoted(info.client_id()), got->status, error.empty() ? "" : ", ",
        error.empty() ? "" : contract::Quoted(words.empty() ? error : words)));
  }
  Device device;
  device.code = TextMember(*answer, "device_code");
  device.prompt.code = TextMember(*answer, "user_code");
  device.prompt.url = TextMember(*answer, "verification_uri");
  device.prompt.whole_url = TextMember(*answer, "verification_uri_complete");
  device.prompt.lifetime =
      SecondsIn(*answer, "expires_in", kDefaultLifetime, kMinInterval, kMaxLifetime);
  device.interval = SecondsIn(*answer, "interval", kDefaultInterval, kMinInterval, kMaxInterval);
  if (device.code.empty() || device.prompt.code.empty() || device.prompt.url.empty())
    return Impossible(fmt::format("{} answers without a code", endpoint));
  return device;
}

absl::Status NotInTime(const absl::Status& trouble) {
  if (!trouble.ok()) return trouble;
  return absl::DeadlineExceededError(
      "nobody used the code before it expired; muster login gives another");
}

// Returns the end of the questions, for better or worse; nothing if they go on.
std::optional<absl::Status> EndOf(const TokenAnswer& answer, absl::Duration* interval) {
  if (answer.error.empty()) return absl::OkStatus();
  if (answer.error == "authorization_pending") return std::nullopt;
  if (answer.error == "slow_down") {
    *interval = std::min(*interval + kSlowDown, kMaxInterval);
    return std::nullopt;
  }
  if (answer.error == "expired_token") return NotInTime({});
  if (answer.error == "access_denied") {
    return absl::PermissionDeniedError(
        "the login was denied, by you or by the identity provider; if not by you, ask its "
        "operator");
  }
  return Impossible(fmt::format(
      "the identity provider gives no token: {}",
      contract::Quoted(answer.description.empty() ? answer.error : answer.description)));
}

absl::Status AwaitTokens(const DeviceLoginOptions& options, const Device& device, Login* login) {
  absl::Duration interval = device.interval;
  const absl::Time due = options.now() + device.prompt.lifetime;
  absl::Status trouble;  // of the last question, if nobody answered it
  while (options.now() < due) {
    options.sleep(interval);
    absl::StatusOr<TokenAnswer> answer =
        AskForTokens(options.exchange, *login,
                     {{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"},
                      {"device_code", device.code}});
    trouble = answer.status();
    if (absl::IsUnavailable(trouble)) {
      // By RFC 8628, somebody who does not answer is asked less often.
      interval = std::min(interval * 2, kMaxInterval);
      continue;
    }
    if (!trouble.ok()) return trouble;
    const std::optional<absl::Status> end = EndOf(*answer, &interval);
    if (!end) continue;
    login->id_token = std::move(answer->id_token);
    login->refresh_token = std::move(answer->refresh_token);
    return *end;
  }
  return NotInTime(trouble);
}

}  // namespace

absl::StatusOr<Login> LogInByDevice(const v1::GetLoginInfoResponse& info,
                                    const DeviceLoginOptions& options) {
  if (info.issuer().empty()) {
    return Impossible(
        "this broker has no identity provider; ask its operator for a token (muster token create), "
        "or to set oidc.issuer");
  }
  const absl::StatusOr<oidc::Discovery> provider =
      oidc::Discover(options.exchange, info.issuer(), {.ca = info.ca_certificates()});
  if (!provider.ok()) return provider.status();
  if (provider->device_authorization_endpoint.empty()) {
    return Impossible(
        fmt::format("the identity provider {} has no device flow; ask the operator of the broker",
                    info.issuer()));
  }
  const absl::StatusOr<Device> device =
      AskForDevice(info, provider->device_authorization_endpoint, options.exchange);
  if (!device.ok()) return device.status();
  options.show(device->prompt);
  Login login{.issuer = info.issuer(),
              .client_id = info.client_id(),
              .ca = info.ca_certificates(),
              .token_endpoint = provider->token_endpoint,
              .revocation_endpoint = provider->revocation_endpoint};
  if (absl::Status status = AwaitTokens(options, *device, &login); !status.ok()) return status;
  return login;
}

}  // namespace muster::client
