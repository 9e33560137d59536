#include "clients/cpp/login/token_endpoint.h"

#include <fmt/format.h>

#include <optional>

#include "contract/characters.h"
#include "contract/text.h"
#include "oidc/json.h"

namespace muster::client {
namespace {

using oidc::TextMember;

constexpr int kServerTrouble = 500;
constexpr int kTooMany = 429;

absl::Status Unreadable(const Login& login, std::string_view what) {
  return absl::FailedPreconditionError(ToAbsl(
      fmt::format("the identity provider {} answers without {}; ask the operator of the broker "
                  "whether it is set up for Muster",
                  login.issuer, what)));
}

}  // namespace

absl::StatusOr<TokenAnswer> AskForTokens(const oidc::Exchanger& exchange, const Login& login,
                                         Form form) {
  form.emplace_back("client_id", login.client_id);
  const absl::StatusOr<oidc::HttpsAnswer> got =
      exchange({.url = login.token_endpoint, .ca = login.ca, .form = std::move(form)});
  if (!got.ok()) return got.status();
  if (got->status >= kServerTrouble || got->status == kTooMany) {
    return absl::UnavailableError(
        ToAbsl(fmt::format("{} answers with status {}", login.token_endpoint, got->status)));
  }
  const std::optional<nlohmann::json> body = oidc::ParseObject(got->body);
  if (!body) return Unreadable(login, "JSON");
  TokenAnswer answer{.error = TextMember(*body, "error"),
                     .description = TextMember(*body, "error_description"),
                     .id_token = TextMember(*body, "id_token"),
                     .refresh_token = TextMember(*body, "refresh_token")};
  if (!answer.error.empty()) return answer;
  if (got->status != oidc::kHttpOk) return Unreadable(login, "a reason for its refusal");
  if (answer.id_token.empty()) return Unreadable(login, "an ID token");
  return answer;
}

absl::Status Refresh(const oidc::Exchanger& exchange, Login* login) {
  if (login->refresh_token.empty()) {
    return absl::UnauthenticatedError(
        "the login has expired, and the identity provider gave nothing to renew it with; muster "
        "login");
  }
  absl::StatusOr<TokenAnswer> answer = AskForTokens(
      exchange, *login, {{"grant_type", "refresh_token"}, {"refresh_token", login->refresh_token}});
  if (!answer.ok()) return answer.status();
  if (!answer->error.empty()) {
    return absl::UnauthenticatedError(ToAbsl(fmt::format(
        "the login has ended: the identity provider does not renew it ({}); muster "
        "login",
        contract::Quoted(answer->description.empty() ? answer->error : answer->description))));
  }
  login->id_token = std::move(answer->id_token);
  if (!answer->refresh_token.empty()) login->refresh_token = std::move(answer->refresh_token);
  return absl::OkStatus();
}

bool Revoke(const oidc::Exchanger& exchange, const Login& login) {
  if (login.revocation_endpoint.empty() || login.refresh_token.empty()) return false;
  const auto answer = exchange({.url = login.revocation_endpoint,
                                .ca = login.ca,
                                .form = Form{{"token", login.refresh_token},
                                             {"token_type_hint", "refresh_token"},
                                             {"client_id", login.client_id}}});
  return answer.ok() && answer->status == oidc::kHttpOk;
}

}  // namespace muster::client
