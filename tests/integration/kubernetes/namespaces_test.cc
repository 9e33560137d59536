// One agent with the least rights, and runs in several namespaces.
#include <algorithm>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/backend_fixture.h"
#include "tests/integration/kubernetes/least_rights.h"
#include "tests/unit/agents/one_run.h"

namespace muster::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Kind = agents::LaunchOutcome::Kind;
using Found = agents::LookupOutcome::Kind;

v1::JobSpec In(const std::string& name_space, v1::JobSpec spec) {
  spec.mutable_kubernetes()->set_namespace_(name_space);
  return spec;
}

class KubernetesNamespacesTest : public BackendFixture {
 protected:
  KubernetesNamespacesTest() {
    LeastRightsToken(cluster_, team_);
    Start(Both());
  }
  ~KubernetesNamespacesTest() override {
    for (const std::string& name_space : {team_, shut_})
      cluster_.Admin("DELETE", "/api/v1/namespaces/" + name_space);
  }

  KubernetesConfig Both() const {
    KubernetesConfig config = Config();
    config.namespaces = {team_};
    return config;
  }
  Json JobIn(const std::string& name_space, const TestRun& run) {
    return cluster_.MustDo(
        "GET", "/apis/batch/v1/namespaces/" + name_space + "/jobs/" + run.handle.run_key);
  }
  void SetQuota(const std::string& name_space, const Json& hard) {
    const std::string quotas = "/api/v1/namespaces/" + name_space + "/resourcequotas";
    cluster_.MustDo("POST", quotas,
                    {{"metadata", {{"name", "small"}}}, {"spec", {{"hard", hard}}}});
    WaitFor("the quota counts", [&] {
      return At(cluster_.MustDo("GET", quotas + "/small"), "status/used").is_object();
    });
  }
  v1::Pool PoolOf(const std::string& name) {
    const absl::StatusOr<v1::Inventory> inventory = backend().Inventory();
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    if (!inventory.ok()) return {};
    issues_.clear();
    for (const v1::ClusterIssue& issue : inventory->issues()) issues_.push_back(issue.message());
    const auto& pools = inventory->pools();
    const auto found = std::find_if(pools.begin(), pools.end(),
                                    [&](const v1::Pool& pool) { return pool.name() == name; });
    EXPECT_NE(found, pools.end()) << name;
    return found == pools.end() ? v1::Pool() : *found;
  }

  const std::string team_ = cluster_.MakeNamespace();  // with the agent's rights
  const std::string shut_ = cluster_.MakeNamespace();  // without
  std::vector<std::string> issues_;                    // of the latest inventory
};

