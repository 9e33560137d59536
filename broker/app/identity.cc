#include "broker/app/identity.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/app/access_roles.h"
#include "broker/app/arguments.h"
#include "broker/app/rights.h"
#include "broker/auth/cluster_access.h"
#include "broker/auth/oidc/verifier.h"
#include "broker/auth/server_identity.h"
#include "broker/auth/tokens.h"
#include "broker/core/cluster_view.h"
#include "broker/engine/engine.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "daemon/log.h"
#include "pki/certificates.h"

namespace muster::broker {
namespace {

using google::protobuf::util::TimeUtil;

v1::CredentialKind ToWire(KnownBy known_by) {
  switch (known_by) {
    case KnownBy::kNobody:
      return v1::CREDENTIAL_KIND_NONE;
    case KnownBy::kSocket:
      return v1::CREDENTIAL_KIND_SOCKET;
    case KnownBy::kToken:
      return v1::CREDENTIAL_KIND_TOKEN;
    case KnownBy::kOidc:
      return v1::CREDENTIAL_KIND_OIDC;
    case KnownBy::kCertificate:
      break;  // agents do not ask
  }
  return v1::CREDENTIAL_KIND_UNSPECIFIED;
}

v1::Token ToWire(const auth::Token& token) {
  const auth::TokenRecord& record = token.record();
  v1::Token out;
  out.set_id(record.id);
  out.set_name(record.name);
  out.set_user(record.user);
  out.set_role(RoleToWire(record.role));
  out.set_maker_id(record.maker);
  *out.mutable_create_time() = TimeUtil::MicrosecondsToTimestamp(record.created_micros);
  *out.mutable_expire_time() = TimeUtil::MicrosecondsToTimestamp(record.expires_micros);
  if (const int64_t used = token.used_micros(); used != 0) {
    *out.mutable_last_use_time() = TimeUtil::MicrosecondsToTimestamp(used);
  }
  if (const int64_t revoked = token.revoked_micros(); revoked != 0) {
    *out.mutable_revoke_time() = TimeUtil::MicrosecondsToTimestamp(revoked);
  }
  return out;
}

void CheckName(std::string_view field, std::string_view name, contract::FieldErrors* errors) {
  const auto is_plain = [](char c) { return contract::IsLetter(c) || contract::IsDigit(c); };
  const bool is_good = !name.empty() && name.size() <= auth::kMaxNameBytes &&
                       is_plain(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
                         return is_plain(c) || c == '-' || c == '_' || c == '.';
                       });
  if (is_good) return;
  errors->Add(std::string(field),
              fmt::format("{} is not 1 to {} letters, digits, '-', '_' and '.', beginning "
                          "with a letter or a digit",
                          contract::Quoted(name), auth::kMaxNameBytes));
}

void CheckUser(std::string_view user, contract::FieldErrors* errors) {
  const bool is_good = user.size() <= auth::kMaxUserBytes && user.find(' ') == user.npos &&
                       !contract::HasControlCharacter(user);
  if (is_good && user.starts_with(auth::kServiceAccountPrefix))
    return CheckName("user", user.substr(auth::kServiceAccountPrefix.size()), errors);
  if (is_good) return;
  errors->Add("user", fmt::format("{} is not 1 to {} bytes without spaces and control characters",
                                  contract::Quoted(user), auth::kMaxUserBytes));
}

absl::Duration LifetimeOf(const v1::CreateTokenRequest& request, contract::FieldErrors* errors) {
  if (!request.has_lifetime()) return auth::kDefaultLifetime;
  const int64_t seconds = request.lifetime().seconds();
  // They are compared as numbers: a duration may have more seconds than a time can be away.
  const bool is_good = seconds >= absl::ToInt64Seconds(auth::kMinLifetime) &&
                       seconds <= absl::ToInt64Seconds(auth::kMaxLifetime) &&
                       request.lifetime().nanos() == 0;
  if (is_good) return absl::Seconds(seconds);
  errors->Add("lifetime", fmt::format("is {} s and {} ns; it must be 1 s to {} days, in whole "
                                      "seconds",
                                      seconds, request.lifetime().nanos(),
                                      absl::ToInt64Hours(auth::kMaxLifetime) / 24));
  return auth::kDefaultLifetime;
}

absl::StatusOr<auth::NewToken> ReadRequest(const Principal& principal,
                                           const v1::CreateTokenRequest& request) {
  contract::FieldErrors errors;
  CheckName("name", request.name(), &errors);
  CheckUser(request.user(), &errors);
  const bool is_default = request.role() == v1::ACCESS_ROLE_UNSPECIFIED;
  const std::optional<Role> role = is_default ? Role::kSubmitter : RoleFromWire(request.role());
  if (!role) errors.Add("role", fmt::format("{} is no role", static_cast<int>(request.role())));
  auth::NewToken asked{.name = request.name(),
                       .user = request.user().empty() ? principal.user : request.user(),
                       .role = role.value_or(Role::kNone),
                       .lifetime = LifetimeOf(request, &errors),
                       .maker = principal.token ? principal.token->record().id : 0};
  if (absl::Status status = errors.ToStatus(); !status.ok()) return status;
  return asked;
}

absl::Status TooGreat(const Principal& principal, Role role) {
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "ROLE_TOO_GREAT",
      fmt::format("{} is {}, which does not include {}; ask for another role, or ask an admin for "
                  "the token",
                  principal.user, auth::NameOf(principal.role), auth::NameOf(role)),
      {{"role", std::string(auth::NameOf(role))}});
}

