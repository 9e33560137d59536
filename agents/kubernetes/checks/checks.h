// Judges the answers of a preflight: each function adds lines to the list. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CHECKS_CHECKS_H_
#define MUSTER_AGENTS_KUBERNETES_CHECKS_CHECKS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/core/check_list.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/cluster/namespace_limits.h"
#include "agents/kubernetes/manifest/projects.h"
#include "agents/kubernetes/objects/node_objects.h"
#include "agents/kubernetes/settings/kubernetes_config.h"

namespace muster::kubernetes {

// ---- the server

// Returns whether anything else is worth a look.
bool JudgeServer(const Endpoint& endpoint, const absl::StatusOr<std::string>& version,
                 agents::CheckList* checks);
void JudgeVersion(const std::string& version, agents::CheckList* checks);
// `known` is that of the cluster that has the agent's runs; empty if not known.
void JudgeIdentity(const absl::StatusOr<std::string>& identity, const std::string& known,
                   agents::CheckList* checks);
// Returns whether anything else is worth a look there. `answer` is that to a GET of the namespace.
bool JudgePresence(const std::string& name_space, const absl::StatusOr<Json>& answer,
                   agents::CheckList* checks);
// `answer` says what became of a Job that was only tried.
void JudgeTrial(const std::string& name_space, const absl::StatusOr<ApiAnswer>& answer,
                agents::CheckList* checks);

// ---- rights

// Verbs on one resource that go together.
struct Right {
  std::string group;     // "": core
  std::string resource;  // "pods/log" for a subresource
  std::string name;      // only the object of this name; empty: all
  bool in_namespace = true;
  std::vector<std::string> verbs;
  // Without it jobs do not run; otherwise something is missing, which `loss` says.
  bool is_required = true;
  std::string loss;
};
std::vector<Right> RightsOf(const KubernetesConfig& config);
// Returns the rights for a cluster that has Kueue.
std::vector<Right> RightsWithKueue();
// Returns the rights for a cluster that has that group: the coscheduling plug-in's or Volcano's.
std::vector<Right> RightsWithPodGroups(const std::string& group);
// `allowed` is by verb, in the right's order.
void JudgeRight(const Right& right, const std::string& name_space,
                const std::map<std::string, absl::StatusOr<bool>>& allowed,
                agents::CheckList* checks);

// ---- projects

// Says as whom jobs run, in which namespaces, and what it means where all share them.
v1::ClusterCheck ProjectsLine(const KubernetesConfig& config);
// `answer` is that to a GET of the namespace.
void JudgeStandard(const std::string& name_space, const absl::StatusOr<Json>& answer,
                   const KubernetesConfig& config, agents::CheckList* checks);
// `list` has the service accounts of its namespace.
void JudgeAccount(const ProjectPlace& place, const absl::StatusOr<Json>& list,
                  agents::CheckList* checks);

// ---- nodes

void JudgeNodes(const absl::StatusOr<std::vector<NodeObject>>& nodes, agents::CheckList* checks);
void JudgeGpus(const std::vector<NodeObject>& nodes, const KubernetesConfig& config,
               agents::CheckList* checks);

// ---- things that jobs depend on

// `list` is a list's answer. `what` is "runtime classes", say.
void JudgeNames(v1::CheckCode code, const std::string& what, const std::string& if_none,
                const absl::StatusOr<Json>& list, agents::CheckList* checks);
void JudgePullSecret(const std::string& name, const std::string& name_space,
                     const absl::StatusOr<Json>& secret, agents::CheckList* checks);
// `read`: whether the agent can list the directory at which it is to see the root.
void JudgeAgentRoot(const std::string& root, const std::string& directory, const absl::Status& read,
                    agents::CheckList* checks);
void JudgeHostPath(const std::string& root, const std::string& path, agents::CheckList* checks);
// `answer` is that to a GET of the claim.
void JudgeClaim(const std::string& root, const std::string& claim, const std::string& name_space,
                const absl::StatusOr<Json>& answer, agents::CheckList* checks);
// `groups` is the answer to /apis.
void JudgeQueues(const absl::StatusOr<Json>& groups, agents::CheckList* checks);
// `list` is that of Kueue's queues in the namespace.
void JudgeLocalQueues(const std::string& name_space, const absl::StatusOr<Json>& list,
                      agents::CheckList* checks);
void JudgeQuotas(const std::string& name_space,
                 const absl::StatusOr<std::vector<QuotaLine>>& quotas, agents::CheckList* checks);
void JudgeRanges(const std::string& name_space,
                 const absl::StatusOr<std::vector<RangeLine>>& ranges, agents::CheckList* checks);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CHECKS_CHECKS_H_
