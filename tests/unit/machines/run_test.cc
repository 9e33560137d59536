// Ends of runs, on real processes.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "agents/machines/run_records.h"
#include "fmt/format.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using RunTest = BackendTest;

TEST_F(RunTest, ACommandThatSucceeds) {
  const std::string run_key = Submit(Program({"echo", "hello"}));
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(end.evidence.source(), v1::EVIDENCE_SOURCE_EXIT_RECORD);
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->code(), 0);
  EXPECT_FALSE(end.failure.has_value());
  EXPECT_EQ(end.nodes.size(), 1u);
  EXPECT_FALSE(end.external_id.empty());
  ASSERT_TRUE(end.start_time.has_value() && end.end_time.has_value());
  EXPECT_LE(*end.start_time, *end.end_time);
  const std::vector<agents::LogSource> logs = backend_->OpenLogs(handles_[run_key]).logs;
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(ReadAll(logs[0].path), "hello\n");
  EXPECT_EQ(ReadAll(logs[1].path), "");
}

TEST_F(RunTest, ASignalIsToldFromAnExitCode) {
  const agents::Observation end = RunToEnd(Script("kill -SEGV $$"));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.exit->signal(), SIGSEGV);
  EXPECT_EQ(end.exit->code(), 0);
  EXPECT_THAT(end.failure->message(), HasSubstr("SIGSEGV"));
}

TEST_F(RunTest, WhatAllItsProcessesUsedIsTold) {
  // A child that is waited for, and one that outlives its parent, both of 60 MB.
  const agents::Observation end =
      RunToEnd(Script("head -c 60000000 /dev/zero | tail -c 60000000 | wc -c\n"
                      "(sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' &)\n"
                      "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"));
  ASSERT_TRUE(end.usage.has_value());
  EXPECT_GT(
      end.usage->user_cpu_time().seconds() * 1'000'000'000 + end.usage->user_cpu_time().nanos(),
      1'000'000);
  EXPECT_GT(end.usage->max_rss_bytes(), 50'000'000u);
}

TEST_F(RunTest, ARunThatCouldNotBeStartedHasUsedNothing) {
  const agents::Observation end = RunToEnd(Program({"/nonexistent/program"}));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_FALSE(end.usage.has_value());
}

TEST_F(RunTest, AScriptRunsWithItsOwnInterpreter) {
  const std::string text = "#!/usr/bin/env cat\nits own text\n";
  const std::string run_key = Submit(Script(text));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), text);
}

TEST_F(RunTest, AScriptGetsItsArguments) {
  v1::JobSpec spec = Script("printf '<%s>' \"$@\"");
  spec.mutable_command()->add_script_arguments("a b");
  spec.mutable_command()->add_script_arguments("$(id)");
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "<a b><$(id)>");
}

TEST_F(RunTest, TheEnvironmentIsTheRunsAndNotTheAgents) {
  setenv("MUSTER_TEST_SECRET", "of the agent", 1);
  v1::JobSpec spec = Program({"env", "-0"});
  (*spec.mutable_env())["MINE"] = "two\nlines";
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  const std::string env = Stdout(run_key);
  EXPECT_THAT(env, HasSubstr(std::string("MINE=two\nlines\0", 15)));
  EXPECT_THAT(env, HasSubstr("MUSTER_RUN_KEY=" + run_key));
  EXPECT_THAT(env, HasSubstr("MUSTER_CLUSTER=test"));
  EXPECT_THAT(env, HasSubstr("WORLD_SIZE=1"));
  EXPECT_THAT(env, HasSubstr(std::string("CUDA_VISIBLE_DEVICES=\0", 22)));
  EXPECT_THAT(env, Not(HasSubstr("MUSTER_TEST_SECRET")));
}

TEST_F(RunTest, TheUsersVariablesAreReadableByTheUserOnly) {
  v1::JobSpec spec = Program({"true"});
  (*spec.mutable_env())["TOKEN"] = "x";
  const std::string run_key = Submit(spec);
  AwaitEnd(run_key);
  using std::filesystem::perms;
  const auto mode = std::filesystem::status(RunDir(run_key) + "/spec").permissions();
  EXPECT_EQ(mode & (perms::group_all | perms::others_all), perms::none);
}

TEST_F(RunTest, CommandsStartInTheirWorkingDirectory) {
  const std::string by_default = Submit(Program({"pwd"}));
  AwaitEnd(by_default);
  EXPECT_EQ(Stdout(by_default), RunDir(by_default) + "/work\n");
  v1::JobSpec spec = Program({"pwd"});
  spec.set_working_directory("/usr");
  const std::string chosen = Submit(spec);
  AwaitEnd(chosen);
  EXPECT_EQ(Stdout(chosen), "/usr\n");
}