absl::Status NoSuchToken(uint64_t id) {
  return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_TOKEN",
                         fmt::format("you have no token {}; muster token list shows them", id));
}

// A person who has left can no longer log in, and no token of theirs may outlive that.
absl::Status OutlivesLogin(const Principal& principal) {
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "TOKEN_OUTLIVES_LOGIN",
      fmt::format("{} is known by the identity provider, and a token would stay good after the "
                  "provider has let them go; use muster login, or ask an admin for the token of a "
                  "service account",
                  principal.user));
}

// Nobody could tell later whose such a token is, and it would outlive the open door.
absl::StatusOr<store::Scope> AuthorizeTokens(const Principal& principal) {
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kManageTokens);
  if (scope.ok() && principal.known_by == KnownBy::kNobody) return NotAllowed(principal);
  return scope;
}

void LogToken(std::string_view event, const auth::Token& token, const Principal& by) {
  LogEvent(spdlog::level::info, event,
           {{"token", fmt::format("{}", token.record().id)},
            {"name", token.record().name},
            {"user", token.record().user},
            {"role", std::string(auth::NameOf(token.record().role))},
            {"by", by.user},
            {"by_token",
             by.known_by == KnownBy::kToken ? fmt::format("{}", by.token->record().id) : ""}});
}

v1::NetworkAddress NetworkOf(const Services& services) {
  v1::NetworkAddress network;
  network.set_address("tls:" + services.tls_address());
  absl::StatusOr<std::string> ca =
      ServedCaCertificate(services.cluster_access->server().certificate);
  if (!ca.ok()) return network;
  if (const auto read = pki::ReadCertificate(*ca); read.ok()) {
    network.set_ca_fingerprint(read->fingerprint);
    network.set_ca_certificate(*std::move(ca));
  }
  return network;
}

// Brokers that are told as behind this one, as WhoAmIResponse.reached_instances says.
constexpr int kMaxReached = 16;

// Clusters count also while their agents are away: they may come back.
void AddReached(const Services& services, v1::WhoAmIResponse* response) {
  if (services.engine == nullptr) return;
  const std::shared_ptr<const core::ClusterViews> clusters = services.engine->clusters();
  std::set<std::string> reached;
  for (const auto& cluster : *clusters) {
    for (const std::string& instance : cluster->saved->inventory.broker_instances()) {
      if (response->reached_instances_size() == kMaxReached) return;
      if (reached.insert(instance).second) response->add_reached_instances(instance);
    }
  }
}

}  // namespace

absl::StatusOr<v1::WhoAmIResponse> WhoAmI(const Principal& principal, const Services& services) {
  if (auto scope = Authorize(principal, UseCase::kWhoAmI); !scope.ok()) return scope.status();
  v1::WhoAmIResponse response;
  response.set_user(principal.user);
  response.set_role(RoleToWire(principal.role));
  response.set_credential(ToWire(principal.known_by));
  if (principal.known_by == KnownBy::kToken) *response.mutable_token() = ToWire(*principal.token);
  if (principal.token) {
    *response.mutable_expire_time() =
        TimeUtil::MicrosecondsToTimestamp(principal.token->record().expires_micros);
  }
  response.mutable_groups()->Add(principal.groups.begin(), principal.groups.end());
  for (const auth::Membership& membership : principal.memberships) {
    v1::Membership& shown = *response.add_memberships();
    shown.set_project(membership.project);
    shown.set_role(RoleToWire(membership.role));
    shown.set_group(membership.group);
  }
  response.set_broker_instance(services.instance);
  AddReached(services, &response);
  if (services.cluster_access != nullptr) *response.mutable_network() = NetworkOf(services);
  return response;
}

