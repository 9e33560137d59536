#include "agents/kubernetes/checks/checks.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// The only line of a list.
v1::ClusterCheck Only(agents::CheckList checks) {
  const v1::ClusterChecks all = std::move(checks).Take();
  EXPECT_EQ(all.checks_size(), 1) << all.DebugString();
  return all.checks_size() == 1 ? all.checks(0) : v1::ClusterCheck();
}

template <typename Judge>
v1::ClusterCheck Line(Judge judge) {
  agents::CheckList checks;
  judge(&checks);
  return Only(std::move(checks));
}

void ExpectLine(const v1::ClusterCheck& line, v1::CheckResult result, const std::string& seen) {
  EXPECT_NE(line.code(), v1::CHECK_CODE_UNSPECIFIED) << line.DebugString();
  EXPECT_EQ(line.result(), result) << line.DebugString();
  EXPECT_THAT(line.seen(), HasSubstr(seen));
  const bool needs_remedy = result == v1::CHECK_RESULT_FAIL || result == v1::CHECK_RESULT_WARN;
  EXPECT_EQ(!line.remedy().empty(), needs_remedy) << line.DebugString();
}

NodeObject Node(const std::string& name, int64_t gpus) {
  NodeObject node;
  node.name = name;
  node.ready = true;
  if (gpus > 0) {
    node.allocatable.gpus["nvidia.com/gpu"] = gpus;
    node.labels["nvidia.com/gpu.product"] = "H100";
  }
  return node;
}

TEST(KubernetesChecksTest, AServerThatIsNotReachedEndsThePreflightWithTheRemedy) {
  const struct {
    absl::Status status;
    const char* remedy;
  } cases[] = {
      {absl::UnavailableError("Connection refused"), "the server's address"},
      {absl::UnauthenticatedError("Unauthorized"), "renew the credentials"},
      {absl::FailedPreconditionError("self-signed certificate"), "certificate-authority-data"},
  };
  for (const auto& one : cases) {
    agents::CheckList checks;
    Endpoint endpoint;
    endpoint.context = "lab";
    endpoint.server = "https://api:6443";
    EXPECT_FALSE(JudgeServer(endpoint, one.status, &checks));
    const v1::ClusterCheck line = Only(std::move(checks));
    EXPECT_EQ(line.result(), v1::CHECK_RESULT_FAIL);
    EXPECT_EQ(line.subject(), "API server https://api:6443");
    EXPECT_THAT(line.remedy(), HasSubstr(one.remedy));
  }
}

TEST(KubernetesChecksTest, ACertificateThatIsNotLookedAtIsAWarning) {
  Endpoint endpoint;
  endpoint.context = "lab";
  ExpectLine(Line([&](auto* checks) { JudgeServer(endpoint, std::string("1.36.3"), checks); }),
             v1::CHECK_RESULT_OK, "answers, by context lab");
  endpoint.skips_tls_verify = true;
  ExpectLine(Line([&](auto* checks) { JudgeServer(endpoint, std::string("1.36.3"), checks); }),
             v1::CHECK_RESULT_WARN, "its certificate is not looked at");
}

TEST(KubernetesChecksTest, JobsOfSeveralNodesNeed128) {
  const auto judge = [](const char* version) {
    return Line([&](auto* checks) { JudgeVersion(version, checks); });
  };
  ExpectLine(judge("1.36.3"), v1::CHECK_RESULT_OK, "kubernetes 1.36.3");
  ExpectLine(judge("1.28.0-gke.5"), v1::CHECK_RESULT_OK, "kubernetes 1.28.0-gke.5");
  ExpectLine(judge("1.27.9"), v1::CHECK_RESULT_WARN, "several nodes need 1.28");
  ExpectLine(judge("1.26.15"), v1::CHECK_RESULT_WARN, "before 1.27 the agent does not learn why");
  ExpectLine(judge("main"), v1::CHECK_RESULT_WARN, "no version that is understood");
}

TEST(KubernetesChecksTest, AnotherClusterFailsAndSoDoesOneThatNeverTold) {
  const auto judge = [](absl::StatusOr<std::string> identity, const char* known) {
    return Line([&](auto* checks) { JudgeIdentity(identity, known, checks); });
  };
  ExpectLine(judge(std::string("a"), ""), v1::CHECK_RESULT_OK, "a");
  ExpectLine(judge(std::string("a"), "a"), v1::CHECK_RESULT_OK, "a");
  ExpectLine(judge(std::string("b"), "a"), v1::CHECK_RESULT_FAIL,
             "is b, and the agent's runs are on the cluster with a");
  ExpectLine(judge(absl::PermissionDeniedError("no"), "a"), v1::CHECK_RESULT_WARN, "no");
  ExpectLine(judge(absl::PermissionDeniedError("no"), ""), v1::CHECK_RESULT_FAIL, "no");
}