TEST_F(RunTest, SetupRunsFirstAndIsSeenAsStarting) {
  const std::string gate = Gate("gate");
  v1::JobSpec spec = Script("echo command; cat made-by-setup");
  spec.set_setup("echo setup; cat " + gate + "; echo file > made-by-setup");
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitState(run_key, v1::RUN_STATE_STARTING).state, v1::RUN_STATE_STARTING);
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "setup\ncommand\nfile\n");
}

TEST_F(RunTest, SetupKnowsItsPlaceByTheNamesThatSkyPilotHasForIt) {
  v1::JobSpec spec = Script("echo ${SKYPILOT_SETUP_NODE_RANK-unset}");
  spec.set_setup(
      "echo $SKYPILOT_SETUP_NODE_RANK $SKYPILOT_SETUP_NODE_IPS $SKYPILOT_SETUP_NUM_GPUS_PER_NODE");
  const std::string run_key = Submit(spec);
  AwaitEnd(run_key);
  EXPECT_EQ(Stdout(run_key), "0 127.0.0.1 0\nunset\n");
}

TEST_F(RunTest, WhichGpusAreItsOwnIsTheCommandsToKnow) {
  v1::JobSpec spec = Script("echo ${CUDA_VISIBLE_DEVICES-unset}");
  spec.set_setup("echo ${CUDA_VISIBLE_DEVICES-unset}");
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "unset\n\n");
}

TEST_F(RunTest, AFailedSetupKeepsTheCommandFromStarting) {
  v1::JobSpec spec = Script("echo command");
  spec.set_setup("echo setup; exit 7");
  const std::string run_key = Submit(spec);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->message(), HasSubstr("setup script ended with exit code 7"));
  EXPECT_EQ(end.failure->phase(), v1::FAILURE_PHASE_SETUP);
  EXPECT_EQ(end.failure->rank(), 0u);
  EXPECT_EQ(end.failure->node(), end.nodes.at(0));
  EXPECT_FALSE(end.exit.has_value());
  EXPECT_FALSE(end.start_time.has_value());
  EXPECT_EQ(Stdout(run_key), "setup\n");
}

TEST_F(RunTest, ASetupThatASignalKillsHasFailedAsOneThatExits) {
  v1::JobSpec spec = Script("echo command");
  spec.set_setup("echo setup; kill -9 $$");
  const std::string run_key = Submit(spec);
  const agents::Observation end = AwaitEnd(run_key);
  ASSERT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->message(), HasSubstr("setup script was ended by signal 9"));
  EXPECT_EQ(Stdout(run_key), "setup\n");
}

TEST_F(RunTest, ACommandThatIsNotThereIsNamedWithARemedy) {
  const agents::Observation end = RunToEnd(Program({"/no/such/program"}));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->message(), HasSubstr("\"/no/such/program\": No such file or directory"));
  EXPECT_FALSE(end.failure->remedy().empty());
  EXPECT_FALSE(end.exit.has_value());
  EXPECT_THAT(RunToEnd(Program({"no-such-program"})).failure->message(),
              HasSubstr("no-such-program"));
}

TEST_F(RunTest, AFileThatIsNotExecutableOrNoProgramIsNamed) {
  EXPECT_THAT(RunToEnd(Program({"/etc/passwd"})).failure->message(),
              HasSubstr("Permission denied"));
  EXPECT_THAT(RunToEnd(Script("#!/no/such/interpreter\n")).failure->message(),
              HasSubstr("/no/such/interpreter"));
}

TEST_F(RunTest, AnInterpreterThatTheMachineLacksIsLookedForInTheFirstLine) {
  const agents::Observation end = RunToEnd(Script("#!/no/such/bash\necho no\n"));
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->remedy(), HasSubstr("the interpreter in its first line"));
}

TEST_F(RunTest, AWorkingDirectoryThatIsNotThereIsNamed) {
  v1::JobSpec spec = Program({"true"});
  spec.set_working_directory("/no/such/directory");
  const agents::Observation end = RunToEnd(spec);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->message(), HasSubstr("working directory \"/no/such/directory\""));
}

TEST_F(RunTest, ATimeLimitEndsTheRun) {
  v1::JobSpec spec = Script("sleep 1000");
  spec.mutable_time_limit()->set_nanos(300'000'000);
  const agents::Observation end = RunToEnd(spec);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_EQ(end.exit->signal(), SIGTERM);
}

