// The agent dies and comes back in every phase of a run; pids are used again; the machine starts
// anew.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agents/hosts/local_host.h"
#include "agents/machines/run_records.h"
#include "fmt/format.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

class RestartTest : public BackendTest {
 protected:
  // Plants a run with a claim of that process and no exit record, as an earlier agent left it.
  std::string Plant(const ProcessId& owner) {
    const std::string run_key = Submit(Program({"true"}));
    AwaitEnd(run_key);
    StopBackend();
    std::ofstream(RunDir(run_key) + "/claim") << Claim{.owner = owner, .devices = ""}.Encode();
    unlink((RunDir(run_key) + "/exit").c_str());
    unlink((RunDir(run_key) + "/started").c_str());
    handles_[run_key].state = v1::RUN_STATE_RUNNING;
    return run_key;
  }
};

TEST_F(RestartTest, QueuedRunsKeepTheirPlaces) {
  const std::string gate = Gate("gate");
  v1::JobSpec block = Script("cat " + gate);
  block.mutable_resources()->set_cpu_millis(2000);
  const std::string blocker = Submit(block);
  std::vector<std::string> runs;
  std::string expected;
  for (int i = 0; i < 11; ++i) {  // more than 9, so that order by name would show
    v1::JobSpec spec = Script(fmt::format("echo {} >> {}", i, dir_ / "order"));
    spec.mutable_resources()->set_cpu_millis(2000);
    runs.push_back(Submit(spec));
    expected += fmt::format("{}\n", i);
  }
  AwaitState(blocker, v1::RUN_STATE_RUNNING);
  StartBackend();
  const std::string last = Submit(Script(fmt::format("echo last >> {}", dir_ / "order")));
  Open(gate);
  for (const std::string& run_key : runs)
    EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  AwaitEnd(last);
  EXPECT_EQ(ReadAll(dir_ / "order"), expected + "last\n");
}

TEST_F(RestartTest, QueuedRunsKeepTheirPriorities) {
  const std::string gate = Gate("gate");
  v1::JobSpec block = Script("cat " + gate);
  block.mutable_resources()->set_cpu_millis(2000);
  AwaitState(Submit(block), v1::RUN_STATE_RUNNING);
  std::vector<std::string> runs;
  for (const int priority : {0, -1, 7}) {
    v1::JobSpec spec = Script(fmt::format("echo {} >> {}", priority, dir_ / "order"));
    spec.mutable_resources()->set_cpu_millis(2000);
    spec.set_priority(priority);
    runs.push_back(Submit(spec));
  }
  StartBackend();
  Open(gate);
  for (const std::string& run_key : runs) AwaitEnd(run_key);
  EXPECT_EQ(ReadAll(dir_ / "order"), "7\n0\n-1\n");
}

// To refuse it would tell its job that it has failed, and a retry would run beside it.
TEST_F(RestartTest, ARunWhoseRecordsCannotBeReadIsInDoubtAndNotRefused) {
  const std::string run_key = Submit(Program({"true"}));
  AwaitEnd(run_key);
  StopBackend();
  const agents::RunHandle handle = handles_[run_key];
  handles_.clear();
  const std::string started = RunDir(run_key) + "/started";
  std::filesystem::rename(started, dir_ / "started");
  std::filesystem::create_directory(started);  // an error of any read
  StartBackend();
  const agents::LaunchOutcome outcome = Launch(run_key, handle.assignment->spec());
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kUnclear);
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr(started));
  EXPECT_EQ(backend_->Lookup(handle).kind, agents::LookupOutcome::Kind::kCouldNotAsk);
  std::filesystem::remove(started);
  std::filesystem::rename(dir_ / "started", started);
  EXPECT_EQ(backend_->Lookup(handle).kind, agents::LookupOutcome::Kind::kFound);
}

TEST_F(RestartTest, ARunInSetupGoesOn) {
  const std::string gate = Gate("gate");
  v1::JobSpec spec = Script("exit 4");
  spec.set_setup("cat " + gate);
  const std::string run_key = Submit(spec);
  AwaitState(run_key, v1::RUN_STATE_STARTING);
  StartBackend();
  EXPECT_EQ(AwaitState(run_key, v1::RUN_STATE_STARTING).state, v1::RUN_STATE_STARTING);
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).exit->code(), 4);
}

