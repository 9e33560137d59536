#include "agents/kubernetes/manifest/projects.h"

#include <memory>
#include <string>

#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/manifest/pod_security.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/made_objects.h"

namespace muster::kubernetes {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

KubernetesConfig WithMap(const std::string& text) {
  KubernetesConfig config = WithoutRoots();
  absl::StatusOr<ProjectMap> map = ProjectMap::Parse(text, "/etc/muster/projects");
  EXPECT_TRUE(map.ok()) << map.status();
  config.projects = std::make_shared<const ProjectMap>(*std::move(map));
  absl::StatusOr<KubernetesConfig> whole = WithProjects(config);
  EXPECT_TRUE(whole.ok()) << whole.status();
  return *std::move(whole);
}

std::string FaultOf(const std::string& text) {
  return std::string(ToStd(ProjectMap::Parse(text, "F").status().message()));
}

// Returns "FIELD: why".
std::string WhyNotPlaced(const agent::v1::Assignment& assignment, const KubernetesConfig& config) {
  const absl::Status status = InProject(assignment, config).status();
  const auto bad = contract::GetBadRequest(status);
  return bad.has_value()
             ? bad->field_violations(0).field() + ": " + bad->field_violations(0).description()
             : std::string(ToStd(status.message()));
}

TEST(ProjectsTest, TheFirstLineThatFitsSaysWhereAProjectIs) {
  const absl::StatusOr<ProjectMap> map = ProjectMap::Parse(
      "# the lab\nvision: team-v service_account=runner uid=20001 token=yes\n"
      "x-*: team-\\1\n*: others\n",
      "F");
  ASSERT_TRUE(map.ok()) << map.status();
  const ProjectPlace vision = map->Find("vision").value();
  EXPECT_EQ(vision.name_space, "team-v");
  EXPECT_EQ(vision.service_account, "runner");
  EXPECT_EQ(vision.uid, 20001);
  EXPECT_TRUE(vision.has_token);
  const ProjectPlace other = map->Find("x-ray").value();
  EXPECT_EQ(other.name_space, "team-ray");
  EXPECT_EQ(other.service_account, "default");
  EXPECT_FALSE(other.uid.has_value());
  EXPECT_FALSE(other.has_token);
  EXPECT_EQ(map->Find("sound").value().name_space, "others");
}

TEST(ProjectsTest, AFaultOfTheMapIsFoundBeforeAJobIsAndHasItsLine) {
  EXPECT_THAT(FaultOf("a: b\nvision\n"), HasSubstr("line 2 is not of the form"));
  EXPECT_THAT(FaultOf("a: kube-system"), AllOf(HasSubstr("line 1"), HasSubstr("of Kubernetes")));
  EXPECT_THAT(FaultOf("a: Team_A"), HasSubstr("namespace's name"));
  EXPECT_THAT(FaultOf("a: b uid=0"), HasSubstr("root"));
  EXPECT_THAT(FaultOf("a: b uid=x"), HasSubstr("uid"));
  EXPECT_THAT(FaultOf("a: b runner"), HasSubstr("\"runner\" is none of"));
  EXPECT_THAT(FaultOf("a: b token=perhaps"), HasSubstr("token=perhaps"));
  EXPECT_THAT(FaultOf("*: team-\\1 service_account=_"), HasSubstr("service account"));
  EXPECT_THAT(FaultOf("# nothing\n"), HasSubstr("no line"));
}

TEST(ProjectsTest, APatternLeadsToNoSystemNamespaceAndToNoTextThatIsNone) {
  const KubernetesConfig config = WithMap("a: team-a\n*: \\1\n");
  agent::v1::Assignment assignment = MakeAssignment();
  for (const char* project : {"kube-system", "Vision", "a.b"}) {
    assignment.mutable_spec()->set_project(project);
    EXPECT_THAT(WhyNotPlaced(assignment, config), HasSubstr("has no namespace on this cluster"))
        << project;
  }
}

TEST(ProjectsTest, ARunIsMadeInTheNamespaceOfItsProjectWithItsAccountAndUser) {
  const KubernetesConfig config =
      WithMap("sound: team-s\nvision: team-v service_account=runner uid=20001\n");
  EXPECT_EQ(config.namespaces, (std::vector<std::string>{"team-s", "team-v"}));
  EXPECT_EQ(config.name_space, "team-s");
  const absl::StatusOr<agent::v1::Assignment> placed = InProject(MakeAssignment(2), config);
  ASSERT_TRUE(placed.ok()) << placed.status();
  const RunObjects objects = Make(*placed, config);
  EXPECT_EQ(objects.name_space, "team-v");
  EXPECT_EQ(objects.secret.at("metadata").at("namespace"), "team-v");
  EXPECT_EQ(objects.service->at("metadata").at("namespace"), "team-v");
  const Json pod = PodOf(objects);
  EXPECT_EQ(pod.at("serviceAccountName"), "runner");
  EXPECT_EQ(pod.at("automountServiceAccountToken"), false);
  EXPECT_EQ(pod.at("securityContext").at("fsGroup"), 20001);
  const Json context = MainOf(objects).at("securityContext");
  EXPECT_EQ(context.at("runAsUser"), 20001);
  EXPECT_EQ(context.at("runAsGroup"), 20001);
  EXPECT_EQ(context.at("runAsNonRoot"), true);
  EXPECT_EQ(context.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(context.at("capabilities").at("drop"), Json::array({"ALL"}));
  EXPECT_EQ(context.at("seccompProfile").at("type"), "RuntimeDefault");
}

TEST(ProjectsTest, PodsGetTheTokenOnlyWhereTheLineSaysSo) {
  const KubernetesConfig config = WithMap("vision: team-v token=yes\n");
  EXPECT_EQ(
      PodOf(Make(*InProject(MakeAssignment(), config), config)).at("automountServiceAccountToken"),
      true);
}

TEST(ProjectsTest, AProjectWithoutALineIsRefusedWithWhoCanMendIt) {
  const std::string why = WhyNotPlaced(MakeAssignment(), WithMap("sound: team-s\n"));
  EXPECT_THAT(why, AllOf(HasSubstr("project: \"vision\" has no namespace"), HasSubstr("operator"),
                         HasSubstr("kubernetes.projects (/etc/muster/projects)"),
                         Not(HasSubstr("team-s"))));
}

TEST(ProjectsTest, APatternLeadsOnlyToNamespacesOfTheAgent) {
  const KubernetesConfig config = WithMap("sound: team-s\n*: team-\\1\n");
  EXPECT_THAT(WhyNotPlaced(MakeAssignment(), config), HasSubstr("kubernetes.namespaces"));
}

TEST(ProjectsTest, AJobCannotChooseAnotherNamespaceAccountOrUser) {
  const KubernetesConfig config = WithMap("sound: team-s\nvision: team-v uid=20001\n");
  agent::v1::Assignment by_name = MakeAssignment();
  by_name.mutable_spec()->mutable_kubernetes()->set_namespace_("team-s");
  EXPECT_THAT(WhyNotPlaced(by_name, config), HasSubstr("kubernetes.namespace: \"team-s\""));
  agent::v1::Assignment by_pool = MakeAssignment();
  by_pool.mutable_spec()->mutable_placement()->set_pool("team-s");
  EXPECT_THAT(WhyNotPlaced(by_pool, config), HasSubstr("placement.pool: \"team-s\""));
  agent::v1::Assignment account = MakeAssignment();
  account.mutable_spec()->mutable_kubernetes()->set_service_account("admin");
  EXPECT_THAT(WhyNotPlaced(account, config), HasSubstr("kubernetes.service_account: \"admin\""));
  using Wish = void (v1::KubernetesSecurityContext::*)(int64_t);
  for (const Wish wish : {&v1::KubernetesSecurityContext::set_run_as_user,
                          &v1::KubernetesSecurityContext::set_run_as_group,
                          &v1::KubernetesSecurityContext::set_fs_group}) {
    agent::v1::Assignment user = MakeAssignment();
    (user.mutable_spec()->mutable_kubernetes()->mutable_security_context()->*wish)(20002);
    EXPECT_THAT(RefusalOf(user, config), HasSubstr("run as user and group 20001"));
  }
}

TEST(ProjectsTest, AJobWithoutAUserOfItsProjectCannotChooseThatOfAnother) {
  const KubernetesConfig config = WithMap("vision: team-v\nsound: team-s uid=20001\n");
  agent::v1::Assignment user = MakeAssignment();
  user.mutable_spec()->mutable_kubernetes()->mutable_security_context()->set_fs_group(20001);
  EXPECT_THAT(RefusalOf(user, config), HasSubstr("jobs of another project run as this user"));
  user.mutable_spec()->mutable_kubernetes()->mutable_security_context()->set_fs_group(20002);
  EXPECT_EQ(PodOf(Make(user, config)).at("securityContext"), Json({{"fsGroup", 20002}}));
}

TEST(ProjectsTest, WhatRestrictedForbidsIsRefusedByItsField) {
  const KubernetesConfig config = WithMap("vision: team-v\n");
  const auto refused = [&](auto change) {
    agent::v1::Assignment assignment = MakeAssignment();
    change(assignment.mutable_spec()->mutable_kubernetes()->mutable_security_context());
    return RefusalOf(assignment, config);
  };
  EXPECT_THAT(refused([](auto* context) { context->set_run_as_user(0); }),
              HasSubstr("kubernetes.security_context.run_as_user: 0"));
  EXPECT_THAT(refused([](auto* context) { context->set_run_as_non_root(false); }),
              HasSubstr("run_as_non_root"));
  EXPECT_THAT(refused([](auto* context) { context->set_allow_privilege_escalation(true); }),
              HasSubstr("allow_privilege_escalation"));
  EXPECT_THAT(refused([](auto* context) { context->add_add_capabilities("SYS_PTRACE"); }),
              HasSubstr("SYS_PTRACE"));
  EXPECT_THAT(refused([](auto* context) { context->set_privileged(true); }),
              HasSubstr("privileged"));
}

TEST(ProjectsTest, TheOperatorMayAllowMoreAndMayAskForRestrictedWithoutProjects) {
  KubernetesConfig config = WithMap("vision: team-v\n");
  config.is_restricted = false;
  agent::v1::Assignment root = MakeAssignment();
  root.mutable_spec()->mutable_kubernetes()->mutable_security_context()->set_run_as_user(0);
  EXPECT_EQ(MainOf(Make(root, config)).at("securityContext"), Json({{"runAsUser", 0}}));
  config = WithoutRoots();
  EXPECT_FALSE(MainOf(Make(MakeAssignment(), config)).contains("securityContext"));
  config.is_restricted = true;
  EXPECT_EQ(MainOf(Make(MakeAssignment(), config)).at("securityContext"), LeastContext());
}

TEST(ProjectsTest, SettingsThatContradictEachOtherAreRefused) {
  const auto fault = [](KubernetesConfig config) {
    return std::string(ToStd(WithProjects(std::move(config)).status().message()));
  };
  const KubernetesConfig good = WithMap("vision: team-v\n");
  KubernetesConfig config = good;
  config.allow_host_path = true;
  EXPECT_THAT(fault(config), AllOf(HasSubstr("kubernetes.allow_host_path"),
                                   HasSubstr("kubernetes.pod_security: unrestricted")));
  config.is_restricted = false;
  EXPECT_EQ(fault(config), "");
  config = good;
  config.storage_roots["home"] = {.claim = "", .host_path = "/srv", .mount = "/home"};
  EXPECT_THAT(fault(config), HasSubstr("kubernetes.storage_roots (home)"));
  config = good;
  config.agent_roots["data"] = "/mnt";
  EXPECT_THAT(fault(config), HasSubstr("kubernetes.agent_roots"));
  config = WithoutRoots();
  config.projects = std::make_shared<const ProjectMap>(*ProjectMap::Parse("*: \\1", "F"));
  EXPECT_THAT(fault(config), HasSubstr("only patterns"));
  config.projects_file = "/nonexistent";
  EXPECT_THAT(fault(config), HasSubstr("kubernetes.projects"));
}

TEST(ProjectsTest, APreflightSaysAsWhomJobsRunAndWhatThatMeans) {
  KubernetesConfig config = WithMap("vision: team-v service_account=runner uid=20001\n");
  EXPECT_THAT(
      ProjectsLine(config).seen(),
      AllOf(HasSubstr("team-v (service account runner, user 20001)"), HasSubstr("\"restricted\"")));
  KubernetesConfig shared = WithoutRoots();
  shared.namespaces = {"runs"};
  EXPECT_THAT(ProjectsLine(shared).seen(),
              AllOf(HasSubstr("share the namespace runs"), HasSubstr("set kubernetes.projects")));
}

TEST(ProjectsTest, APreflightLooksAtTheStandardAndTheAccountOfEachNamespace) {
  const KubernetesConfig config = WithMap("vision: team-v service_account=runner\n");
  const auto standard = [](const KubernetesConfig& of, const Json& labels) {
    agents::CheckList checks;
    JudgeStandard("team-v", Json{{"metadata", {{"labels", labels}}}}, of, &checks);
    return checks.checks().checks_size() == 0 ? v1::CHECK_RESULT_UNSPECIFIED
                                              : checks.checks().checks(0).result();
  };
  const Json enforced = {{"pod-security.kubernetes.io/enforce", "restricted"}};
  EXPECT_EQ(standard(config, enforced), v1::CHECK_RESULT_OK);
  EXPECT_EQ(standard(config, Json::object()), v1::CHECK_RESULT_WARN);
  EXPECT_EQ(standard(WithoutRoots(), enforced), v1::CHECK_RESULT_WARN);
  EXPECT_EQ(standard(WithoutRoots(), Json::object()), v1::CHECK_RESULT_UNSPECIFIED);
  agents::CheckList checks;
  const ProjectPlace place = config.projects->Find("vision").value();
  JudgeAccount(place, Json{{"items", {{{"metadata", {{"name", "default"}}}}}}}, &checks);
  JudgeAccount(place, Json{{"items", {{{"metadata", {{"name", "runner"}}}}}}}, &checks);
  EXPECT_EQ(checks.checks().checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(checks.checks().checks(0).remedy(), HasSubstr("create serviceaccount -n team-v"));
  EXPECT_EQ(checks.checks().checks(1).result(), v1::CHECK_RESULT_OK);
}

}  // namespace
}  // namespace muster::kubernetes
