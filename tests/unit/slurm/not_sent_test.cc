// Submissions that get no turn among the calls that are allowed.
#include <filesystem>
#include <memory>
#include <string>

#include "agents/slurm/call_gate.h"
#include "agents/slurm/outcomes.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "agents/slurm/submit.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using Kind = agents::LaunchOutcome::Kind;
using ::testing::ElementsAre;
using ::testing::Pair;

class NotSentTest : public StubCommandsTest {
 protected:
  NotSentTest() {
    AddCommand("sbatch", "echo 17");
    SlurmConfig config = Config();
    // One call, and none for a minute.
    config.max_scheduler_calls_per_minute = 1;
    config.submit_patience = absl::Milliseconds(1);
    backend_ = CreateSlurmBackend(config, root_);
  }

  agents::LaunchOutcome Launch(int job) {
    agent::v1::Assignment assignment;
    assignment.set_run_key(fmt::format("k7m2-{}-1", job));
    assignment.mutable_spec()->mutable_command()->set_script("true");
    return LaunchOne(*backend_, assignment);
  }

  std::unique_ptr<agents::Backend> backend_;
};

TEST_F(NotSentTest, ASubmissionWithoutATurnIsNotInDoubtAndNotLookedUp) {
  ASSERT_EQ(Launch(1).kind, Kind::kLaunched);
  for (int i = 0; i < 2; ++i) {
    const agents::LaunchOutcome outcome = Launch(2);
    EXPECT_EQ(outcome.kind, Kind::kDeferred) << outcome.evidence.detail();
    EXPECT_THAT(outcome.evidence.detail(), ::testing::HasSubstr("had no turn"));
    EXPECT_EQ(outcome.external_id, "");
  }
  EXPECT_THAT(backend_->SchedulerCalls(), ElementsAre(Pair("sbatch", 1)));
}

TEST_F(NotSentTest, AnSbatchThatIsNotThereIsTriedAgainAfterAPause) {
  std::filesystem::remove(root_ + "/sbatch");
  const agents::LaunchOutcome outcome = Launch(1);
  EXPECT_EQ(outcome.kind, Kind::kDeferred) << outcome.evidence.detail();
  EXPECT_EQ(outcome.retry_after, kRetryAfter);
}

TEST(DeferredTest, OnlyALaunchThatHasWaitedForItsTurnIsRepeatedAtOnce) {
  CallGate gate({.calls = 1}, absl::Milliseconds(1));
  ASSERT_TRUE(gate.Enter("sbatch", CallKind::kSubmit).ok());
  EXPECT_EQ(Deferred(gate.Enter("sbatch", CallKind::kSubmit)).retry_after, absl::ZeroDuration());
  EXPECT_EQ(Deferred(absl::UnavailableError("the host is away")).retry_after, kRetryAfter);
}

TEST(CallGateTest, ThoseThatSomebodyWaitsForAreNoPolls) {
  CallGate gate({.polls = 1}, absl::Milliseconds(1));
  ASSERT_TRUE(gate.Enter("squeue", CallKind::kObserve).ok());
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(gate.Enter("sbatch", CallKind::kSubmit).ok());
    EXPECT_TRUE(gate.Enter("scancel", CallKind::kEnd).ok());
  }
  EXPECT_GT(gate.ObserveInterval(absl::ZeroDuration()), absl::ZeroDuration()) << "none is left";
}

TEST(CallGateTest, ACallWithoutATurnNamesTheLimitThatKeptItFromGoing) {
  CallGate gate({.polls = 100, .calls = 1}, absl::Milliseconds(1));
  ASSERT_TRUE(gate.Enter("sbatch", CallKind::kSubmit).ok());
  const absl::Status status = gate.Enter("sbatch", CallKind::kSubmit);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("slurm.max_scheduler_calls_per_minute (1)"));
  ASSERT_EQ(gate.Issues().size(), 1u);
  EXPECT_EQ(gate.Issues().front().subject(), "slurm.max_scheduler_calls_per_minute");
}

TEST(CallGateTest, APollTakesATurnAmongAllCallsToo) {
  CallGate gate({.polls = 100, .calls = 4}, absl::Milliseconds(1));
  ASSERT_TRUE(gate.Enter("squeue", CallKind::kObserve).ok());
  EXPECT_FALSE(gate.Enter("sbatch", CallKind::kSubmit).ok()) << "a quarter of four was there";
}

TEST(NoAnswerTest, OnlyTheGatesOwnErrorMeansThatNobodyWasAsked) {
  EXPECT_EQ(NoAnswer(absl::UnavailableError("the connection broke")).kind, Kind::kUnclear);
  EXPECT_EQ(ClassifySubmit(absl::DeadlineExceededError("no answer")).kind, Kind::kUnclear);
}

}  // namespace
}  // namespace muster::slurm
