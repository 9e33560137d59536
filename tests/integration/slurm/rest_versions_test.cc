// A slurmrestd that serves only an older version of its API.
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

class SlurmRestVersionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TestCluster("--nodes 1 --gpus 2");
    ASSERT_TRUE(cluster_->is_over_rest()) << "MUSTER_TEST_OVER_REST=1 is for these";
    cluster_->Control("stop", "slurmrestd");
  }
  static void TearDownTestSuite() { delete cluster_; }
  void TearDown() override {
    Root().Run(fmt::format("kill {}", pid_));
    WaitFor("the end of slurmrestd", [&] { return !Answers(); });
  }

  // On the address of the cluster's own.
  void StartRestd(const std::string& plugins) {
    const std::string url = cluster_->Config().rest_url;
    pid_ = Root()
               .Run(fmt::format("SLURM_CONF={} SLURM_JWT=daemon setsid setpriv --reuid nobody "
                                "--regid nogroup --clear-groups slurmrestd -a rest_auth/jwt -s {} "
                                "{} >/dev/null 2>&1 </dev/null & printf %s $!",
                                cluster_->Config().slurm_conf, plugins,
                                url.substr(url.rfind('/') + 1)))
               .output;
    WaitFor("slurmrestd", [&] { return Answers(); });
  }
  static bool Answers() { return Root().Run("curl -s " + cluster_->Config().rest_url).status == 0; }

  static TestCluster* cluster_;
  std::string pid_;
};

TestCluster* SlurmRestVersionTest::cluster_ = nullptr;

TEST_F(SlurmRestVersionTest, RunsArraysAndAnswersAreTheSameInV37) {
  StartRestd("v0.0.36,dbv0.0.36,v0.0.37,dbv0.0.37");
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend();
  const v1::ClusterChecks checks = backend->Check();
  EXPECT_THAT(checks.DebugString(), HasSubstr("v0.0.37 is spoken"));
  EXPECT_THAT(checks.DebugString(), HasSubstr("account test"));
  const auto details = backend->Describe(/*with_jobs=*/true);
  ASSERT_TRUE(details.ok()) << details.status();
  EXPECT_EQ(details->nodes(0).gpus().at("h100"), 2u);
  EXPECT_TRUE(backend->Inventory().ok());

  std::vector<v1::JobSpec> specs;
  for (const char* script : {"echo one; exit 3", "sleep 300", "echo three"}) {
    specs.push_back(ScriptSpec(script));
    specs.back().mutable_time_limit()->set_seconds(300);
  }
  std::vector<TestRun> runs = NewArray(std::move(specs));
  std::vector<std::shared_ptr<const agent::v1::Assignment>> assignments;
  for (const TestRun& run : runs) assignments.push_back(run.handle.assignment);
  const std::vector<agents::LaunchOutcome> outcomes = backend->Launch(assignments);
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSERT_EQ(outcomes[i].kind, agents::LaunchOutcome::Kind::kLaunched)
        << outcomes[i].evidence.DebugString();
    runs[i].handle.external_id = outcomes[i].external_id;
    EXPECT_THAT(outcomes[i].external_id, HasSubstr(fmt::format("_{}", i)));
  }
  ObserveUntil(*backend, {&runs[1]}, v1::RUN_STATE_RUNNING);
  EXPECT_TRUE(EndOne(*backend, runs[1].handle).ok());
  ObserveToEnd(*backend, {&runs[0], &runs[1], &runs[2]});
  EXPECT_EQ(runs[0].last.exit->code(), 3);
  EXPECT_EQ(runs[1].handle.state, v1::RUN_STATE_CANCELED) << runs[1].last.evidence.DebugString();
  EXPECT_EQ(runs[2].handle.state, v1::RUN_STATE_SUCCEEDED);

  v1::JobSpec lost = ScriptSpec("true");
  lost.mutable_slurm()->add_extra_options("--time-min=1");
  const agents::LaunchOutcome refused = LaunchOne(*backend, *NewRun(lost).handle.assignment);
  EXPECT_EQ(refused.kind, agents::LaunchOutcome::Kind::kRefused) << "v0.0.37 has nothing for it";
  EXPECT_THAT(refused.failure.message(), HasSubstr("time_minimum"));
}

TEST_F(SlurmRestVersionTest, AVersionThatIsNotSpokenIsNamedWithThoseThatAre) {
  StartRestd("v0.0.36,dbv0.0.36");
  const absl::Status status =
      CreateSlurmBackend(cluster_->Config(), cluster_->directory())->Probe();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("serves API v0.0.36, and this agent speaks v0.0.38 and v0.0.37"));
}

}  // namespace
}  // namespace muster::slurm