TEST_F(RestartTest, ARunningRunGoesOnAndHoldsItsCores) {
  const std::string gate = Gate("gate");
  v1::JobSpec spec = Script("cat " + gate + "; exit 4");
  spec.mutable_resources()->set_cpu_millis(2000);
  const std::string run_key = Submit(spec);
  const std::string before = AwaitState(run_key, v1::RUN_STATE_RUNNING).external_id;
  StartBackend();
  EXPECT_EQ(AwaitState(run_key, v1::RUN_STATE_RUNNING).external_id, before);
  const std::string next = Submit(Program({"true"}));
  AwaitReason(next, "waiting for 1 of 2 cores");
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).exit->code(), 4);
  EXPECT_EQ(AwaitEnd(next).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(RestartTest, ARunThatRemovedItsClaimGoesOnAndIsNotDoubled) {
  const std::string gate = Gate("gate");
  v1::JobSpec spec = Script("exit 4");
  spec.set_setup("echo once >> " + (dir_ / "count") + "; rm ../claim; echo; cat " + gate);
  spec.mutable_resources()->set_cpu_millis(2000);
  const std::string run_key = Submit(spec);
  Await(run_key, [&](const auto&) { return !Stdout(run_key).empty(); });
  handles_[run_key].state = v1::RUN_STATE_PENDING;  // the journal may know no more
  StartBackend();
  EXPECT_EQ(AwaitState(run_key, v1::RUN_STATE_STARTING).state, v1::RUN_STATE_STARTING);
  const std::string next = Submit(Program({"true"}));
  AwaitReason(next, "waiting for 1 of 2 cores");
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).exit->code(), 4);
  EXPECT_EQ(AwaitEnd(next).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(ReadAll(dir_ / "count"), "once\n");
}

TEST_F(RestartTest, ARunThatWasSeenRunningIsNotStartedAgainForWantOfAClaim) {
  const std::string run_key = Plant({});
  unlink((RunDir(run_key) + "/claim").c_str());
  StartBackend();
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
}

TEST_F(RestartTest, ARunThatEndedMeanwhileKeepsItsEnd) {
  const std::string gate = Gate("gate");
  const std::string run_key = Submit(Script("cat " + gate + "; exit 4"));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  const auto claim = Claim::Decode(ReadAll(RunDir(run_key) + "/claim"));
  StopBackend();
  Open(gate);
  EXPECT_TRUE(AwaitDeath(claim->owner.pid));
  StartBackend();
  EXPECT_EQ(AwaitEnd(run_key).exit->code(), 4);
}

TEST_F(RestartTest, AnAdoptedRunIsCanceled) {
  const std::string run_key = Submit(Script("exec sleep 1000"));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  StartBackend();
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
}

TEST_F(RestartTest, AQueuedRunIsCanceledAfterwards) {
  config_.supervisor_path = "/no/such/supervisor";
  StartBackend();
  const std::string run_key = Submit(Program({"true"}));
  StartBackend();
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
}

