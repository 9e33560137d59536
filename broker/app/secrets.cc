#include "broker/app/secrets.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "broker/app/arguments.h"
#include "broker/app/secret_rights.h"
#include "broker/auth/tokens.h"
#include "broker/secrets/secrets.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/secrets.h"
#include "contract/validate.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

using google::protobuf::util::TimeUtil;
using secrets::OwnerKind;

v1::Secret ToWire(const secrets::Record& record) {
  v1::Secret out;
  out.set_name(record.id.name);
  if (record.id.kind == OwnerKind::kUser) {
    out.set_user(record.id.owner);
  } else {
    out.set_project(record.id.owner);
  }
  out.set_size_bytes(record.size_bytes);
  *out.mutable_create_time() = TimeUtil::MicrosecondsToTimestamp(record.created_micros);
  *out.mutable_update_time() = TimeUtil::MicrosecondsToTimestamp(record.updated_micros);
  out.set_for_one_job(record.for_one_job);
  return out;
}

void CheckOwner(const secrets::Id& id, contract::FieldErrors* errors) {
  if (id.kind == OwnerKind::kProject) {
    if (contract::ValidateClusterName(id.owner).ok()) return;
    errors->Add("project", fmt::format("{} is not a project name; use 1 to 63 of a-z, 0-9 and "
                                       "'-', with a letter or digit at both ends",
                                       contract::Quoted(id.owner)));
    return;
  }
  const bool is_good = !id.owner.empty() && id.owner.size() <= auth::kMaxUserBytes &&
                       id.owner.find(' ') == id.owner.npos &&
                       !contract::HasControlCharacter(id.owner);
  if (is_good) return;
  errors->Add("user", fmt::format("{} is not 1 to {} bytes without spaces and control characters",
                                  contract::Quoted(id.owner), auth::kMaxUserBytes));
}

// The secret that a request names.
template <typename Request>
secrets::Id IdOf(const Principal& principal, const Request& request,
                 contract::FieldErrors* errors) {
  secrets::Id id;
  id.kind = request.has_project() ? OwnerKind::kProject : OwnerKind::kUser;
  id.owner = request.has_project() ? request.project()
             : request.has_user()  ? request.user()
                                   : principal.user;
  id.name = request.name();
  CheckOwner(id, errors);
  contract::CheckSecretName("name", id.name, errors);
  return id;
}

// The value is in no message.
void CheckValue(const v1::SetSecretRequest& request, contract::FieldErrors* errors) {
  const std::string& value = request.value();
  if (value.empty() || value.size() > contract::kMaxSecretBytes) {
    errors->Add("value", fmt::format("has {} bytes; a secret has 1 to {}", value.size(),
                                     contract::kMaxSecretBytes));
  } else if (value.find('\0') != value.npos) {
    errors->Add("value",
                "has a NUL byte, which no variable can carry; encode it, with base64 for example");
  }
}

void LogSecret(std::string_view event, const secrets::Id& id, const Principal& by) {
  LogEvent(spdlog::level::info, event,
           {{"secret", id.name},
            {id.kind == OwnerKind::kUser ? "user" : "project", id.owner},
            {"by", by.user},
            {"by_token", by.token ? fmt::format("{}", by.token->record().id) : ""}});
}

// Returns the place of a secret in the list, for page_token: "KIND OWNER/NAME". A name has no '/'.
std::string PlaceOf(const secrets::Id& id) {
  return fmt::format("{}{}/{}", id.kind == OwnerKind::kUser ? 'u' : 'p', id.owner, id.name);
}

std::optional<secrets::Id> ReadPlace(std::string_view place) {
  const size_t slash = place.rfind('/');
  if (slash == place.npos || slash == 0 || (place[0] != 'u' && place[0] != 'p'))
    return std::nullopt;
  return secrets::Id{place[0] == 'u' ? OwnerKind::kUser : OwnerKind::kProject,
                     std::string(place.substr(1, slash - 1)), std::string(place.substr(slash + 1))};
}

}  // namespace

absl::StatusOr<v1::SetSecretResponse> SetSecret(const Principal& principal,
                                                const Services& services,
                                                const v1::SetSecretRequest& request) {
  const absl::StatusOr<store::Scope> scope = AuthorizeSecrets(principal);
  if (!scope.ok()) return scope.status();
  contract::FieldErrors errors;
  const secrets::Id id = IdOf(principal, request, &errors);
  CheckValue(request, &errors);
  if (request.for_one_job() && id.kind == OwnerKind::kProject)
    errors.Add("for_one_job", "is for the secrets of users; leave the project out");
  if (absl::Status status = errors.ToStatus(); !status.ok()) return status;
  if (absl::Status status = CheckMayChangeSecret(principal, *scope, id); !status.ok())
    return status;
  const absl::StatusOr<secrets::Record> set =
      services.secrets->Set(id, request.value(), request.for_one_job());
  if (!set.ok()) return set.status();
  LogSecret("secret_set", id, principal);
  v1::SetSecretResponse response;
  *response.mutable_secret() = ToWire(*set);
  return response;
}

absl::StatusOr<v1::ListSecretsResponse> ListSecrets(const Principal& principal,
                                                    const Services& services,
                                                    const v1::ListSecretsRequest& request) {
  const absl::StatusOr<store::Scope> scope = AuthorizeSecrets(principal);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  std::optional<secrets::Id> after;
  if (!request.page_token().empty()) {
    after = ReadPlace(request.page_token());
    if (!after) {
      return contract::BadField(
          "page_token", "is not from an answer of ListSecrets; leave it empty to begin again");
    }
  }
  const auto limit = static_cast<size_t>(*page_size);
  // One more tells whether these are the last.
  std::vector<secrets::Record> found =
      services.secrets->List(after, limit + 1, [&](const secrets::Record& record) {
        const bool is_asked = request.project().empty() || (record.id.kind == OwnerKind::kProject &&
                                                            record.id.owner == request.project());
        return is_asked && MaySeeSecret(principal, *scope, record.id);
      });
  v1::ListSecretsResponse response;
  if (found.size() > limit) {
    found.resize(limit);
    response.set_next_page_token(PlaceOf(found.back().id));
  }
  for (const secrets::Record& record : found) *response.add_secrets() = ToWire(record);
  return response;
}

absl::StatusOr<v1::DeleteSecretResponse> DeleteSecret(const Principal& principal,
                                                      const Services& services,
                                                      const v1::DeleteSecretRequest& request) {
  const absl::StatusOr<store::Scope> scope = AuthorizeSecrets(principal);
  if (!scope.ok()) return scope.status();
  contract::FieldErrors errors;
  const secrets::Id id = IdOf(principal, request, &errors);
  if (absl::Status status = errors.ToStatus(); !status.ok()) return status;
  if (absl::Status status = CheckMayChangeSecret(principal, *scope, id); !status.ok())
    return status;
  if (absl::Status status = services.secrets->Remove(id); !status.ok()) return status;
  LogSecret("secret_deleted", id, principal);
  return v1::DeleteSecretResponse();
}

}  // namespace muster::broker
