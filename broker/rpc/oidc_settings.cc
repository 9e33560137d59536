#include "broker/rpc/oidc_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
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

// A name is part of every user of its provider.
constexpr size_t kMaxIssuerNameBytes = 32;

// The settings of one provider. `prefix` is "oidc." or, in an entry of the list, empty.
std::vector<Setting> IssuerSettings(const std::string& prefix, OidcIssuer* issuer) {
  oidc::VerifierOptions* const options = &issuer->options;
  const auto roles_into = [](std::map<std::string, Role>* roles) {
    return [roles](const std::string& value) { return SetRoles(value, roles); };
  };
  return {
      {prefix + "issuer",
       "URL of the identity provider (OpenID Connect), exactly as in its tokens; https [none]",
       [options](const std::string& value) {
         options->jwt.issuer = value;
         return value.empty() ? absl::OkStatus() : oidc::CheckIssuer(value);
       }},
      {prefix + "audience", "the client id of Muster at the provider; tokens must be made for it",
       TextInto(&options->jwt.audience)},
      {prefix + "ca_file", "certificates in PEM that vouch for the provider [those of the system]",
       TextInto(&issuer->ca_file)},
      {prefix + "scopes", "scopes that muster login asks for [openid email offline_access]",
       [issuer](const std::string& value) {
         issuer->options.scopes = value;
         issuer->has_scopes = true;
         return absl::OkStatus();
       }},
      {prefix + "username_claim",
       "claim with the user's name, unique and not of the user's choice; the user is oidc:NAME "
       "[email]",
       TextInto(&options->person.username_claim)},
      {prefix + "groups_claim", "claim with the user's groups; empty: none [groups]",
       TextInto(&options->person.groups_claim)},
      {prefix + "role", "role of everybody whom the provider knows [none]",
       [options](const std::string& value) {
         const absl::StatusOr<Role> role = ParseRole(value);
         if (role.ok()) options->person.role = *role;
         return role.status();
       }},
      {.key = prefix + "user_roles",
       .help = "roles of users by the username claim, {ada@example.org: admin} [none]",
       .set = roles_into(&options->person.user_roles),
       .is_mapping = true},
      {.key = prefix + "group_roles",
       .help = "roles of groups, {ml: submitter, ops: operator}; the greatest that fits counts "
               "[none]",
       .set = roles_into(&options->person.group_roles),
       .is_mapping = true},
      {prefix + "clock_skew", "difference of the provider's clock that is allowed, up to 10m [60s]",
       [options](const std::string& value) { return SetSkew(value, &options->jwt.skew); }},
  };
}

absl::Status SetIssuerName(const std::string& value, std::string* name) {
  const bool is_name = absl::c_all_of(value, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '-';
  });
  if (value.empty() || !is_name || value.size() > kMaxIssuerNameBytes) {
    return BadSetting(
        fmt::format("{} is no name of an identity provider; use 1 to {} of a-z, 0-9 "
                    "and '-'",
                    contract::Quoted(value), kMaxIssuerNameBytes));
  }
  *name = value;
  return absl::OkStatus();
}

// Reads a list of mappings in YAML, each with the settings of one provider and its name.
absl::Status SetIssuers(const std::string& value, std::vector<OidcIssuer>* issuers) {
  issuers->clear();
  if (value.empty()) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> entries = SplitYamlList(value);
  if (!entries.ok()) return entries.status();
  for (const std::string& entry : *entries) {
    const std::string place = fmt::format("entry {}", issuers->size() + 1);
    OidcIssuer& issuer = issuers->emplace_back();
    std::vector<Setting> settings = IssuerSettings("", &issuer);
    settings.push_back({"name", "", [&issuer](const std::string& name) {
                          return SetIssuerName(name, &issuer.name);
                        }});
    if (absl::Status status = ApplyYaml(entry, place, "muster-broker", settings); !status.ok())
      return status;
    if (issuer.name.empty()) {
      return BadSetting(
          fmt::format("{} has no name; give it one, such as name: corp, with which "
                      "its users begin: oidc:corp:NAME",
                      place));
    }
  }
  return absl::OkStatus();
}

