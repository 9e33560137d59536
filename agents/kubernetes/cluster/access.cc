#include "agents/kubernetes/cluster/access.h"

#include <utility>

namespace muster::kubernetes {

absl::StatusOr<bool> IsAllowed(const Access& access, Api* api, absl::Duration timeout) {
  Json attributes = {{"verb", access.verb}, {"group", access.group}, {"resource", access.resource}};
  if (const size_t slash = access.resource.find('/'); slash != std::string::npos) {
    attributes["resource"] = access.resource.substr(0, slash);
    attributes["subresource"] = access.resource.substr(slash + 1);
  }
  if (!access.name.empty()) attributes["name"] = access.name;
  if (!access.name_space.empty()) attributes["namespace"] = access.name_space;
  const absl::StatusOr<ApiAnswer> answer =
      api->Call({.method = "POST",
                 .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                 .body = {{"apiVersion", "authorization.k8s.io/v1"},
                          {"kind", "SelfSubjectAccessReview"},
                          {"spec", {{"resourceAttributes", std::move(attributes)}}}},
                 .timeout = timeout});
  if (!answer.ok()) return answer.status();
  if (!answer->ok()) return RefusalOf(*answer, "ask for the right to " + access.verb);
  return FlagAt(answer->body, "status/allowed");
}

}  // namespace muster::kubernetes
