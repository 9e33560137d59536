#include "broker/rpc/users.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "broker/app/project_limits.h"
#include "broker/auth/oidc/verifier.h"
#include "broker/auth/projects.h"
#include "broker/auth/refusals.h"
#include "broker/auth/tokens.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "digest/token_text.h"

namespace muster::broker {
namespace {

// The log has at most this many lines about refused credentials in a minute: somebody who tries
// many must not fill the disk.
constexpr int kMaxRefusalsLogged = 30;

std::string_view NameOf(auth::Standing standing) {
  switch (standing) {
    case auth::Standing::kExpired:
      return "expired";
    case auth::Standing::kRevoked:
      return "revoked";
    default:
      return "unknown";
  }
}

// Returns the rest of a header's value behind the scheme; empty if it is another scheme.
std::string_view BearerIn(std::string_view credential) {
  constexpr std::string_view kScheme = "Bearer ";
  // RFC 9110 takes the name of a scheme in any case.
  if (!absl::StartsWithIgnoreCase(ToAbsl(credential), ToAbsl(kScheme))) return {};
  return credential.substr(kScheme.size());
}

}  // namespace

void Users::Note(int fd, std::string user, bool is_owner) {
  const MutexLock lock(mutex_);
  by_fd_[fd] = {std::move(user), is_owner};
}

Principal Users::PrincipalOf(std::string_view peer,
                             const std::vector<std::string_view>& credentials) const {
  Principal principal = credentials.empty() ? OfConnection(peer) : OfCredential(peer, credentials);
  if (projects_ == nullptr) return principal;
  return WithMemberships(*projects_->Read(), std::move(principal));
}

Principal Users::OfConnection(std::string_view peer) const {
  Principal principal{.user = std::string(kLoopbackUser), .role = roles_.listen};
  constexpr std::string_view kPrefix = "fd:";
  if (peer.starts_with(kPrefix)) {
    const std::string_view digits = peer.substr(kPrefix.size());
    int fd = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    const MutexLock lock(mutex_);
    if (const auto found = by_fd_.find(fd); found != by_fd_.end()) {
      principal.user = found->second.user;
      principal.known_by = KnownBy::kSocket;
      principal.role = found->second.is_owner ? Role::kAdmin : roles_.socket;
      principal.is_agent = absl::c_linear_search(roles_.agents, principal.user);
    }
  }
  principal.is_agent = principal.is_agent || principal.role == Role::kAdmin;
  if (principal.role == Role::kNone && !principal.is_agent) principal.refusal = auth::Missing();
  return principal;
}

Principal Users::OfCredential(std::string_view peer,
                              const std::vector<std::string_view>& credentials) const {
  const std::string_view text =
      credentials.size() == 1 ? BearerIn(credentials.front()) : std::string_view();
  if (IsTokenText(text)) return OfToken(peer, text);
  if (verifier_ != nullptr && oidc::LooksLikeJwt(text)) return OfJwt(peer, text);
  LogRefusal(credentials.size() == 1 ? "malformed" : "several", peer, nullptr);
  return {.refusal = auth::Malformed(), .refused_credential = "malformed token"};
}

Principal Users::OfToken(std::string_view peer, std::string_view text) const {
  const auth::FoundToken found = tokens_ ? tokens_->Find(text) : auth::FoundToken();
  if (found.standing != auth::Standing::kLive) {
    LogRefusal(NameOf(found.standing), peer, found.token.get());
    const std::string number = found.token ? fmt::format(" {}", found.token->record().id) : "";
    return {.user = found.token ? found.token->record().user : "",
            .refusal = auth::NotAccepted(),
            .refused_credential = fmt::format("{} token{}", NameOf(found.standing), number)};
  }
  return {.user = found.token->record().user,
          .known_by = KnownBy::kToken,
          .role = found.token->record().role,
          .token = found.token};
}

Principal Users::OfJwt(std::string_view peer, std::string_view text) const {
  oidc::Recognised found = verifier_->Recognise(text, absl::Now());
  if (found.person.fault != oidc::Fault::kNone) {
    LogRefusal(oidc::NameOf(found.person.fault), peer, nullptr);
    return {.refusal = auth::NotAccepted(),
            .refused_credential = std::string(oidc::NameOf(found.person.fault))};
  }
  // Streams end with it.
  auth::TokenRecord record;
  record.user = found.person.user;
  // Somebody without a role has memberships of projects at most.
  record.role = found.person.role == Role::kNone ? Role::kMember : found.person.role;
  record.expires_micros = absl::ToUnixMicros(found.expires);
  return {.user = std::move(found.person.user),
          .known_by = KnownBy::kOidc,
          .role = record.role,
          .token = std::make_shared<const auth::Token>(record),
          .groups = std::move(found.person.groups)};
}

void Users::LogRefusal(std::string_view why, std::string_view peer,
                       const auth::Token* token) const {
  {
    const absl::Time now = absl::Now();
    const MutexLock lock(mutex_);
    // A clock that was put back begins a minute, too.
    if (now - minute_ >= absl::Minutes(1) || now < minute_) {
      minute_ = now;
      refusals_ = 0;
    }
    if (++refusals_ > kMaxRefusalsLogged) return;
  }
  LogEvent(spdlog::level::warn, "credential_refused",
           {{"why", std::string(why)},
            {"peer", std::string(peer)},
            {"token", token ? fmt::format("{}", token->record().id) : ""},
            {"user", token ? token->record().user : ""}});
}

}  // namespace muster::broker