// Looks at the settings of one provider. `where` is their prefix in errors.
absl::Status FinishIssuer(std::string_view where, OidcIssuer* issuer) {
  oidc::VerifierOptions& options = issuer->options;
  if (options.jwt.issuer.empty()) {
    return BadSetting(
        fmt::format("{0}audience needs {0}issuer, the URL of the identity provider", where));
  }
  if (options.jwt.audience.empty()) {
    return BadSetting(fmt::format(
        "{0}issuer needs {0}audience, the client id of Muster at the identity provider: else a "
        "token that was made for another program would be good here",
        where));
  }
  if (options.person.username_claim.empty()) {
    return BadSetting(fmt::format(
        "{}username_claim is empty; name the claim with the user's name, e.g. email", where));
  }
  const std::vector<std::string> scopes = absl::StrSplit(options.scopes, ' ');
  if (std::find(scopes.begin(), scopes.end(), "openid") == scopes.end()) {
    return BadSetting(
        fmt::format("{}scopes is {}; it needs \"openid\", or the provider gives no ID token", where,
                    contract::Quoted(options.scopes)));
  }
  if (issuer->ca_file.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> ca = ReadFile(issuer->ca_file, pki::kMaxPemBytes);
  if (ca.ok() && !pki::ReadCertificate(*ca).ok())
    ca = BadSetting(fmt::format("{} has no certificate in PEM", issuer->ca_file));
  if (!ca.ok())
    return BadSetting(fmt::format("{}ca_file: {}", where, ToStd(ca.status().message())));
  options.ca = *std::move(ca);
  return absl::OkStatus();
}

// Clients log in at the first provider. They would never ask another one for its scopes.
absl::Status CheckScopes(const std::vector<OidcIssuer>& all) {
  for (size_t i = 1; i < all.size(); ++i) {
    if (!all[i].has_scopes) continue;
    return BadSetting(fmt::format(
        "oidc.issuers, {}: scopes has no effect, because muster login goes to {} alone; leave "
        "scopes out here",
        all[i].name, all[0].options.jwt.issuer));
  }
  return absl::OkStatus();
}

// A token names its issuer, and a user's name the provider: both say which one it is.
absl::Status CheckApart(const std::vector<OidcIssuer>& all) {
  if (all.size() > oidc::kMaxIssuers) {
    return BadSetting(
        fmt::format("oidc.issuers: there are {} identity providers with that of "
                    "oidc.issuer; the most is {}",
                    all.size(), oidc::kMaxIssuers));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (all[i].options.jwt.issuer == all[j].options.jwt.issuer) {
        return BadSetting(fmt::format("oidc.issuers: {} is there twice; each issuer has one entry",
                                      contract::Quoted(all[i].options.jwt.issuer)));
      }
      if (all[i].name == all[j].name) {
        return BadSetting(
            fmt::format("oidc.issuers: two entries have the name {}; their users "
                        "would have the same names",
                        contract::Quoted(all[i].name)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Setting> OidcSettings(Config* config) {
  std::vector<Setting> settings = IssuerSettings("oidc.", &config->oidc);
  settings.push_back(
      {.key = "oidc.issuers",
       .help = "more identity providers: a list of mappings with a name and the keys "
               "of oidc [none]",
       .set =
           [config](const std::string& value) { return SetIssuers(value, &config->oidc_issuers); },
       .is_yaml = true});
  return settings;
}

absl::Status FinishOidc(Config* config) {
  std::vector<OidcIssuer> all;
  const oidc::JwtRules& single = config->oidc.options.jwt;
  if (!single.issuer.empty() || !single.audience.empty()) all.push_back(config->oidc);
  all.insert(all.end(), config->oidc_issuers.begin(), config->oidc_issuers.end());
  std::vector<std::string> prefixes;
  for (OidcIssuer& issuer : all) {
    const std::string where =
        issuer.name.empty() ? "oidc." : fmt::format("oidc.issuers, {}: ", issuer.name);
    if (absl::Status status = FinishIssuer(where, &issuer); !status.ok()) return status;
    if (issuer.name.empty()) continue;
    issuer.options.person.prefix = issuer.name + ":";
    prefixes.push_back(issuer.options.person.prefix);
  }
  if (absl::Status status = CheckApart(all); !status.ok()) return status;
  if (absl::Status status = CheckScopes(all); !status.ok()) return status;
  config->broker.people.clear();
  for (OidcIssuer& issuer : all) {
    issuer.options.person.foreign_prefixes = prefixes;
    config->broker.people.push_back(std::move(issuer.options));
  }
  return absl::OkStatus();
}

}  // namespace muster::broker
