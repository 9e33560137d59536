// The server, which cluster it is, and what the account may do there.
#include <array>
#include <cstdio>

#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/cluster/queue_view.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "agents/kubernetes/objects/kueue.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

constexpr char kClusterRightsRemedy[] =
    "give the agent's account the rights of deploy/kubernetes/cluster-rights.yaml, if it may have "
    "them";
constexpr char kNoLeases[] =
    "jobs with on_cluster_loss: FAIL_OVER_WHEN_FENCED are not taken, because pods would not learn "
    "how long their leases last";
// From this version on the pods of an Indexed Job have their index as a label, and a policy for
// replacement.
constexpr int kMinorForSeveralNodes = 28;
// From this version on the pods of a Job have the label by which a record of the start script is
// known.
constexpr int kMinorForSeals = 27;

std::string RightsRemedy(const std::string& name_space) {
  return fmt::format(
      "give the agent's account its rights in namespace {0}: kubectl apply -n {0} -f "
      "deploy/kubernetes/rights.yaml; make the namespace first if it is not there",
      name_space);
}

std::string RemedyFor(const absl::Status& status, const Endpoint& endpoint) {
  const std::string& token_file = endpoint.identity.token_file;
  if (absl::IsUnauthenticated(status) && !token_file.empty()) {
    return fmt::format(
        "have a new token written to {}, as docs/kubernetes.md shows; kubectl get --raw "
        "/version with the same kubeconfig and context must work",
        token_file);
  }
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    return "renew the credentials in the kubeconfig; kubectl get --raw /version with the same file "
           "and context must work";
  }
  if (absl::IsFailedPrecondition(status)) {
    return "set certificate-authority-data in the kubeconfig to the cluster's own authority, and "
           "tls-server-name if the certificate is for another name";
  }
  return "see that the server's address in the kubeconfig is right, and can be reached from here";
}

}  // namespace

bool JudgeServer(const Endpoint& endpoint, const absl::StatusOr<std::string>& version,
                 agents::CheckList* checks) {
  const std::string subject = "API server " + endpoint.server;
  if (!version.ok()) {
    checks->Fail(v1::CHECK_CODE_SCHEDULER, subject, MessageOf(version.status()),
                 RemedyFor(version.status(), endpoint));
    return false;
  }
  const std::string who = endpoint.context.empty() ? "as the account of the agent's own pod"
                                                   : "by context " + endpoint.context;
  if (endpoint.skips_tls_verify) {
    checks->Warn(v1::CHECK_CODE_SCHEDULER, subject,
                 fmt::format("answers, {}; its certificate is not looked at, so anybody between "
                             "here and it can read and change everything",
                             who),
                 "take insecure-skip-tls-verify out of the kubeconfig and set "
                 "certificate-authority-data");
  } else {
    checks->Ok(v1::CHECK_CODE_SCHEDULER, subject, "answers, " + who);
  }
  return true;
}

void JudgeVersion(const std::string& version, agents::CheckList* checks) {
  const std::string seen = "kubernetes " + version;
  int major = 0;
  int minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) {
    return checks->Warn(v1::CHECK_CODE_VERSION, "version",
                        seen + ", which is no version that is understood",
                        "use Kubernetes 1.28 or later");
  }
  if (major == 1 && minor < kMinorForSeals) {
    return checks->Warn(v1::CHECK_CODE_VERSION, "version",
                        seen +
                            ": before 1.27 the agent does not learn why a command or a setup "
                            "script could not start, and jobs of several nodes need 1.28",
                        "upgrade the cluster");
  }
  if (major == 1 && minor < kMinorForSeveralNodes) {
    return checks->Warn(v1::CHECK_CODE_VERSION, "version",
                        seen + ": jobs of several nodes need 1.28 or later",
                        "upgrade the cluster, or give it jobs of one node only");
  }
  checks->Ok(v1::CHECK_CODE_VERSION, "version", seen);
}

