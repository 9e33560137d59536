// As whom jobs run, and what keeps those of different projects apart.
#include <algorithm>
#include <string>
#include <vector>

#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/manifest/pod_security.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

constexpr char kEnforce[] = "pod-security.kubernetes.io/enforce";
constexpr char kStandard[] = "restricted";

std::string PlaceWords(const ProjectPlace& place) {
  return fmt::format(
      "{} (service account {}, {}{})", place.name_space, place.service_account,
      place.uid.has_value() ? fmt::format("user {}", *place.uid) : std::string("the image's user"),
      place.has_token ? ", with its token" : "");
}

}  // namespace

v1::ClusterCheck ProjectsLine(const KubernetesConfig& config) {
  v1::ClusterCheck line;
  line.set_code(v1::CHECK_CODE_USERS);
  line.set_subject("projects");
  line.set_result(v1::CHECK_RESULT_OK);
  const char* const standard =
      IsRestricted(config) ? "their pods meet the Pod Security standard \"restricted\""
                           : "their pods may be root in their containers, as far as the cluster "
                             "lets them";
  if (config.projects == nullptr) {
    line.set_seen(fmt::format(
        "jobs of all projects and users share {} {}: each can use the claims, the Secrets and the "
        "service accounts there, and {}; where people who do not trust each other submit jobs, set "
        "kubernetes.projects",
        config.namespaces.size() > 1 ? "the namespaces" : "the namespace",
        fmt::join(config.namespaces, ", "), standard));
    return line;
  }
  std::vector<std::string> places;
  for (const ProjectPlace& place : config.projects->fixed()) {
    std::string words = PlaceWords(place);
    if (std::find(places.begin(), places.end(), words) == places.end())
      places.push_back(std::move(words));
  }
  line.set_seen(
      fmt::format("jobs run in the namespace of their project, as kubernetes.projects says{}{}; {}",
                  places.empty() ? "" : ": ", fmt::join(places, ", "), standard));
  return line;
}

void JudgeStandard(const std::string& name_space, const absl::StatusOr<Json>& answer,
                   const KubernetesConfig& config, agents::CheckList* checks) {
  if (!answer.ok()) return;
  const std::string subject = fmt::format("Pod Security in namespace {}", name_space);
  const Json labels = At(*answer, "metadata/labels");
  const std::string enforced = labels.is_object() ? labels.value(kEnforce, "") : "";
  if (enforced == kStandard && !IsRestricted(config)) {
    return checks->Warn(v1::CHECK_CODE_RIGHTS, subject,
                        "the namespace enforces \"restricted\", so that a job has no pods unless "
                        "it asks for all that the standard wants",
                        "set kubernetes.pod_security: restricted");
  }
  if (enforced == kStandard)
    return checks->Ok(v1::CHECK_CODE_RIGHTS, subject, "the namespace enforces \"restricted\"");
  if (config.projects == nullptr) return;
  checks->Warn(v1::CHECK_CODE_RIGHTS, subject,
               enforced.empty() ? "the namespace enforces no standard, so that nothing but Muster "
                                  "keeps pods there from the nodes' files"
                                : fmt::format("the namespace enforces \"{}\"", enforced),
               fmt::format("kubectl label namespace {} {}={}", name_space, kEnforce, kStandard));
}

void JudgeAccount(const ProjectPlace& place, const absl::StatusOr<Json>& list,
                  agents::CheckList* checks) {
  const std::string subject =
      fmt::format("service account {} in namespace {}", place.service_account, place.name_space);
  if (!list.ok())
    return checks->Skip(v1::CHECK_CODE_USERS, subject, std::string(ToStd(list.status().message())));
  for (const Json& item : At(*list, "items")) {
    if (TextAt(item, "metadata/name") == place.service_account)
      return checks->Ok(v1::CHECK_CODE_USERS, subject, "is there");
  }
  checks->Fail(v1::CHECK_CODE_USERS, subject,
               "there is none, so that jobs of its projects are refused",
               fmt::format("kubectl create serviceaccount -n {} {}", place.name_space,
                           place.service_account));
}

}  // namespace muster::kubernetes
