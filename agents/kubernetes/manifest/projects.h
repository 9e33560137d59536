// The operator's map of projects: the namespace of each one's runs, and as whom they run.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_PROJECTS_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_PROJECTS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "agents/users/name_map.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// The place that a line of the map gives to a project.
struct ProjectPlace {
  std::string name_space;
  std::string service_account = "default";
  // The user, group and fsGroup of its pods. None: those of the image, or what the job says.
  std::optional<int64_t> uid;
  // True: its pods get the token of the service account.
  bool has_token = false;
};

// Never changes once it is made; any thread.
class ProjectMap {
 public:
  // The text of a map has a line "PROJECT: NAMESPACE [service_account=NAME] [uid=NUMBER]
  // [token=yes]" for each; the first that fits counts, and patterns are those of agents/users.
  // `file` is for messages. INVALID_ARGUMENT: a line is none, or leads to a namespace or an account
  // that there cannot be; its number is told.
  static absl::StatusOr<ProjectMap> Parse(std::string_view text, std::string file);

  // INVALID_ARGUMENT: the project has no place here. Says who can mend that, and how.
  absl::StatusOr<ProjectPlace> Find(const std::string& project) const;
  // The places of all lines that mean one project each, or put all theirs into one namespace.
  const std::vector<ProjectPlace>& fixed() const { return fixed_; }
  // Returns whether a line gives its projects this user.
  bool HasUid(int64_t uid) const { return uids_.contains(uid); }

 private:
  explicit ProjectMap(std::string file) : file_(std::move(file)) {}

  std::string file_;
  std::vector<users::MapLine> lines_;
  std::vector<ProjectPlace> fixed_;
  std::set<int64_t> uids_;
};

// Reads kubernetes.projects, if it is set, and adds the namespaces that it names. An error says
// which setting is wrong, also about the security of pods, and what to do.
absl::StatusOr<KubernetesConfig> WithProjects(KubernetesConfig config);

// Returns the assignment with the namespace and the service account of its project filled in; as it
// is without a map. INVALID_ARGUMENT: the project has no place, or the job asks for another one.
absl::StatusOr<agent::v1::Assignment> InProject(const agent::v1::Assignment& assignment,
                                                const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_PROJECTS_H_
