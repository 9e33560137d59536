// Tests the machines backend's answers to people, and runs that are held.
#include "agents/machines/answers.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/unit/agents/one_run.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AnswersTest : public BackendTest {
 protected:
  // Starts a run that has the whole machine until its gate opens.
  std::string Block(const std::string& gate) {
    v1::JobSpec spec = Script("cat " + gate);
    spec.mutable_resources()->set_cpu_millis(2000);
    const std::string run_key = Submit(spec);
    AwaitState(run_key, v1::RUN_STATE_RUNNING);
    return run_key;
  }
  const v1::ClusterCheck& Line(const v1::ClusterChecks& checks, const std::string& subject) {
    for (const v1::ClusterCheck& check : checks.checks()) {
      if (check.subject().find(subject) != std::string::npos) return check;
    }
    ADD_FAILURE() << "no line about " << subject << " in " << checks.DebugString();
    return v1::ClusterCheck::default_instance();
  }
};

TEST_F(AnswersTest, APreflightOfAGoodMachineHasNoFailure) {
  const v1::ClusterChecks checks = backend_->Check();
  for (const v1::ClusterCheck& check : checks.checks()) {
    EXPECT_NE(check.result(), v1::CHECK_RESULT_FAIL) << check.DebugString();
    EXPECT_THAT(check.seen(), Not(IsEmpty()));
  }
}

TEST_F(AnswersTest, EachLineOfAPreflightAndOfAPlanHasACode) {
  v1::JobSpec spec = Program({"true"});
  spec.add_inputs()->set_uri("file://" + (dir_ / "data"));
  const auto plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const v1::ClusterChecks checks = backend_->Check();
  const v1::JobPlan refused = PlanRefusal("it is not");
  std::set<v1::CheckCode> codes;
  for (const auto* lines : {&checks.checks(), &plan->checks(), &refused.checks()}) {
    for (const v1::ClusterCheck& check : *lines) {
      EXPECT_NE(check.code(), v1::CHECK_CODE_UNSPECIFIED) << check.DebugString();
      codes.insert(check.code());
    }
  }
  EXPECT_GT(codes.size(), 4u) << "they say what was looked at";
}

TEST_F(AnswersTest, AMachineTellsWhatItHasBeforeItTakesOverRuns) {
  std::filesystem::create_directory(dir_ / "new");
  const auto backend = CreateMachinesBackend(config_, dir_ / "new");
  ASSERT_TRUE(backend.ok()) << backend.status();
  const absl::StatusOr<v1::Inventory> inventory = (*backend)->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  ASSERT_EQ(inventory->pools(0).node_groups_size(), 1);
  EXPECT_EQ(inventory->pools(0).node_groups(0).cpus(), 2u);
}

TEST_F(AnswersTest, ADirectoryThatIsNoneFailsThePreflightAndSkipsItsDisk) {
  std::filesystem::remove_all(dir_ / "runs");
  const v1::ClusterChecks checks = backend_->Check();
  EXPECT_EQ(Line(checks, "directory of runs").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(Line(checks, "directory of runs").remedy(), HasSubstr("--state-dir"));
  EXPECT_EQ(Line(checks, "disk space").result(), v1::CHECK_RESULT_SKIPPED);
}

TEST_F(AnswersTest, ADescriptionCountsWhatRunsHaveAndWhoWaits) {
  const std::string gate = Gate("gate");
  const std::string blocker = Block(gate);
  const std::string waiting = Submit(Program({"true"}));
  AwaitReason(waiting, "waiting for");
  const auto details = backend_->Describe(true);
  ASSERT_TRUE(details.ok()) << details.status();
  EXPECT_EQ(details->nodes(0).condition(), v1::NODE_CONDITION_READY);
  EXPECT_EQ(details->nodes(0).cpus(), 2u);
  EXPECT_EQ(details->nodes(0).used_cpus(), 2u);
  EXPECT_EQ(details->pools(0).free_cpus(), 0u);
  EXPECT_EQ(details->pools(0).running_jobs(), 1u);
  EXPECT_EQ(details->pools(0).waiting_jobs(), 1u);
  Open(gate);
  AwaitEnd(waiting);
}

TEST_F(AnswersTest, APlanShowsTheCommandAndLeavesNothing) {
  const auto plan = backend_->Plan(Script("echo planned"), "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->submission(), HasSubstr("echo planned"));
  EXPECT_TRUE(plan->has_estimated_start_time()) << "the machine is free";
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "runs"));
}

