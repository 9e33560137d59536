#include "tests/integration/backend/contract.h"

#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/unit/agents/one_run.h"

namespace muster::driver {
namespace {

using ::testing::HasSubstr;
using Launched = agents::LaunchOutcome::Kind;
using Found = agents::LookupOutcome::Kind;
using Proof = agents::FenceOutcome::Kind;

// Text that shells, batch scripts and manifests would rewrite.
constexpr char kEvil[] =
    "a b\n'\"$(touch /tmp/muster-canary)`id`\\ $$ $(HOME) $$(HOME) %s #SBATCH "
    "--wrap\t*;&|<>\x7f\xc3"
    "\xa9";
constexpr char kHearsTerm[] =
    "exec 2>/dev/null; trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.1; done";

v1::JobSpec ProgramSpec(const std::vector<std::string>& words) {
  v1::JobSpec spec = ScriptSpec("");
  for (const std::string& word : words) spec.mutable_command()->mutable_argv()->add_args(word);
  return spec;
}

}  // namespace

TestRun BackendContractTest::RunToEnd(v1::JobSpec spec) {
  TestRun run = NewRun(std::move(spec));
  Launch(backend(), &run);
  if (!HasFatalFailure()) ObserveToEnd(backend(), {&run});
  return run;
}

TestRun BackendContractTest::RunUntil(v1::JobSpec spec, const std::string& output) {
  TestRun run = NewRun(std::move(spec));
  Launch(backend(), &run);
  if (HasFatalFailure()) return run;
  ObserveUntil(backend(), {&run}, v1::RUN_STATE_RUNNING);
  WaitFor(output, [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return Output(backend(), run) == output;
  });
  return run;
}

void BackendContractTest::ProveItsEnd(const TestRun& run) {
  agents::FenceOutcome fence;
  WaitFor("a proof", [&] {
    fence = backend().Fence(run.handle);
    EXPECT_NE(fence.kind, Proof::kImpossible) << fence.evidence.DebugString();
    return fence.kind != Proof::kNotYet;
  });
  EXPECT_FALSE(fence.evidence.detail().empty());
}

TEST_P(BackendContractTest, ACommandThatEndsWithZeroSucceeds) {
  const TestRun run = RunToEnd(ScriptSpec("echo hello"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_FALSE(run.handle.external_id.empty());
  EXPECT_FALSE(run.last.evidence.detail().empty());
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 0);
  EXPECT_EQ(run.last.exit->signal(), 0);
  EXPECT_FALSE(run.last.failure.has_value());
  EXPECT_EQ(run.last.nodes.size(), 1u);
  ASSERT_TRUE(run.last.start_time.has_value() && run.last.end_time.has_value());
  EXPECT_LE(*run.last.start_time, *run.last.end_time);
  EXPECT_EQ(Output(backend(), run), "hello\n");
}

TEST_P(BackendContractTest, AnExitCodeIsTheCommandsOwn) {
  const TestRun run = RunToEnd(ScriptSpec("printf 'no newline'; exit 3"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 3);
  EXPECT_EQ(run.last.exit->signal(), 0);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(run.last.failure->code(), v1::FAILURE_CODE_COMMAND_FAILED);
  EXPECT_EQ(run.last.failure->exit().code(), 3);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("exit code 3"));
  EXPECT_EQ(Output(backend(), run), "no newline");
}

TEST_P(BackendContractTest, ADeathBySignalIsNoExitCode) {
  const TestRun run = RunToEnd(ScriptSpec("kill -SEGV $$"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->signal(), 11);
  EXPECT_EQ(run.last.exit->code(), 0);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(run.last.failure->code(), v1::FAILURE_CODE_COMMAND_SIGNALED);
}

TEST_P(BackendContractTest, ArgumentsAndVariablesArriveAsTheyAre) {
  const std::string id = "$(MUSTER_JOB_ID)";
  const TestRun words = RunToEnd(ProgramSpec({"/usr/bin/printf", "[%s]", kEvil, "", id}));
  EXPECT_EQ(Output(backend(), words), std::string("[") + kEvil + "][][" + id + "]");
  v1::JobSpec spec = ScriptSpec("printf '[%s]' \"$EVIL\"");
  (*spec.mutable_env())["EVIL"] = kEvil;
  EXPECT_EQ(Output(backend(), RunToEnd(spec)), std::string("[") + kEvil + "]");
}

TEST_P(BackendContractTest, ASetupScriptRunsFirst) {
  v1::JobSpec spec = ScriptSpec("cat made-by-setup");
  spec.set_setup("#!/bin/bash\nset -o pipefail\necho ready >made-by-setup");
  EXPECT_EQ(Output(backend(), RunToEnd(spec)), "ready\n");
}

TEST_P(BackendContractTest, ASetupScriptThatFailsIsAFailureOfTheConfiguration) {
  v1::JobSpec spec = ScriptSpec("echo never");
  spec.set_setup("exit 7");
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(run.last.failure->code(), v1::FAILURE_CODE_SETUP_FAILED);
  EXPECT_EQ(run.last.failure->exit().code(), 7);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("exit code 7"));
  EXPECT_FALSE(run.last.exit.has_value()) << "what never ran has no exit status";
  EXPECT_EQ(Output(backend(), run), "");
}

TEST_P(BackendContractTest, WhatCannotBeStartedIsAFailureOfTheConfiguration) {
  for (const char* program : {"no-such-program", "/etc/passwd"}) {
    const TestRun run = RunToEnd(ProgramSpec({program}));
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
    ASSERT_TRUE(run.last.failure.has_value());
    EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
    EXPECT_EQ(run.last.failure->code(), v1::FAILURE_CODE_PROGRAM_NOT_STARTED);
    EXPECT_EQ(run.last.failure->subject(), program);
    EXPECT_THAT(run.last.failure->message(), HasSubstr(program));
    EXPECT_FALSE(run.last.failure->remedy().empty());
    EXPECT_FALSE(run.last.exit.has_value()) << "what never ran has no exit status";
  }
}

TEST_P(BackendContractTest, ItsOutputIsThereToTheByte) {
  const TestRun run = RunToEnd(ProgramSpec(
      {"python3", "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"}));
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  const std::string output = Output(backend(), run);
  ASSERT_EQ(output.size(), 256'000u);
  for (size_t at = 0; at < output.size(); at += 256) ASSERT_EQ(output.substr(at, 256), every_byte);
}

TEST_P(BackendContractTest, WhatCouldNeverRunIsRefusedAndIsNotThere) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_resources()->add_gpus()->set_count_millis(1'000'000);
  const TestRun run = NewRun(spec);
  const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Launched::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_FALSE(outcome.failure.message().empty());
  EXPECT_EQ(backend().Lookup(run.handle).kind, Found::kAbsent);
}

TEST_P(BackendContractTest, ASecondLaunchFindsTheFirst) {
  TestRun run = NewRun(ScriptSpec("echo once"));
  EXPECT_EQ(backend().Lookup(run.handle).kind, Found::kAbsent);
  Launch(backend(), &run);
  const agents::LookupOutcome found = LookUp(backend(), run);
  EXPECT_EQ(found.kind, Found::kFound) << found.evidence.DebugString();
  EXPECT_EQ(found.external_id, run.handle.external_id);
  const agents::LaunchOutcome again = LaunchAgain(backend(), run);
  EXPECT_EQ(again.kind, Launched::kLaunched) << again.evidence.DebugString();
  EXPECT_EQ(again.external_id, run.handle.external_id);
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(Output(backend(), run), "once\n");
}

TEST_P(BackendContractTest, ARunIsFoundAndHasItsEndAfterARestart) {
  TestRun run = NewRun(ScriptSpec("echo once; exit 4"));
  Launch(backend(), &run);
  run.handle.state = v1::RUN_STATE_PENDING;  // as the agent's journal has it then
  place_->Restart({run.handle});
  EXPECT_EQ(LookUp(backend(), run).kind, Found::kFound);
  EXPECT_EQ(LaunchAgain(backend(), run).kind, Launched::kLaunched);
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 4);
  EXPECT_EQ(Output(backend(), run), "once\n");
}

TEST_P(BackendContractTest, ARunThatGoesOnOverARestartIsCanceledAndKeepsItsLastWords) {
  TestRun run = RunUntil(ScriptSpec(kHearsTerm), "ready\n");
  place_->Restart({run.handle});
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED) << run.last.evidence.DebugString();
  EXPECT_THAT(Output(backend(), run), place_->OutputOfCanceled("ready\nbye\n"));
}

