#include "broker/rpc/oidc_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "broker/auth/oidc/verifier.h"
#include "broker/auth/role.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "contract/units.h"
#include "daemon/read_file.h"
#include "oidc/discovery.h"
#include "pki/certificates.h"

namespace muster::broker {
namespace {

absl::Status BadSetting(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

absl::StatusOr<Role> ParseRole(std::string_view name) {
  const std::optional<Role> role = auth::RoleOfName(name);
  if (role) return *role;
  return BadSetting(fmt::format("{} is no role; use none, viewer, submitter, operator or admin",
                                contract::Quoted(name)));
}

// Reads "a:submitter,b:admin"; a name may have a ':' in it, a role has none.
absl::Status SetRoles(const std::string& value, std::map<std::string, Role>* roles) {
  roles->clear();
  for (const absl::string_view part : absl::StrSplit(ToAbsl(value), ',', absl::SkipEmpty())) {
    const std::string_view word = ToStd(part);
    const size_t colon = word.rfind(':');
    if (colon == word.npos || colon == 0)
      return BadSetting(fmt::format("{} is not NAME:ROLE", contract::Quoted(word)));
    const absl::StatusOr<Role> role = ParseRole(word.substr(colon + 1));
    if (!role.ok()) return role.status();
    (*roles)[std::string(word.substr(0, colon))] = *role;
  }
  return absl::OkStatus();
}

absl::Status SetSkew(const std::string& value, absl::Duration* skew) {
  const absl::StatusOr<absl::Duration> duration = contract::ParseDuration(value);
  if (!duration.ok()) return duration.status();
  if (*duration < absl::ZeroDuration() || *duration > oidc::kMaxClockSkew) {
    return BadSetting(fmt::format("\"{}\" is not a duration from 0s to {}", value,
                                  contract::FormatDuration(oidc::kMaxClockSkew)));
  }
  *skew = *duration;
  return absl::OkStatus();
}

}  // namespace

std::vector<Setting> OidcSettings(Config* config) {
  oidc::VerifierOptions* const options = &config->broker.people;
  const auto roles_into = [](std::map<std::string, Role>* roles) {
    return [roles](const std::string& value) { return SetRoles(value, roles); };
  };
  return {
      {"oidc.issuer",
       "URL of the identity provider (OpenID Connect), exactly as in its tokens; https [none]",
       [options](const std::string& value) {
         options->jwt.issuer = value;
         return value.empty() ? absl::OkStatus() : oidc::CheckIssuer(value);
       }},
      {"oidc.audience", "the client id of Muster at the provider; tokens must be made for it",
       TextInto(&options->jwt.audience)},
      {"oidc.ca_file", "certificates in PEM that vouch for the provider [those of the system]",
       TextInto(&config->oidc_ca_file)},
      {"oidc.scopes", "scopes that muster login asks for [openid email offline_access]",
       TextInto(&options->scopes)},
      {"oidc.username_claim",
       "claim with the user's name, unique and not of the user's choice; the user is oidc:NAME "
       "[email]",
       TextInto(&options->person.username_claim)},
      {"oidc.groups_claim", "claim with the user's groups; empty: none [groups]",
       TextInto(&options->person.groups_claim)},
      {"oidc.role", "role of everybody whom the provider knows [none]",
       [options](const std::string& value) {
         const absl::StatusOr<Role> role = ParseRole(value);
         if (role.ok()) options->person.role = *role;
         return role.status();
       }},
      {.key = "oidc.user_roles",
       .help = "roles of users by the username claim, {ada@example.org: admin} [none]",
       .set = roles_into(&options->person.user_roles),
       .is_mapping = true},
      {.key = "oidc.group_roles",
       .help = "roles of groups, {ml: submitter, ops: operator}; the greatest that fits counts "
               "[none]",
       .set = roles_into(&options->person.group_roles),
       .is_mapping = true},
      {"oidc.clock_skew", "difference of the provider's clock that is allowed, up to 10m [60s]",
       [options](const std::string& value) { return SetSkew(value, &options->jwt.skew); }},
  };
}

absl::Status FinishOidc(Config* config) {
  oidc::VerifierOptions& options = config->broker.people;
  if (options.jwt.issuer.empty()) {
    if (options.jwt.audience.empty()) return absl::OkStatus();
    return BadSetting("oidc.audience needs oidc.issuer, the URL of the identity provider");
  }
  if (options.jwt.audience.empty()) {
    return BadSetting(
        "oidc.issuer needs oidc.audience, the client id of Muster at the identity provider: else a "
        "token that was made for another program would be good here");
  }
  if (options.person.username_claim.empty()) {
    return BadSetting(
        "oidc.username_claim is empty; name the claim with the user's name, e.g. email");
  }
  const std::vector<std::string> scopes = absl::StrSplit(options.scopes, ' ');
  if (std::find(scopes.begin(), scopes.end(), "openid") == scopes.end()) {
    return BadSetting(
        fmt::format("oidc.scopes is {}; it needs \"openid\", or the provider gives no "
                    "ID token",
                    contract::Quoted(options.scopes)));
  }
  if (config->oidc_ca_file.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> ca = ReadFile(config->oidc_ca_file, pki::kMaxPemBytes);
  if (ca.ok() && !pki::ReadCertificate(*ca).ok())
    ca = BadSetting(fmt::format("{} has no certificate in PEM", config->oidc_ca_file));
  if (!ca.ok()) return BadSetting(fmt::format("oidc.ca_file: {}", ToStd(ca.status().message())));
  options.ca = *std::move(ca);
  return absl::OkStatus();
}

}  // namespace muster::broker