TEST(KubernetesChecksTest, ARightThatIsMissingIsNamedWithItsVerbs) {
  const auto judge = [](bool is_required, std::map<std::string, absl::StatusOr<bool>> allowed) {
    const Right right = {"batch", "jobs", "", true, {"create", "delete"}, is_required, "a loss"};
    return Line([&](auto* checks) { JudgeRight(right, "lab", allowed, checks); });
  };
  ExpectLine(judge(true, {{"create", true}, {"delete", true}}), v1::CHECK_RESULT_OK,
             "create, delete");
  ExpectLine(judge(true, {{"create", true}, {"delete", false}}), v1::CHECK_RESULT_FAIL,
             "not allowed: delete");
  ExpectLine(judge(false, {{"create", false}, {"delete", false}}), v1::CHECK_RESULT_WARN,
             "not allowed: create, delete; a loss");
  ExpectLine(judge(true, {{"create", absl::UnavailableError("down")}, {"delete", true}}),
             v1::CHECK_RESULT_SKIPPED, "down");
}

TEST(KubernetesChecksTest, ANamespaceThatIsNotThereIsToBeMade) {
  agents::CheckList checks;
  EXPECT_FALSE(JudgePresence("lab", absl::NotFoundError("namespaces \"lab\" not found"), &checks));
  const v1::ClusterCheck line = Only(std::move(checks));
  ExpectLine(line, v1::CHECK_RESULT_FAIL, "there is none: namespaces \"lab\" not found");
  EXPECT_THAT(line.remedy(), HasSubstr("make the namespace (kubectl create namespace lab) and"));
  EXPECT_THAT(line.remedy(), HasSubstr("kubectl apply -n lab -f deploy/kubernetes/rights.yaml"));
  // An agent that may not look cannot tell.
  EXPECT_TRUE(JudgePresence("lab", absl::PermissionDeniedError("no"), nullptr));
  EXPECT_TRUE(JudgePresence("lab", Json(), nullptr));
}

// "create jobs", of all that are asked for where Kueue and the coscheduling plug-in are.
std::set<std::string> AllRights() {
  std::vector<Right> rights = RightsOf(KubernetesConfig());
  for (const auto& more : {RightsWithKueue(), RightsWithPodGroups("scheduling.x-k8s.io")})
    rights.insert(rights.end(), more.begin(), more.end());
  std::set<std::string> words;
  for (const Right& right : rights) {
    for (const std::string& verb : right.verbs) words.insert(verb + " " + right.resource);
  }
  return words;
}

TEST(KubernetesChecksTest, AllRightsThatRunsMayNeedAreAskedForAndNoneThatNobodyUses) {
  const std::set<std::string> rights = AllRights();
  EXPECT_THAT(rights, IsSupersetOf({"create podgroups", "list runtimeclasses", "get localqueues",
                                    "list workloads"}));
  EXPECT_THAT(rights, Not(Contains("get pods")));
  EXPECT_THAT(rights, Not(Contains("get workloads")));
}

TEST(KubernetesChecksTest, AllRightsOfANamespaceHaveOneRemedy) {
  agents::CheckList checks;
  for (const Right& right : RightsOf(KubernetesConfig())) {
    std::map<std::string, absl::StatusOr<bool>> allowed;
    for (const std::string& verb : right.verbs) allowed.emplace(verb, false);
    if (right.in_namespace) JudgeRight(right, "lab", allowed, &checks);
  }
  ApiAnswer refused;
  refused.status = 403;
  refused.message = "jobs.batch is forbidden: User \"muster\" cannot create resource \"jobs\"";
  JudgeTrial("lab", refused, &checks);
  std::set<std::string> remedies;
  for (const v1::ClusterCheck& check : checks.checks().checks()) remedies.insert(check.remedy());
  EXPECT_EQ(remedies.size(), 1u);
  EXPECT_THAT(*remedies.begin(), HasSubstr("make the namespace first if it is not there"));
}