void JudgeIdentity(const absl::StatusOr<std::string>& identity, const std::string& known,
                   agents::CheckList* checks) {
  constexpr char kSubject[] = "identity";
  if (!identity.ok()) {
    const std::string seen =
        fmt::format("the namespace kube-system cannot be read: {}", MessageOf(identity.status()));
    if (known.empty())
      return checks->Fail(
          v1::CHECK_CODE_IDENTITY, kSubject, seen,
          "the agent does not start before it could read that namespace's UID once: "
          "apply deploy/kubernetes/account.yaml");
    return checks->Warn(v1::CHECK_CODE_IDENTITY, kSubject, seen,
                        "another cluster at the same address is not noticed: apply "
                        "deploy/kubernetes/account.yaml");
  }
  if (!known.empty() && known != *identity) {
    return checks->Fail(v1::CHECK_CODE_IDENTITY, kSubject,
                        fmt::format("the UID of kube-system is {}, and the agent's runs are on the "
                                    "cluster with {}",
                                    *identity, known),
                        "correct the kubeconfig or its context, or give this cluster an agent with "
                        "a state_dir of its own");
  }
  checks->Ok(v1::CHECK_CODE_IDENTITY, kSubject, "the UID of kube-system is " + *identity);
}

bool JudgePresence(const std::string& name_space, const absl::StatusOr<Json>& answer,
                   agents::CheckList* checks) {
  if (!absl::IsNotFound(answer.status())) return true;
  checks->Fail(v1::CHECK_CODE_POOL, "namespace " + name_space,
               "there is none: " + MessageOf(answer.status()),
               fmt::format("make the namespace (kubectl create namespace {0}) and give the agent's "
                           "account its rights there (kubectl apply -n {0} -f "
                           "deploy/kubernetes/rights.yaml), or take it out of kubernetes.namespace "
                           "and kubernetes.namespaces",
                           name_space));
  return false;
}

void JudgeTrial(const std::string& name_space, const absl::StatusOr<ApiAnswer>& answer,
                agents::CheckList* checks) {
  const std::string subject = fmt::format("a Job in namespace {}", name_space);
  if (!answer.ok()) {
    return checks->Fail(v1::CHECK_CODE_TRIAL, subject, MessageOf(answer.status()),
                        "see that the API server is well");
  }
  if (answer->ok())
    return checks->Ok(v1::CHECK_CODE_TRIAL, subject, "is taken by the API server in a dry run");
  std::string remedy = "correct what the server's message names";
  if (answer->IsRbac()) remedy = RightsRemedy(name_space);
  if (answer->message.find("being terminated") != std::string::npos || answer->status == 404) {
    remedy = fmt::format(
        "make the namespace (kubectl create namespace {}), or set kubernetes.namespace to another",
        name_space);
  } else if (answer->message.find("webhook") != std::string::npos) {
    remedy = "have the admission webhook take Muster's Jobs";
  }
  checks->Fail(v1::CHECK_CODE_TRIAL, subject, MessageOf(RefusalOf(*answer, "dry run")), remedy);
}

// The rights that a cluster role gives come first: the others are missing for one cause, and have
// one remedy.
std::vector<Right> NamespaceRights() {
  return {
      {"",
       "namespaces",
       "",
       true,
       {"get"},
       false,
       "that it is missing or being deleted is not told"},
      {"batch", "jobs", "", true, {"create", "get", "list", "watch", "patch", "delete"}, true, ""},
      {"", "secrets", "", true, {"create"}, true, ""},
      {"", "services", "", true, {"create"}, true, ""},
      {"", "configmaps", "", true, {"create"}, false, kNoLeases},
      {"", "configmaps", kLeaseObject, true, {"patch"}, false, kNoLeases},
      {"", "pods", "", true, {"list", "watch"}, true, ""},
      {"", "pods/log", "", true, {"get"}, true, ""},
      {"", "events", "", true, {"list", "watch"}, true, ""},
      {"", "resourcequotas", "", true, {"list", "watch"}, false, "quotas are not told in advance"},
      {"",
       "limitranges",
       "",
       true,
       {"list", "watch"},
       false,
       "limits of pods are not told in advance"},
      {"",
       "serviceaccounts",
       "",
       true,
       {"list"},
       false,
       "jobs that name one that is not there are not refused at once"},
      {"",
       "persistentvolumeclaims",
       "",
       true,
       {"list"},
       false,
       "plans do not tell which claims are not there"},
  };
}