absl::StatusOr<v1::GetLoginInfoResponse> GetLoginInfo(const Principal& principal,
                                                      const Services& services) {
  if (!principal.refused_credential.empty()) return principal.refusal;
  if (principal.known_by == KnownBy::kCertificate) return NotAllowed(principal);
  v1::GetLoginInfoResponse response;
  if (services.identity_provider == nullptr) return response;
  response.set_issuer(services.identity_provider->jwt.issuer);
  response.set_client_id(services.identity_provider->jwt.audience);
  response.set_scopes(services.identity_provider->scopes);
  response.set_ca_certificates(services.identity_provider->ca);
  return response;
}

absl::StatusOr<v1::CreateTokenResponse> CreateToken(const Principal& principal,
                                                    const Services& services,
                                                    const v1::CreateTokenRequest& request) {
  const absl::StatusOr<store::Scope> scope = AuthorizeTokens(principal);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<auth::NewToken> asked = ReadRequest(principal, request);
  if (!asked.ok()) return asked.status();
  if (!scope->Contains("", asked->user)) return NotAllowed(principal);
  if (principal.known_by == KnownBy::kOidc && asked->user == principal.user)
    return OutlivesLogin(principal);
  if (!Includes(principal.role, asked->role)) return TooGreat(principal, asked->role);
  absl::StatusOr<auth::MadeToken> made = services.tokens->Create(*asked);
  if (!made.ok()) return made.status();
  LogToken("token_created", *made->token, principal);
  v1::CreateTokenResponse response;
  *response.mutable_token() = ToWire(*made->token);
  response.set_secret(std::move(made->text));
  return response;
}

absl::StatusOr<v1::ListTokensResponse> ListTokens(const Principal& principal,
                                                  const Services& services,
                                                  const v1::ListTokensRequest& request) {
  const absl::StatusOr<store::Scope> scope = AuthorizeTokens(principal);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  const std::string& place = request.page_token();
  uint64_t after = 0;  // the last number of the page before
  const auto [stop, error] = std::from_chars(place.data(), place.data() + place.size(), after);
  if (!place.empty() && (error != std::errc() || stop != place.data() + place.size())) {
    return contract::BadField("page_token",
                              "is not from an answer of ListTokens; leave it empty to begin again");
  }
  v1::ListTokensResponse response;
  const absl::Time now = services.now();
  for (const auto& token : services.tokens->List()) {
    const auth::TokenRecord& record = token->record();
    if (record.id <= after || !scope->Contains("", record.user)) continue;
    if (!request.user().empty() && record.user != request.user()) continue;
    if (!request.include_ended() && !token->IsLive(now)) continue;
    if (response.tokens_size() == *page_size) {
      response.set_next_page_token(fmt::format("{}", response.tokens().rbegin()->id()));
      break;
    }
    *response.add_tokens() = ToWire(*token);
  }
  return response;
}

absl::StatusOr<v1::RevokeTokenResponse> RevokeToken(const Principal& principal,
                                                    const Services& services,
                                                    const v1::RevokeTokenRequest& request) {
  const absl::StatusOr<store::Scope> scope = AuthorizeTokens(principal);
  if (!scope.ok()) return scope.status();
  if (request.id() == 0) return contract::BadField("id", "is required");
  const auto all = services.tokens->List();
  const bool is_visible = std::any_of(all.begin(), all.end(), [&](const auto& token) {
    return token->record().id == request.id() && scope->Contains("", token->record().user);
  });
  if (!is_visible) return NoSuchToken(request.id());
  const auto revoked = services.tokens->Revoke(request.id());
  if (!revoked.ok()) return revoked.status();
  v1::RevokeTokenResponse response;
  for (const auto& token : *revoked) {
    LogToken("token_revoked", *token, principal);
    *response.add_tokens() = ToWire(*token);
  }
  return response;
}

}  // namespace muster::broker