TEST(KubernetesChecksTest, WhatTheServerSaysOfAJobReachesTheOperator) {
  const auto judge = [](int status, const char* message) {
    ApiAnswer answer;
    answer.status = status;
    answer.message = message;
    return Line([&](auto* checks) { JudgeTrial("lab", answer, checks); });
  };
  ExpectLine(judge(201, ""), v1::CHECK_RESULT_OK, "dry run");
  constexpr char kForbidden[] = "jobs.batch is forbidden: User \"x\" cannot create resource";
  ExpectLine(judge(403, kForbidden), v1::CHECK_RESULT_FAIL, "jobs.batch is forbidden");
  EXPECT_THAT(judge(403, kForbidden).remedy(), HasSubstr("rights.yaml"));
  EXPECT_THAT(judge(403, "jobs.batch \"x\" is forbidden: exceeded quota").remedy(),
              Not(HasSubstr("rights.yaml")));
  EXPECT_THAT(judge(404, "namespaces \"lab\" not found").remedy(),
              HasSubstr("kubectl create namespace lab"));
  EXPECT_THAT(
      judge(403, "unable to create new content in namespace lab because it is being terminated")
          .remedy(),
      HasSubstr("kubectl create namespace lab"));
  EXPECT_THAT(judge(400, "admission webhook \"x\" denied").remedy(), HasSubstr("webhook"));
}

TEST(KubernetesChecksTest, NodesThatMayNotBeListedAreNotTakenForNone) {
  const auto judge = [](absl::StatusOr<std::vector<NodeObject>> nodes) {
    return Line([&](auto* checks) { JudgeNodes(nodes, checks); });
  };
  ExpectLine(judge(absl::PermissionDeniedError("forbidden")), v1::CHECK_RESULT_SKIPPED,
             "not known: forbidden");
  ExpectLine(judge(std::vector<NodeObject>()), v1::CHECK_RESULT_FAIL, "0 of 0 in service");
  NodeObject lost = Node("node-2", 0);
  lost.ready = false;
  NodeObject cordoned = Node("node-3", 0);
  cordoned.unschedulable = true;
  ExpectLine(judge(std::vector{Node("node-1", 8), lost, cordoned}), v1::CHECK_RESULT_WARN,
             "1 of 3 in service; not ready: node-2; cordoned: node-3");
  ExpectLine(judge(std::vector{Node("node-1", 8), cordoned}), v1::CHECK_RESULT_OK, "1 of 2");
  ExpectLine(judge(std::vector{lost}), v1::CHECK_RESULT_FAIL, "0 of 1");
  NodeObject other = cordoned;
  other.name = "node-4";
  EXPECT_EQ(judge(std::vector{cordoned, other}).remedy(),
            "let pods in again: kubectl uncordon node-3 node-4");
  EXPECT_EQ(judge(std::vector{lost, cordoned}).remedy(),
            "see kubectl describe node node-2; let pods in again: kubectl uncordon node-3");
}

TEST(KubernetesChecksTest, GpusAreCountedByTypeAndTheirSignsCompared) {
  const auto judge = [](std::vector<NodeObject> nodes) {
    return Line([&](auto* checks) { JudgeGpus(nodes, KubernetesConfig(), checks); });
  };
  ExpectLine(judge({Node("node-1", 8), Node("node-2", 4)}), v1::CHECK_RESULT_OK, "12 H100");
  ExpectLine(judge({Node("node-1", 0)}), v1::CHECK_RESULT_WARN,
             "no node offers nvidia.com/gpu or amd.com/gpu");
  NodeObject hidden = Node("node-2", 0);
  hidden.labels["nvidia.com/gpu.present"] = "true";
  ExpectLine(judge({Node("node-1", 8), hidden}), v1::CHECK_RESULT_WARN, "more on node-2");
  NodeObject untyped = Node("node-3", 2);
  untyped.labels.clear();
  ExpectLine(judge({untyped}), v1::CHECK_RESULT_WARN, "is missing on node-3");
}

TEST(KubernetesChecksTest, APullSecretIsThereForItsRegistriesOrCannotBeRead) {
  const auto judge = [](absl::StatusOr<Json> secret) {
    return Line([&](auto* checks) { JudgePullSecret("pull", "lab", secret, checks); });
  };
  // It holds {"auths":{"nvcr.io":{"password":"hidden"}}}.
  const Json secret = {
      {"type", "kubernetes.io/dockerconfigjson"},
      {"data",
       {{".dockerconfigjson", "eyJhdXRocyI6eyJudmNyLmlvIjp7InBhc3N3b3JkIjoiaGlkZGVuIn19fQ=="}}}};
  const v1::ClusterCheck line = judge(secret);
  ExpectLine(line, v1::CHECK_RESULT_OK, "has credentials for nvcr.io");
  EXPECT_EQ(line.DebugString().find("hidden"), std::string::npos);
  ExpectLine(judge(absl::NotFoundError("none")), v1::CHECK_RESULT_FAIL, "none in namespace lab");
  ExpectLine(judge(absl::PermissionDeniedError("forbidden")), v1::CHECK_RESULT_SKIPPED,
             "an administrator sees with kubectl -n lab get secret pull -o "
             "jsonpath='{.data.\\.dockerconfigjson}' | base64 -d: forbidden");
  ExpectLine(judge(Json({{"type", "Opaque"}})), v1::CHECK_RESULT_FAIL, "no registry");
}