std::vector<Right> ClusterRights() {
  return {
      {"scheduling.k8s.io",
       "priorityclasses",
       "",
       false,
       {"list"},
       false,
       "jobs that name one that is not there are not refused at once"},
      {"node.k8s.io",
       "runtimeclasses",
       "",
       false,
       {"list"},
       false,
       "jobs that name one that is not there are not refused at once"},
      {"",
       "nodes",
       "",
       false,
       {"list", "watch"},
       false,
       "what could never fit is not refused, and capacity is not shown"},
      {"",
       "pods",
       "",
       false,
       {"list", "watch"},
       false,
       "what other namespaces use is not known, so that jobs wait in Kubernetes"},
      {"",
       "namespaces",
       "kube-system",
       false,
       {"get"},
       false,
       "another cluster at the same address is not noticed"},
  };
}

std::vector<Right> RightsOf(const KubernetesConfig& config) {
  std::vector<Right> rights = NamespaceRights();
  for (Right& right : ClusterRights()) rights.push_back(std::move(right));
  bool has_claim = false;
  for (const auto& [name, root] : config.storage_roots) has_claim |= !root.claim.empty();
  if (has_claim) {
    rights.push_back({"",
                      "persistentvolumeclaims",
                      "",
                      true,
                      {"get"},
                      false,
                      "whether the claims of storage roots are there is not known"});
  }
  return rights;
}

std::vector<Right> RightsWithKueue() {
  return {{kKueueGroup,
           "localqueues",
           "",
           true,
           {"get", "list", "watch"},
           false,
           "a queue that is not there is waited for, and not refused"},
          {kKueueGroup,
           "workloads",
           "",
           true,
           {"list", "watch"},
           false,
           "why runs wait in their queues is not told"}};
}

std::vector<Right> RightsWithPodGroups(const std::string& group) {
  return {{group,
           "podgroups",
           "",
           true,
           {"create"},
           false,
           fmt::format("launches of jobs with kubernetes.gang: {} are refused",
                       group == kVolcanoGroup ? "volcano" : "pod_group")}};
}

void JudgeRight(const Right& right, const std::string& name_space,
                const std::map<std::string, absl::StatusOr<bool>>& allowed,
                agents::CheckList* checks) {
  const std::string what = right.name.empty() ? right.resource : right.resource + " " + right.name;
  const std::string subject =
      fmt::format("rights to {} in {}", what,
                  right.in_namespace ? "namespace " + name_space : std::string("the cluster"));
  std::vector<std::string> missing;
  for (const std::string& verb : right.verbs) {
    const auto answer = allowed.find(verb);
    if (answer == allowed.end() || !answer->second.ok()) {
      return checks->Skip(
          v1::CHECK_CODE_RIGHTS, subject,
          answer == allowed.end() ? "not asked" : MessageOf(answer->second.status()));
    }
    if (!*answer->second) missing.push_back(verb);
  }
  if (missing.empty())
    return checks->Ok(v1::CHECK_CODE_RIGHTS, subject,
                      fmt::format("{}", fmt::join(right.verbs, ", ")));
  const std::string seen = fmt::format("not allowed: {}{}{}", fmt::join(missing, ", "),
                                       right.loss.empty() ? "" : "; ", right.loss);
  const std::string remedy = right.in_namespace ? RightsRemedy(name_space) : kClusterRightsRemedy;
  if (right.is_required) return checks->Fail(v1::CHECK_CODE_RIGHTS, subject, seen, remedy);
  checks->Warn(v1::CHECK_CODE_RIGHTS, subject, seen, remedy);
}

}  // namespace muster::kubernetes