TEST_F(RunTest, ATimeLimitCoversSetup) {
  v1::JobSpec spec = Script("true");
  spec.set_setup("sleep 1000");
  spec.mutable_time_limit()->set_nanos(300'000'000);
  EXPECT_EQ(RunToEnd(spec).failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
}

TEST_F(RunTest, NoOrphanOutlivesTheRun) {
  const std::string run_key =
      Submit(Script("sleep 1000 & echo $!\n"
                    "(setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 1000' &)\n"
                    "while [ $(wc -l < ../stdout) -lt 2 ]; do :; done"));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  std::istringstream pids(Stdout(run_key));
  pid_t first = 0;
  pid_t second = 0;
  ASSERT_TRUE(pids >> first >> second);
  EXPECT_FALSE(IsAlive(first));
  EXPECT_FALSE(IsAlive(second));
}

TEST_F(RunTest, ACancelEndsARunningCommand) {
  const std::string run_key = Submit(Script("exec sleep 1000"));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  Cancel(run_key);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(end.exit->signal(), SIGTERM);
  EXPECT_FALSE(end.failure.has_value());
  Cancel(run_key);  // harmless
}

TEST_F(RunTest, ACanceledCommandMayTakeItsLeaveWithinTheGrace) {
  const std::string gate = Gate("gate");
  const std::string run_key =
      Submit(Script("sh -c 'trap \"cat " + gate +
                    "; echo checkpoint; exit 0\" TERM; echo ready; while :; do sleep 0.01; done'"));
  Await(run_key, [&](const auto&) { return Stdout(run_key) == "ready\n"; });
  Cancel(run_key);
  // The shell around it has died of the TERM by now or will; its child is still waited for.
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(Stdout(run_key), "ready\ncheckpoint\n");
}

TEST_F(RunTest, ACommandThatStoppedItselfIsCanceledAllTheSame) {
  const std::string run_key = Submit(Script("echo $$; kill -STOP $$"));
  Await(run_key, [&](const auto&) { return !Stdout(run_key).empty(); });
  Cancel(run_key);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(end.exit->signal(), SIGTERM);  // not the KILL after the grace
}

TEST_F(RunTest, ACancelDuringSetupStartsNoCommand) {
  v1::JobSpec spec = Script("echo command");
  spec.set_setup("echo setup; exec sleep 1000");
  const std::string run_key = Submit(spec);
  Await(run_key, [&](const auto&) { return Stdout(run_key) == "setup\n"; });
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(Stdout(run_key), "setup\n");
}

class ShortGraceTest : public BackendTest {
 protected:
  ShortGraceTest() { config_.cancel_grace = absl::Milliseconds(200); }
};

TEST_F(ShortGraceTest, ACommandThatIgnoresTermIsKilled) {
  const std::string run_key =
      Submit(Script("trap '' TERM; echo ready; while :; do sleep 0.01; done"));
  Await(run_key, [&](const auto&) { return Stdout(run_key) == "ready\n"; });
  Cancel(run_key);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(end.exit->signal(), SIGKILL);
}

TEST_F(RunTest, AnEndFromOutsideIsNotTheUsersCancel) {
  const std::string run_key = Submit(Script("exec sleep 1000"));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  const auto claim = Claim::Decode(ReadAll(RunDir(run_key) + "/claim"));
  ASSERT_TRUE(claim.has_value());
  kill(claim->owner.pid, SIGTERM);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(end.failure->message(), HasSubstr(fmt::format("process {}", getpid())));
}

TEST_F(RunTest, AKilledSupervisorIsAnInfraFailureAndLeavesNothing) {
  const std::string run_key = Submit(Script("sh -c 'echo $$; sleep 1000'; true"));
  Await(run_key, [&](const auto&) { return !Stdout(run_key).empty(); });
  const auto claim = Claim::Decode(ReadAll(RunDir(run_key) + "/claim"));
  kill(claim->owner.pid, SIGKILL);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(end.evidence.detail(), HasSubstr("killed by signal 9"));
  EXPECT_TRUE(AwaitDeath(std::stoi(Stdout(run_key))));
}

TEST_F(RunTest, ARunThatRemovesItsClaimRunsOnceAndKeepsItsEnd) {
  const std::string count = dir_ / "count";
  const agents::Observation end =
      RunToEnd(Script("echo once >> " + count + "; rm ../claim; exit 7"));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->code(), 7);
  EXPECT_EQ(ReadAll(count), "once\n");
}

TEST_F(RunTest, ARunThatRemovesAllOfItsFilesRunsOnceAndKeepsItsEnd) {
  const std::string count = dir_ / "count";
  const agents::Observation end =
      RunToEnd(Script("echo once >> " + count + "; rm -rf ../*; exit 7"));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->code(), 7);
  EXPECT_EQ(ReadAll(count), "once\n");
}

TEST_F(RunTest, ARunThatRemovesItsClaimAndKillsItsSupervisorRunsOnce) {
  const std::string count = dir_ / "count";
  const agents::Observation end =
      RunToEnd(Script("echo once >> " + count + "; rm ../claim ../started; kill -KILL $PPID"));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(ReadAll(count), "once\n");
}

}  // namespace
}  // namespace muster::machines