TEST_P(BackendContractTest, AnExitWithZeroAfterACancelIsACancelHoweverOftenItIsAskedFor) {
  TestRun run = RunUntil(ScriptSpec(kHearsTerm), "ready\n");
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED) << run.last.evidence.DebugString();
  EXPECT_THAT(Output(backend(), run), place_->OutputOfCanceled("ready\nbye\n"));
  EXPECT_TRUE(EndOne(backend(), run.handle).ok()) << "a run that has ended counts as canceled";
}

// Each cancel comes a little later after its launch than the one before, so that they meet the runs
// in the queue, in their start and before their first record.
TEST_P(BackendContractTest, ACancelThatMeetsARunInTheMidstOfItsStartIsACancel) {
  constexpr int kRuns = 16;
  std::vector<TestRun> runs;
  for (int i = 0; i < kRuns; ++i) {
    TestRun& run = runs.emplace_back(NewRun(ScriptSpec("exec sleep 99")));
    Launch(backend(), &run);
    ASSERT_FALSE(HasFatalFailure());
    absl::SleepFor(i * absl::Microseconds(300));
    run.handle.cancel_requested = true;  // as the agent's journal has it before it asks
    EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  }
  std::vector<TestRun*> all;
  for (TestRun& run : runs) all.push_back(&run);
  ObserveToEnd(backend(), all);
  for (const TestRun& run : runs) {
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED) << run.last.evidence.DebugString();
  }
}

