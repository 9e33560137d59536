#include "agents/kubernetes/manifest/pod_security.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/kubernetes/manifest/projects.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using contract::BadField;

constexpr std::string_view kField = "kubernetes.security_context.";
// The only capability that "restricted" lets pods add.
constexpr std::string_view kHarmlessCapability = "NET_BIND_SERVICE";

Json WishedBy(const v1::KubernetesSecurityContext& wanted) {
  Json context = Json::object();
  if (wanted.has_run_as_user()) context["runAsUser"] = wanted.run_as_user();
  if (wanted.has_run_as_group()) context["runAsGroup"] = wanted.run_as_group();
  if (wanted.has_run_as_non_root()) context["runAsNonRoot"] = wanted.run_as_non_root();
  if (wanted.has_read_only_root()) context["readOnlyRootFilesystem"] = wanted.read_only_root();
  if (wanted.has_allow_privilege_escalation())
    context["allowPrivilegeEscalation"] = wanted.allow_privilege_escalation();
  for (const std::string& name : wanted.add_capabilities())
    context["capabilities"]["add"].push_back(name);
  for (const std::string& name : wanted.drop_capabilities())
    context["capabilities"]["drop"].push_back(name);
  if (wanted.seccomp_runtime_default()) context["seccompProfile"] = {{"type", "RuntimeDefault"}};
  if (wanted.privileged()) context["privileged"] = true;
  return context;
}

absl::Status TooMuch(std::string_view field, std::string_view value, std::string_view cluster) {
  return BadField(
      fmt::format("{}{}", kField, field),
      fmt::format("{}: pods meet the Pod Security standard \"restricted\" on cluster {}; leave it "
                  "out, or ask the operator for kubernetes.pod_security: unrestricted",
                  value, cluster));
}

absl::Status CheckWishes(const v1::KubernetesSecurityContext& wanted, std::string_view cluster) {
  if (wanted.has_run_as_user() && wanted.run_as_user() == 0)
    return TooMuch("run_as_user", "0", cluster);
  if (wanted.has_run_as_non_root() && !wanted.run_as_non_root())
    return TooMuch("run_as_non_root", "false", cluster);
  if (wanted.allow_privilege_escalation())
    return TooMuch("allow_privilege_escalation", "true", cluster);
  if (wanted.privileged()) return TooMuch("privileged", "true", cluster);
  for (const std::string& name : wanted.add_capabilities()) {
    if (name != kHarmlessCapability) return TooMuch("add_capabilities", name, cluster);
  }
  return absl::OkStatus();
}

// Returns the ids that the job chooses, by their fields.
std::vector<std::pair<std::string_view, int64_t>> ChosenIds(const v1::JobSpec& spec) {
  const v1::KubernetesSecurityContext& wanted = spec.kubernetes().security_context();
  std::vector<std::pair<std::string_view, int64_t>> ids;
  if (wanted.has_run_as_user()) ids.emplace_back("run_as_user", wanted.run_as_user());
  if (wanted.has_run_as_group()) ids.emplace_back("run_as_group", wanted.run_as_group());
  if (wanted.has_fs_group()) ids.emplace_back("fs_group", wanted.fs_group());
  return ids;
}

// A job that chose an id could write another project's files on a volume that both have.
absl::Status CheckIds(const v1::JobSpec& spec, std::optional<int64_t> own,
                      const KubernetesConfig& config) {
  for (const auto& [field, id] : ChosenIds(spec)) {
    if (own.has_value() ? id == *own : !config.projects->HasUid(id)) continue;
    return BadField(
        fmt::format("{}{}", kField, field),
        own.has_value()
            ? fmt::format("{}: jobs of project {} run as user and group {} on cluster {}; leave it "
                          "out",
                          id, spec.project(), *own, config.cluster)
            : fmt::format("{}: jobs of another project run as this user on cluster {}; choose "
                          "another one",
                          id, config.cluster));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRestricted(const KubernetesConfig& config) {
  return config.is_restricted.value_or(config.projects != nullptr);
}

Json LeastContext() {
  return {{"runAsNonRoot", true},
          {"allowPrivilegeEscalation", false},
          {"capabilities", {{"drop", Json::array({"ALL"})}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

absl::Status CheckPodSecurity(const KubernetesConfig& config) {
  if (!IsRestricted(config)) return absl::OkStatus();
  std::string what;
  if (config.allow_host_path) what = "kubernetes.allow_host_path: yes";
  if (config.allow_host_network) what = "kubernetes.allow_host_network: yes";
  if (config.allow_privileged) what = "kubernetes.allow_privileged: yes";
  for (const auto& [name, root] : config.storage_roots) {
    if (root.claim.empty())
      what = fmt::format("a directory of nodes in kubernetes.storage_roots ({})", name);
  }
  if (what.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} and kubernetes.pod_security: restricted{} exclude each other; leave it out, or set "
      "kubernetes.pod_security: unrestricted",
      what, config.is_restricted.has_value() ? "" : ", which kubernetes.projects brings along,"));
}

absl::StatusOr<PodSecurity> MakePodSecurity(const v1::JobSpec& spec,
                                            const KubernetesConfig& config) {
  const v1::KubernetesSecurityContext& wanted = spec.kubernetes().security_context();
  PodSecurity made;
  made.container = WishedBy(wanted);
  if (wanted.has_fs_group()) made.pod["fsGroup"] = wanted.fs_group();
  if (IsRestricted(config)) {
    if (absl::Status good = CheckWishes(wanted, config.cluster); !good.ok()) return good;
    made.container.merge_patch(LeastContext());
  }
  if (config.projects == nullptr) return made;
  const absl::StatusOr<ProjectPlace> place = config.projects->Find(spec.project());
  if (!place.ok()) return place.status();
  made.has_token = place->has_token;
  if (absl::Status good = CheckIds(spec, place->uid, config); !good.ok()) return good;
  if (!place->uid.has_value()) return made;
  made.container["runAsUser"] = *place->uid;
  made.container["runAsGroup"] = *place->uid;
  made.pod["fsGroup"] = *place->uid;
  return made;
}

}  // namespace muster::kubernetes