TEST_F(RestartTest, NothingThatWaitsBeginsBeforeTheBrokerHasSaidWhatIsCanceled) {
  config_.supervisor_path = "/no/such/supervisor";
  StartBackend();
  const std::string canceled = Submit(Script("echo ran"));
  const std::string wanted = Submit(Script("echo ran"));
  config_.supervisor_path.clear();
  StartBackendWithoutBroker();
  AwaitReason(canceled, "the broker's word");
  const std::string later = Submit(Script("echo ran"));
  Cancel(canceled);
  EXPECT_EQ(AwaitEnd(canceled).state, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(Exists(RunDir(canceled) + "/stdout"));
  AwaitReason(wanted, "the broker's word");
  EXPECT_FALSE(Exists(RunDir(wanted) + "/claim"));
  EXPECT_FALSE(Exists(RunDir(later) + "/claim"));
  backend_->capabilities().allow_starts();
  EXPECT_EQ(AwaitEnd(wanted).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitEnd(later).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(RestartTest, WhatRunsGoesOnAndIsSeenToEndBeforeTheBrokerHasSpoken) {
  const std::string gate = Gate("gate");
  const std::string run_key = Submit(Script("cat " + gate + "; exit 4"));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  StartBackendWithoutBroker();
  EXPECT_EQ(AwaitState(run_key, v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).exit->code(), 4);
}

TEST_F(RestartTest, ACancelThatWasNotCarriedOutIsRemembered) {
  config_.supervisor_path = "/no/such/supervisor";
  StartBackend();
  const std::string run_key = Submit(Script("echo ran"));
  StopBackend();
  std::ofstream(RunDir(run_key) + "/cancel").flush();
  config_.supervisor_path.clear();
  StartBackend();
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(Exists(RunDir(run_key) + "/stdout"));
}

TEST_F(RestartTest, ARunThatTheJournalForgotIsFoundAndNotDoubled) {
  const std::string gate = Gate("gate");
  const v1::JobSpec spec = Script("echo once >> " + (dir_ / "count") + "; cat " + gate);
  const std::string run_key = Submit(spec);
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  const agents::RunHandle handle = handles_[run_key];
  handles_.clear();
  StartBackend();
  EXPECT_EQ(backend_->Lookup(handle).kind, agents::LookupOutcome::Kind::kFound);
  EXPECT_EQ(Launch(run_key, spec).kind, agents::LaunchOutcome::Kind::kLaunched);
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(ReadAll(dir_ / "count"), "once\n");
}

TEST_F(RestartTest, AQueuedRunThatTheJournalForgotIsLaunchedOnce) {
  config_.supervisor_path = "/no/such/supervisor";
  StartBackend();
  const v1::JobSpec spec = Script("echo once >> " + (dir_ / "count"));
  const std::string run_key = Submit(spec);
  const agents::RunHandle handle = handles_[run_key];
  handles_.clear();
  config_.supervisor_path.clear();
  StartBackend();
  EXPECT_EQ(backend_->Lookup(handle).kind, agents::LookupOutcome::Kind::kAbsent);
  EXPECT_EQ(Launch(run_key, spec).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(ReadAll(dir_ / "count"), "once\n");
}

TEST_F(RestartTest, AReusedPidIsNeitherTakenForTheSupervisorNorSignalled) {
  const pid_t stranger = fork();
  if (stranger == 0) {
    execlp("sleep", "sleep", "1000", nullptr);
    _exit(127);
  }
  ProcessId owner = Identify(stranger);
  owner.start_ticks -= 1;
  const std::string run_key = Plant(owner);
  StartBackend();
  (void)EndOne(*backend_, handles_[run_key]);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(end.evidence.detail(), HasSubstr("left no exit record"));
  EXPECT_TRUE(IsAlive(stranger));
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
}

TEST_F(RestartTest, AfterAReBootARunWithoutExitRecordIsAnInfraFailure) {
  ProcessId owner = Identify(getpid());
  owner.boot_id = "00000000-0000-0000-0000-000000000000";
  const std::string run_key = Plant(owner);
  StartBackend();
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(end.evidence.detail(), HasSubstr("the machine was started anew"));
}

TEST_F(RestartTest, ARunThatWasClosedByAnAgentThatDiedAtOnceIsCanceled) {
  const std::string run_key = Plant({});
  const Claim claim = {
      .owner = {.pid = 1, .start_ticks = 1, .boot_id = "earlier"}, .devices = "", .closed_us = 5};
  std::ofstream(RunDir(run_key) + "/claim") << claim.Encode();
  StartBackend();
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(*end.end_time, absl::FromUnixMicros(5));
}

TEST_F(RestartTest, AClaimThatWasCutByAPowerFailureStartsNoSecondRun) {
  const std::string run_key = Plant({});
  std::ofstream(RunDir(run_key) + "/claim").flush();
  StartBackend();
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
}

TEST_F(RestartTest, ASupervisorThatDiedWithTheAgentLeavesNothingBehind) {
  const std::string run_key = Submit(Script("sh -c 'echo $$; sleep 1000'; true"));
  Await(run_key, [&](const auto&) { return !Stdout(run_key).empty(); });
  const auto claim = Claim::Decode(ReadAll(RunDir(run_key) + "/claim"));
  StopBackend();
  kill(claim->owner.pid, SIGKILL);
  EXPECT_TRUE(AwaitDeath(claim->owner.pid));
  StartBackend();
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(AwaitDeath(std::stoi(Stdout(run_key))));
}

TEST_F(RestartTest, ARunOfWhichNothingIsLeftIsLost) {
  agents::RunHandle& handle = handles_[RunKeyOf(77)];
  handle.run_key = RunKeyOf(77);
  handle.state = v1::RUN_STATE_RUNNING;
  StartBackend();
  EXPECT_EQ(AwaitEnd(RunKeyOf(77)).state, v1::RUN_STATE_LOST);
}

}  // namespace
}  // namespace muster::machines