TEST_F(KubernetesNamespacesTest, RunsOfEachSucceedThereWithTheirLogs) {
  TestRun home = NewRun(ScriptSpec("echo at home"));
  TestRun pair = NewRun(In(team_, ScriptSpec("echo rank $NODE_RANK")));
  auto two = std::make_shared<agent::v1::Assignment>(*pair.handle.assignment);
  two->mutable_spec()->set_nodes(2);
  pair.handle.assignment = two;
  v1::JobSpec by_pool = ScriptSpec("echo by pool; exit 3");
  by_pool.mutable_placement()->set_pool(team_);
  TestRun pooled = NewRun(by_pool);
  for (TestRun* run : {&home, &pair, &pooled}) Launch(backend(), run);
  EXPECT_EQ(home.handle.external_id, name_space_ + "/" + home.handle.run_key);
  EXPECT_EQ(pooled.handle.external_id, team_ + "/" + pooled.handle.run_key);
  EXPECT_EQ(backend().Lookup(pair.handle).kind, Found::kFound);
  ObserveToEnd(backend(), {&home, &pair, &pooled});
  EXPECT_EQ(home.handle.state, v1::RUN_STATE_SUCCEEDED) << home.last.evidence.DebugString();
  EXPECT_EQ(pair.handle.state, v1::RUN_STATE_SUCCEEDED) << pair.last.evidence.DebugString();
  EXPECT_EQ(pooled.handle.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(Output(backend(), home), "at home\n");
  EXPECT_EQ(Output(backend(), pair, 1), "rank 1\n");
  EXPECT_EQ(Output(backend(), pooled), "by pool\n");
  JobIn(name_space_, home);
  JobIn(team_, pair);
}

TEST_F(KubernetesNamespacesTest, CancelAndCleanUpGoWhereTheRunIs) {
  v1::JobSpec spec = ScriptSpec("echo up; sleep 300");
  spec.mutable_kubernetes()->mutable_termination_grace()->set_seconds(1);
  TestRun running = NewRun(In(team_, spec));
  v1::JobSpec brief = ScriptSpec("true");
  brief.mutable_kubernetes()->mutable_time_to_live()->set_seconds(0);
  TestRun ended = NewRun(In(team_, brief));
  Launch(backend(), &running);
  Launch(backend(), &ended);
  ObserveToEnd(backend(), {&ended});
  ObserveUntil(backend(), {&running}, v1::RUN_STATE_RUNNING);
  EXPECT_TRUE(EndOne(backend(), running.handle).ok());
  ObserveToEnd(backend(), {&running});
  EXPECT_EQ(running.handle.state, v1::RUN_STATE_CANCELED) << running.last.evidence.DebugString();
  EXPECT_TRUE(ForgetOne(backend(), ended.handle).ok());
  for (const std::string kind : {"jobs", "pods", "secrets"}) {
    const std::string path = (kind == "jobs" ? "/apis/batch/v1" : "/api/v1") +
                             ("/namespaces/" + team_) + "/" + kind +
                             "?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dmuster";
    WaitFor("nothing is left of " + kind,
            [&] { return cluster_.MustDo("GET", path)["items"].empty(); });
  }
}

TEST_F(KubernetesNamespacesTest, AnAgentThatIsStartedAnewGoesOnEvenIfItsSettingsHaveChanged) {
  const std::string script = fmt::format("echo one; {}; echo two", kAwaitGate);
  TestRun home = NewRun(WithGate(ScriptSpec(script)));
  TestRun other = NewRun(WithGate(In(team_, ScriptSpec(script))));
  for (TestRun* run : {&home, &other}) {
    Launch(backend(), run);
    WaitFor("the first line", [&] {
      EXPECT_TRUE(ObserveOnce(backend(), {run}).ok());
      return Output(backend(), *run) == "one\n";
    });
  }
  // One is not in the list any more, and the other is not where runs are that name no namespace.
  KubernetesConfig changed = Config();
  changed.name_space = shut_;
  Start(changed, {home.handle, other.handle});
  OpenGate();
  ObserveToEnd(backend(), {&home, &other});
  for (const TestRun* run : {&home, &other}) {
    EXPECT_EQ(run->handle.state, v1::RUN_STATE_SUCCEEDED) << run->last.evidence.DebugString();
    EXPECT_EQ(Output(backend(), *run), "one\ntwo\n");
  }
}

TEST_F(KubernetesNamespacesTest, ALaunchOfWhichNobodyKnowsIsFoundAlsoAfterTheDefaultHasChanged) {
  TestRun run = NewRun(WithGate(ScriptSpec(kAwaitGate)));
  Launch(backend(), &run);
  run.handle.external_id.clear();
  KubernetesConfig changed = Config();
  changed.name_space = team_;
  changed.namespaces = {name_space_};
  Start(changed, {run.handle});
  const agents::LookupOutcome outcome = backend().Lookup(run.handle);
  EXPECT_EQ(outcome.kind, agents::LookupOutcome::Kind::kFound) << outcome.evidence.DebugString();
  run.handle.external_id = outcome.external_id;
  OpenGate();
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
}

TEST_F(KubernetesNamespacesTest, ARunThatWaitsStartsWhereItIsAlsoAfterTheSettingsHaveChanged) {
  TestRun run = NewRun(ScriptSpec("echo released"));
  Hold(&run);
  Launch(backend(), &run);
  KubernetesConfig changed = Both();
  changed.name_space = team_;
  Start(changed, {run.handle});
  run.handle.held = false;
  WaitFor("the hold is taken away", [&] { return HoldOne(backend(), run.handle, false).ok(); });
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  JobIn(name_space_, run);
}

TEST_F(KubernetesNamespacesTest, AQuotaBlocksTheRunsOfItsNamespaceAlone) {
  SetQuota(team_, {{"requests.nvidia.com/gpu", "8"}});
  TestRun first = NewRun(WithGate(In(team_, GpuSpec(kAwaitGate, 1, 8))));
  Launch(backend(), &first);
  ObserveUntil(backend(), {&first}, v1::RUN_STATE_RUNNING);
  TestRun blocked = NewRun(In(team_, GpuSpec("echo at last", 1, 8)));
  Launch(backend(), &blocked);
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&blocked}).ok());
    return blocked.last.reason.message().find("quota small: 8 of 8 requests.nvidia.com/gpu used") !=
           std::string::npos;
  });
  // The other node has room, which the one that is blocked does not keep.
  TestRun home = RunToEnd(GpuSpec("echo passed", 1, 8));
  EXPECT_EQ(home.handle.state, v1::RUN_STATE_SUCCEEDED) << home.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), home), "passed\n");
  OpenGate();
  ObserveToEnd(backend(), {&first, &blocked});
  EXPECT_EQ(blocked.handle.state, v1::RUN_STATE_SUCCEEDED) << blocked.last.evidence.DebugString();
}