TEST(KubernetesChecksTest, AClaimIsThereAndForSeveralNodes) {
  const auto judge = [](absl::StatusOr<Json> answer) {
    return Line([&](auto* checks) { JudgeClaim("data", "c", "lab", answer, checks); });
  };
  const auto claim = [](const char* mode, const char* phase) {
    return Json{{"spec", {{"accessModes", {mode}}}}, {"status", {{"phase", phase}}}};
  };
  ExpectLine(judge(claim("ReadWriteMany", "Bound")), v1::CHECK_RESULT_OK, "claim c is Bound");
  ExpectLine(judge(claim("ReadWriteOnce", "Bound")), v1::CHECK_RESULT_WARN, "one node");
  ExpectLine(judge(claim("ReadWriteMany", "Lost")), v1::CHECK_RESULT_FAIL, "Lost");
  ExpectLine(judge(absl::NotFoundError("none")), v1::CHECK_RESULT_FAIL, "no claim c");
  ExpectLine(judge(absl::PermissionDeniedError("no")), v1::CHECK_RESULT_SKIPPED, "no");
  ExpectLine(Line([](auto* checks) { JudgeHostPath("data", "/srv", checks); }), v1::CHECK_RESULT_OK,
             "/srv of each node");
}

TEST(KubernetesChecksTest, ADirectoryWhereTheAgentIsToSeeAStorageRootIsLookedAt) {
  const auto judge = [](const absl::Status& read) {
    return Line([&](auto* checks) { JudgeAgentRoot("data", "/mnt/data", read, checks); });
  };
  ExpectLine(judge(absl::OkStatus()), v1::CHECK_RESULT_OK, "sees it at /mnt/data");
  ExpectLine(judge(absl::PermissionDeniedError("no")), v1::CHECK_RESULT_FAIL,
             "/mnt/data cannot be read: no");
}

TEST(KubernetesChecksTest, TheQueuesOfKueueAreNamedAndADefaultOneIsWarnedOf) {
  const auto judge = [](absl::StatusOr<Json> list) {
    return Line([&](auto* checks) { JudgeLocalQueues("lab", list, checks); });
  };
  const Json night = {
      {"metadata", {{"name", "night"}}},
      {"status",
       {{"conditions", {{{"type", "Active"}, {"status", "False"}, {"message", "stopped"}}}}}}};
  const Json general = {{"metadata", {{"name", "default"}}}};
  ExpectLine(judge(Json{{"items", {night}}}), v1::CHECK_RESULT_OK,
             "night (lets nothing go: stopped)");
  ExpectLine(judge(Json{{"items", {night, general}}}), v1::CHECK_RESULT_WARN,
             "each job that names no queue");
  ExpectLine(judge(Json{{"items", Json::array()}}), v1::CHECK_RESULT_OK, "none");
  ExpectLine(judge(absl::PermissionDeniedError("no")), v1::CHECK_RESULT_SKIPPED, "no");
}

TEST(KubernetesChecksTest, QueuesAndLimitsAreTold) {
  const Json groups = {{"groups", {{{"name", "kueue.x-k8s.io"}}, {{"name", "batch"}}}}};
  ExpectLine(Line([&](auto* checks) { JudgeQueues(groups, checks); }), v1::CHECK_RESULT_OK,
             "Kueue");
  ExpectLine(Line([&](auto* checks) { JudgeQueues(Json::object(), checks); }), v1::CHECK_RESULT_OK,
             "neither Kueue nor Volcano");
  const auto quota = [](int64_t used) {
    return std::vector<QuotaLine>{{"q", "pods", "4", std::to_string(used), 4000, used * 1000}};
  };
  ExpectLine(Line([&](auto* checks) { JudgeQuotas("lab", quota(4), checks); }),
             v1::CHECK_RESULT_WARN, "quota q: 4 of 4 pods used");
  ExpectLine(Line([&](auto* checks) { JudgeQuotas("lab", quota(3), checks); }), v1::CHECK_RESULT_OK,
             "3 of 4");
  ExpectLine(
      Line([&](auto* checks) { JudgeQuotas("lab", absl::PermissionDeniedError("no"), checks); }),
      v1::CHECK_RESULT_SKIPPED, "no");
}

}  // namespace
}  // namespace muster::kubernetes