TEST_F(AnswersTest, APlanOfWhatTheMachineNeverHasIsAFailedCheck) {
  v1::JobSpec spec = Program({"true"});
  spec.mutable_resources()->set_cpu_millis(1'000'000);
  const auto plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(plan->checks(0).seen(), HasSubstr("1000 cores were asked for"));
  EXPECT_FALSE(plan->has_estimated_start_time());
}

TEST_F(AnswersTest, APlanLooksAtInputsAndRefusesWhatItsLaunchWouldRefuse) {
  v1::JobSpec spec = Program({"true"});
  spec.add_inputs()->set_uri("file://" + (dir_ / "data"));
  const auto missing = backend_->Plan(spec, "ada");
  ASSERT_TRUE(missing.ok()) << missing.status();
  const v1::ClusterCheck& line = *missing->checks().rbegin();
  EXPECT_EQ(line.result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(line.seen(), HasSubstr("inputs[0].uri"));
  std::ofstream(dir_ / "data") << "x";
  EXPECT_EQ(backend_->Plan(spec, "ada")->checks().rbegin()->result(), v1::CHECK_RESULT_OK);

  spec.set_results_directory("relative");
  const auto refused = backend_->Plan(spec, "ada");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(refused->checks(0).seen(), HasSubstr("results_directory"));
}

TEST_F(AnswersTest, AHeldRunStartsWhenItIsReleasedAndBlocksNobody) {
  const std::string gate = Gate("gate");
  Block(gate);
  const std::string held = Submit(Script("echo ran"));
  const std::string other = Submit(Program({"true"}));
  ASSERT_TRUE(HoldOne(*backend_, handles_[held], true).ok());
  AwaitReason(held, "held: it starts once it is released");
  Open(gate);
  EXPECT_EQ(AwaitEnd(other).state, v1::RUN_STATE_SUCCEEDED);
  AwaitState(held, v1::RUN_STATE_PENDING);
  ASSERT_TRUE(HoldOne(*backend_, handles_[held], false).ok());
  EXPECT_EQ(AwaitEnd(held).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(AnswersTest, AHeldAssignmentStaysHeldOverARestartAndCanBeCanceled) {
  agent::v1::Assignment assignment;
  assignment.set_run_key(RunKeyOf(900));
  assignment.set_held(true);
  *assignment.mutable_spec() = Script("echo ran");
  ASSERT_EQ(LaunchOne(*backend_, assignment).kind, agents::LaunchOutcome::Kind::kLaunched);
  agents::RunHandle& handle = handles_[assignment.run_key()];
  handle.run_key = assignment.run_key();
  handle.state = v1::RUN_STATE_PENDING;
  handle.held = true;
  AwaitReason(handle.run_key, "held");
  StartBackend();
  AwaitReason(handle.run_key, "held");
  Cancel(handle.run_key);
  EXPECT_EQ(AwaitEnd(handle.run_key).state, v1::RUN_STATE_CANCELED);
}

TEST_F(AnswersTest, AHoldOfARunThatHasBegunOrIsNotThereChangesNothing) {
  const std::string gate = Gate("gate");
  const std::string running = Block(gate);
  EXPECT_TRUE(HoldOne(*backend_, handles_[running], true).ok());
  agents::RunHandle unknown;
  unknown.run_key = RunKeyOf(901);
  EXPECT_TRUE(HoldOne(*backend_, unknown, true).ok());
  Open(gate);
  EXPECT_EQ(AwaitEnd(running).state, v1::RUN_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace muster::machines