TEST_F(KubernetesNamespacesTest, OneThatIsNotAmongThemIsRefusedByName) {
  const TestRun run = NewRun(In("elsewhere", ScriptSpec("true")));
  const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(),
              HasSubstr(fmt::format("kubernetes.namespace is \"elsewhere\"; the agent of this "
                                    "cluster works in {}, {}: choose one of these",
                                    name_space_, team_)));
  EXPECT_TRUE(EndOne(backend(), run.handle).ok()) << "it is nowhere";
  EXPECT_TRUE(ForgetOne(backend(), run.handle).ok());

  v1::JobSpec by_pool = ScriptSpec("true");
  by_pool.mutable_placement()->set_pool("elsewhere");
  EXPECT_THAT(LaunchOne(backend(), *NewRun(by_pool).handle.assignment).failure.message(),
              HasSubstr("pool is \"elsewhere\""));
}

TEST_F(KubernetesNamespacesTest, AForbiddenOneSaysWhyAndTheOthersGoOn) {
  KubernetesConfig config = Both();
  config.namespaces.push_back(shut_);
  Start(config);
  EXPECT_EQ(PoolOf(shut_).state(), "forbidden");
  EXPECT_THAT(issues_, Contains(HasSubstr("namespace " + shut_ + " is forbidden: ")));
  EXPECT_THAT(issues_, Contains(HasSubstr("cannot list resource \"jobs\"")));
  EXPECT_EQ(PoolOf(team_).state(), "");
  EXPECT_EQ(PoolOf(name_space_).state(), "");
  const auto checks = backend().Check();
  const auto line = [&](const std::string& subject) {
    for (const v1::ClusterCheck& check : checks.checks()) {
      if (check.subject() == subject) return check.result();
    }
    return v1::CHECK_RESULT_UNSPECIFIED;
  };
  EXPECT_EQ(line("rights to jobs in namespace " + shut_), v1::CHECK_RESULT_FAIL);
  EXPECT_EQ(line("a Job in namespace " + shut_), v1::CHECK_RESULT_FAIL);
  EXPECT_EQ(line("rights to jobs in namespace " + team_), v1::CHECK_RESULT_OK);
  EXPECT_EQ(line("a Job in namespace " + team_), v1::CHECK_RESULT_OK);

  const TestRun refused = NewRun(In(shut_, ScriptSpec("true")));
  EXPECT_EQ(LaunchOne(backend(), *refused.handle.assignment).kind, Kind::kDeferred) << "it waits";
  const TestRun run = RunToEnd(In(team_, ScriptSpec("echo well")));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run), "well\n");

  LeastRightsToken(cluster_, shut_);
  WaitFor("it is well", [&] { return PoolOf(shut_).state().empty(); });
}

}  // namespace
}  // namespace muster::kubernetes
