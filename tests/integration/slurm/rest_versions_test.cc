// Tests a slurmrestd that serves only an older version of its API than the best that it has.
#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
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

  // Starts slurmrestd on the address of the cluster's own.
  void StartRestd(const std::string& options) {
    const std::string url = cluster_->Config().rest_url;
    pid_ = Root()
               .Run(fmt::format("SLURM_CONF={} SLURM_JWT=daemon setsid setpriv --reuid nobody "
                                "--regid nogroup --clear-groups slurmrestd -a rest_auth/jwt {} {} "
                                ">/dev/null 2>&1 </dev/null & printf %s $!",
                                cluster_->Config().slurm_conf, options,
                                url.substr(url.rfind('/') + 1)))
               .output;
    WaitFor("slurmrestd", [&] { return Answers(); });
  }
  static bool Answers() { return Root().Run("curl -s " + cluster_->Config().rest_url).status == 0; }

  void RunsArraysAndAnswers(const std::string& version);
  // Returns what scontrol shows of a held job with that option, less what differs from job to job.
  static std::set<std::string> RecordOf(agents::Backend& backend, const std::string& option);

  static TestCluster* cluster_;
  std::string pid_;
};

// One of each kind of field.
constexpr std::array kOptions = {"--gpus=h100:2",
                                 "--gpus-per-node=1",
                                 "--gpus-per-task=1",
                                 "--gres=gpu:h100:2",
                                 "--gres-flags=disable-binding",
                                 "--gres-flags=enforce-binding",
                                 "--mem-per-cpu=2G",
                                 "--time-min=1:30:30",
                                 "--time-min=90",
                                 "--exclude=n1",
                                 "--oversubscribe",
                                 "--exclusive=user",
                                 "--no-requeue",
                                 "--requeue",
                                 "--kill-on-invalid-dep=yes",
                                 "--kill-on-invalid-dep=no",
                                 "--spread-job",
                                 "--delay-boot=5",
                                 "--deadline=2033-05-18T03:33:20",
                                 "--begin=2033-05-18T03:33:20",
                                 "--nice=7",
                                 "--mincpus=3",

                                 "--cpu-freq=low",
                                 "--ntasks-per-core=1",
                                 "--threads-per-core=1",
                                 "--sockets-per-node=1",
                                 "--wckey=w",
                                 "--profile=task",
                                 "--wait-all-nodes=1",
                                 "--use-min-nodes",
                                 "--acctg-freq=task=1"};
// Each job has its own value of some of these fields; sbatch leaves one open and slurmrestd sets
// it; and in others sbatch repeats what it says of CPUs and GPUs, which ReqTRES shows.
constexpr std::array<std::string_view, 16> kLeftOut = {
    "TresPerTask",  "TresBind",   "OOMKillStep",   "JobId",        "JobName", "SubmitTime",
    "EligibleTime", "AccrueTime", "LastSchedEval", "Command",      "StdErr",  "StdIn",
    "StdOut",       "WorkDir",    "Dependency",    "AllocNode:Sid"};

TestCluster* SlurmRestVersionTest::cluster_ = nullptr;

void SlurmRestVersionTest::RunsArraysAndAnswers(const std::string& version) {
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend();
  const v1::ClusterChecks checks = backend->Check();
  EXPECT_THAT(checks.DebugString(), HasSubstr(version + " is spoken"));
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
}

// Returns the words that only one of them has, in one line.
std::string Differences(const std::set<std::string>& made, const std::set<std::string>& wanted) {
  std::vector<std::string> both;
  std::set_symmetric_difference(made.begin(), made.end(), wanted.begin(), wanted.end(),
                                std::back_inserter(both));
  return fmt::format("{}", fmt::join(both, " "));
}

std::set<std::string> SlurmRestVersionTest::RecordOf(agents::Backend& backend,
                                                     const std::string& option) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_slurm()->add_extra_options(option);
  spec.mutable_time_limit()->set_seconds(3 * 3600);
  TestRun run = NewRun(spec);
  auto held = std::make_shared<agent::v1::Assignment>(*run.handle.assignment);
  held->set_held(true);
  run.handle.assignment = held;
  Launch(backend, &run);
  std::istringstream shown(cluster_->AsRoot("scontrol -o show job " + run.handle.external_id));
  std::set<std::string> record;
  for (std::string word; shown >> word;) {
    const bool differs = std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](std::string_view name) {
      return word.starts_with(fmt::format("{}=", name));
    });
    if (!differs) record.insert(word);
  }
  EXPECT_TRUE(EndOne(backend, run.handle).ok());
  return record;
}

// slurmrestd of Slurm 22.05.
class SlurmOldRestTest : public SlurmRestVersionTest {};
// slurmrestd of Slurm 24.11.
class SlurmTypedRestTest : public SlurmRestVersionTest {};

TEST_F(SlurmOldRestTest, RunsArraysAndAnswersAreTheSameInV37) {
  StartRestd("-s v0.0.36,dbv0.0.36,v0.0.37,dbv0.0.37");
  RunsArraysAndAnswers("v0.0.37");
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend();
  v1::JobSpec lost = ScriptSpec("true");
  lost.mutable_slurm()->add_extra_options("--time-min=1");
  const agents::LaunchOutcome refused = LaunchOne(*backend, *NewRun(lost).handle.assignment);
  EXPECT_EQ(refused.kind, agents::LaunchOutcome::Kind::kRefused) << "v0.0.37 has nothing for it";
  EXPECT_THAT(refused.failure.message(), HasSubstr("time_minimum"));
}

TEST_F(SlurmTypedRestTest, RunsArraysAndAnswersAreTheSameInV40) {
  StartRestd("-d v0.0.40");
  RunsArraysAndAnswers("v0.0.40");
}

TEST_F(SlurmTypedRestTest, RunsArraysAndAnswersAreTheSameInV41) {
  StartRestd("-d v0.0.41");
  RunsArraysAndAnswers("v0.0.41");
}

// sbatch's own record of a job beside the one that slurmrestd makes of the same options.
TEST_F(SlurmTypedRestTest, EachOptionMakesTheJobThatSbatchMakes) {
  SlurmConfig by_command = cluster_->Config();
  by_command.rest_url.clear();
  const std::unique_ptr<agents::Backend> sbatch = cluster_->MakeBackend(by_command);
  std::vector<std::set<std::string>> wanted;
  for (const char* option : kOptions) wanted.push_back(RecordOf(*sbatch, option));
  for (const char* version : {"v0.0.40", "v0.0.41", "v0.0.42"}) {
    StartRestd(fmt::format("-d {}", version));
    const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend();
    for (size_t i = 0; i < kOptions.size(); ++i)
      EXPECT_EQ(Differences(RecordOf(*backend, kOptions[i]), wanted[i]), "")
          << version << " " << kOptions[i];
    if (std::string_view(version) != "v0.0.42") TearDown();
  }
}

TEST_F(SlurmOldRestTest, AVersionThatIsNotSpokenIsNamedWithThoseThatAre) {
  StartRestd("-s v0.0.36,dbv0.0.36");
  const absl::Status status =
      CreateSlurmBackend(cluster_->Config(), cluster_->directory())->Probe();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "serves API v0.0.36, and this agent speaks v0.0.42, v0.0.41, v0.0.40, v0.0.38, v0.0.37"));
}

}  // namespace
}  // namespace muster::slurm