TEST_P(BackendContractTest, WhatIsNotThereIsAbsentAndCountsAsCanceled) {
  const TestRun run = NewRun(ScriptSpec("true"));
  EXPECT_EQ(backend().Lookup(run.handle).kind, Found::kAbsent);
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  EXPECT_TRUE(HoldOne(backend(), run.handle, true).ok());
  const agents::FenceOutcome fence = backend().Fence(run.handle);
  EXPECT_NE(fence.kind, Proof::kImpossible);
  EXPECT_FALSE(fence.evidence.detail().empty());
  EXPECT_TRUE(ForgetOne(backend(), run.handle).ok());
}

TEST_P(BackendContractTest, ARunThatLivesIsNotFencedAndGoesOn) {
  TestRun run = RunUntil(ScriptSpec(kHearsTerm), "ready\n");
  const agents::FenceOutcome fence = backend().Fence(run.handle);
  EXPECT_EQ(fence.kind, Proof::kNotYet) << fence.evidence.DebugString();
  EXPECT_FALSE(fence.evidence.detail().empty());
  EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_RUNNING);
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  ObserveToEnd(backend(), {&run});
  ProveItsEnd(run);
}

TEST_P(BackendContractTest, TheEndOfARunIsProvedAlsoAfterARestart) {
  TestRun run = RunToEnd(ScriptSpec("exit 3"));
  ProveItsEnd(run);
  run.handle.state = v1::RUN_STATE_RUNNING;  // the agent died before its journal had the end
  place_->Restart({run.handle});
  ProveItsEnd(run);
  EXPECT_EQ(backend().Fence(run.handle).kind, Proof::kEnded) << "its end is never a cancel's";
}

TEST_P(BackendContractTest, ARunThatWaitedAndWasCanceledIsProvedNeverToBegin) {
  TestRun run = NewRun(ScriptSpec("echo never"));
  Hold(&run);
  Launch(backend(), &run);
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  ObserveToEnd(backend(), {&run});
  ProveItsEnd(run);
  EXPECT_FALSE(run.last.start_time.has_value());
}

TEST_P(BackendContractTest, AHeldRunStartsOnceItIsReleased) {
  TestRun run = NewRun(ScriptSpec("echo released"));
  Hold(&run);
  Launch(backend(), &run);
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return !run.last.reason.message().empty();
  });
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING);
  run.handle.held = false;
  EXPECT_TRUE(HoldOne(backend(), run.handle, false).ok());
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run), "released\n");
}

TEST_P(BackendContractTest, ARunThatWaitsIsCanceledAndNeverBegins) {
  TestRun run = NewRun(ScriptSpec("echo never"));
  Hold(&run);
  Launch(backend(), &run);
  ObserveUntil(backend(), {&run}, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED) << run.last.evidence.DebugString();
  EXPECT_FALSE(run.last.start_time.has_value());
}

TEST_P(BackendContractTest, ForgettingLeavesNothingAndMayBeRepeated) {
  v1::JobSpec spec = ScriptSpec("true");
  place_->LeaveNothing(&spec);
  const TestRun run = RunToEnd(spec);
  EXPECT_FALSE(place_->IsGone(run));
  EXPECT_TRUE(ForgetOne(backend(), run.handle).ok());
  EXPECT_TRUE(ForgetOne(backend(), run.handle).ok());
  WaitFor("nothing is left", [&] { return place_->IsGone(run); });
}

TEST_P(GangContractTest, EachNodeHasItsRankAndItsLogs) {
  v1::JobSpec spec = ScriptSpec("echo $NODE_RANK of $WORLD_SIZE; echo error $NODE_RANK >&2");
  spec.set_nodes(2);
  spec.set_setup("echo setup $NODE_RANK");
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(run.last.nodes.size(), 2u);
  EXPECT_THAT(Output(backend(), run, 0), HasSubstr("setup 0\n"));
  EXPECT_THAT(Output(backend(), run, 0), HasSubstr("0 of 2\n"));
  EXPECT_THAT(Output(backend(), run, 1), HasSubstr("setup 1\n"));
  EXPECT_THAT(Output(backend(), run, 1), HasSubstr("1 of 2\n"));
  std::set<std::string> files;
  for (const agents::LogSource& source : backend().OpenLogs(run.handle).logs)
    files.insert(source.path);
  EXPECT_EQ(files.size(), 4u) << "one for each rank and stream";
}

TEST_P(GangContractTest, TheRankThatFailsFirstCountsAndEndsTheOthers) {
  v1::JobSpec spec = ScriptSpec("if [ $NODE_RANK = 1 ]; then exit 5; fi; exec sleep 300");
  spec.set_nodes(2);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 5);
  EXPECT_EQ(run.last.exit->rank(), 1u);
}

}  // namespace muster::driver
