// The life of runs on a cluster with accounting that forgets ended jobs after five seconds.
#include <algorithm>

#include "absl/time/clock.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/run_files.h"
#include "contract/states.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using Kind = agents::LaunchOutcome::Kind;
using Found = agents::LookupOutcome::Kind;

class SlurmBackendTest : public ::testing::Test {
 protected:
  // One run from launch to end.
  TestRun RunToEnd(v1::JobSpec spec) {
    TestRun run = NewRun(std::move(spec));
    Launch(*backend_, &run);
    if (!HasFatalFailure()) ObserveToEnd(*backend_, {&run});
    return run;
  }
  // Returns the number of Slurm jobs of the run's name so far, once accounting has caught up.
  size_t CountJobs(const TestRun& run) {
    size_t count = 0;
    WaitFor("sacct", [&] { return (count = JobsInHistory(run)) > 0; });
    return count;
  }
  size_t JobsInHistory(const TestRun& run) {
    return Lines(cluster_->AsRoot("sacct -a -X -D -n -P -S now-1hour -o JobIDRaw --name=" +
                                  run.handle.run_key))
        .size();
  }

  TestCluster* const cluster_ = &SharedCluster();
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TEST_F(SlurmBackendTest, ADeathBySignalIsNotAnExitCode) {
  for (const int signal : {2, 11, 13}) {
    TestRun killed = NewRun(ScriptSpec(fmt::format("kill -{} $$", signal)));
    TestRun code = NewRun(ScriptSpec(fmt::format("exit {}", 128 + signal)));
    Launch(*backend_, &killed);
    Launch(*backend_, &code);
    ObserveToEnd(*backend_, {&killed, &code});
    ASSERT_TRUE(killed.last.exit.has_value());
    EXPECT_EQ(killed.last.exit->signal(), signal);
    EXPECT_EQ(killed.last.exit->code(), 0);
    ASSERT_TRUE(code.last.exit.has_value());
    EXPECT_EQ(code.last.exit->signal(), 0);
    EXPECT_EQ(code.last.exit->code(), 128 + signal);
  }
}

TEST_F(SlurmBackendTest, AVariableMayHaveANameThatTheBatchScriptUses) {
  v1::JobSpec spec = ScriptSpec("echo \"$argv $variables $run_dir $status\"; pwd");
  (*spec.mutable_env())["argv"] = "/tmp";
  (*spec.mutable_env())["variables"] = "V";
  (*spec.mutable_env())["run_dir"] = "R";
  (*spec.mutable_env())["status"] = "S";
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(Output(*backend_, run),
            fmt::format("/tmp V R S\n{}/{}/work\n", cluster_->runs(), run.handle.run_key));
}

TEST_F(SlurmBackendTest, AJobSeesACleanEnvironmentWithTheDocumentedNames) {
  setenv("MUSTER_TEST_LEAK", "secret", 1);
  setenv("SBATCH_PARTITION", "nosuch", 1);
  v1::JobSpec spec = ScriptSpec("env");
  spec.mutable_resources()->add_gpus()->set_count_millis(2000);
  const TestRun run = RunToEnd(spec);
  unsetenv("SBATCH_PARTITION");
  unsetenv("MUSTER_TEST_LEAK");
  const std::string env = "\n" + Output(*backend_, run);
  for (const std::string& line :
       {std::string("WORLD_SIZE=1"), std::string("NNODES=1"), std::string("NODE_RANK=0"),
        std::string("NPROC_PER_NODE=2"), std::string("NUM_GPU_PER_NODE=2"),
        std::string("MASTER_ADDR=127.0.0.1"), std::string("SKYPILOT_NODE_RANK=0"),
        std::string("SKYPILOT_NUM_NODES=1"), "MUSTER_RUN_KEY=" + run.handle.run_key,
        std::string("USER=slurmtest"), std::string("HOME=/home/slurmtest"),
        std::string("CUDA_VISIBLE_DEVICES=0,1")}) {
    EXPECT_THAT(env, HasSubstr("\n" + line + "\n"));
  }
  EXPECT_THAT(env, testing::Not(HasSubstr("MUSTER_TEST_LEAK")));
}

TEST_F(SlurmBackendTest, WhatCannotBeStartedIsAFailureOfTheConfiguration) {
  v1::JobSpec no_program = ScriptSpec("");
  no_program.mutable_command()->mutable_argv()->add_args("no-such-program");
  v1::JobSpec no_directory = ScriptSpec("true");
  no_directory.set_working_directory("/no/such/directory");
  TestRun program = NewRun(no_program);
  TestRun directory = NewRun(no_directory);
  Launch(*backend_, &program);
  Launch(*backend_, &directory);
  ObserveToEnd(*backend_, {&program, &directory});
  ASSERT_TRUE(program.last.failure.has_value());
  EXPECT_EQ(program.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(program.last.failure->message(), HasSubstr("\"no-such-program\": it was not found"));
  EXPECT_FALSE(program.last.exit.has_value()) << "what never ran has no exit status";
  EXPECT_THAT(Output(*backend_, program, 0, v1::LOG_STREAM_STDERR),
              HasSubstr("no-such-program: not found"));
  ASSERT_TRUE(directory.last.failure.has_value());
  EXPECT_EQ(directory.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(directory.last.failure->message(), HasSubstr("working directory"));
}

TEST_F(SlurmBackendTest, AProgramWithAPathThatCannotBeStartedIsAFailureOfTheConfiguration) {
  const std::pair<const char*, const char*> cases[] = {
      {"/no/such", "\"/no/such\": it was not found"},
      {"/etc/passwd", "\"/etc/passwd\": it cannot be executed"},
  };
  for (const auto& [program, words] : cases) {
    v1::JobSpec spec = ScriptSpec("");
    spec.mutable_command()->mutable_argv()->add_args(program);
    const TestRun run = RunToEnd(spec);
    ASSERT_TRUE(run.last.failure.has_value()) << program;
    EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG) << program;
    EXPECT_THAT(run.last.failure->message(), HasSubstr(words));
    EXPECT_FALSE(run.last.exit.has_value()) << program;
  }
}

TEST_F(SlurmBackendTest, ACancelEndsARunThatWaitsAndOneThatRuns) {
  TestRun running = NewRun(ScriptSpec("sleep 300"));
  v1::JobSpec waiting_spec = ScriptSpec("true");
  waiting_spec.mutable_slurm()->set_exclusive(true);
  waiting_spec.set_nodes(2);
  TestRun waiting = NewRun(waiting_spec);
  Launch(*backend_, &running);
  ObserveUntil(*backend_, {&running}, v1::RUN_STATE_RUNNING);
  Launch(*backend_, &waiting);
  ObserveUntil(*backend_, {&waiting}, v1::RUN_STATE_PENDING);
  EXPECT_EQ(waiting.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(*backend_, waiting.handle).ok());
  EXPECT_TRUE(EndOne(*backend_, running.handle).ok());
  ObserveToEnd(*backend_, {&running, &waiting});
  EXPECT_EQ(running.handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(waiting.handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_TRUE(EndOne(*backend_, running.handle).ok()) << "a run that has ended counts as canceled";
}

TEST_F(SlurmBackendTest, ACancelByAnotherNamesItsUser) {
  TestRun run = NewRun(ScriptSpec("sleep 300"));
  Launch(*backend_, &run);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  cluster_->AsRoot("scancel " + run.handle.external_id);
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED);
  // Accounting tells a number to sacct, and a name to slurmrestd.
  EXPECT_THAT(
      run.last.evidence.detail(),
      HasSubstr(cluster_->is_over_rest() ? "canceled by user root" : "canceled by user id 0"));
}

TEST_F(SlurmBackendTest, ATimeLimitIsATimeout) {
  v1::JobSpec spec = ScriptSpec("trap 'exit 0' TERM; while :; do sleep 0.1; done");
  spec.mutable_time_limit()->set_seconds(90);
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(cluster_->AsRoot("squeue -h -o %l -j " + run.handle.external_id), HasSubstr("2:00"));
  cluster_->AsRoot("scontrol update jobid=" + run.handle.external_id + " EndTime=now+1");
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT)
      << run.last.failure->DebugString();
}

TEST_F(SlurmBackendTest, ARefusalQuotesSlurmAndSaysWhatToDo) {
  v1::JobSpec partition = ScriptSpec("true");
  partition.mutable_placement()->set_pool("nosuch");
  TestRun run = NewRun(partition);
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("Invalid partition name specified"));
  EXPECT_THAT(outcome.failure.remedy(), HasSubstr("muster clusters"));

  v1::JobSpec limit = ScriptSpec("true");
  limit.mutable_slurm()->set_qos("two");
  limit.mutable_resources()->set_cpu_millis(3000);
  TestRun over = NewRun(limit);
  const agents::LaunchOutcome refused = LaunchOne(*backend_, *over.handle.assignment);
  EXPECT_EQ(refused.kind, Kind::kRefused);
  // slurmrestd does not pass on which limit it is.
  if (!cluster_->is_over_rest()) {
    EXPECT_THAT(refused.failure.message(), HasSubstr("QOSMaxCpuPerUserLimit"));
  }
  EXPECT_THAT(refused.failure.message(), HasSubstr("Job violates accounting/QOS policy"));
}

TEST_F(SlurmBackendTest, TheJobThatARefusalLeavesIsNotAdopted) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_resources()->set_memory_bytes(uint64_t{1} << 46);
  TestRun run = NewRun(spec);
  EXPECT_EQ(LaunchOne(*backend_, *run.handle.assignment).kind, Kind::kRefused);
  EXPECT_EQ(CountJobs(run), 1u);
  EXPECT_EQ(backend_->Lookup(run.handle).kind, Found::kAbsent);
}

TEST_F(SlurmBackendTest, AForgetfulQueueLosesNothing) {
  TestRun good = NewRun(ScriptSpec("true"));
  TestRun bad = NewRun(ScriptSpec("exit 4"));
  TestRun canceled = NewRun(ScriptSpec("sleep 300"));
  for (TestRun* run : {&good, &bad, &canceled}) Launch(*backend_, run);
  cluster_->AsRoot("scancel " + canceled.handle.external_id);
  WaitFor("squeue to forget the jobs",
          [&] { return Lines(cluster_->AsRoot("squeue -h -t all -u slurmtest -o %i")).empty(); });
  ObserveToEnd(*backend_, {&good, &bad, &canceled});
  EXPECT_EQ(good.handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(bad.handle.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(bad.last.exit->code(), 4);
  EXPECT_EQ(canceled.handle.state, v1::RUN_STATE_CANCELED) << canceled.last.evidence.DebugString();
}

TEST_F(SlurmBackendTest, ALookupFindsARunByItsNameAlsoAfterTheQueueForgotIt) {
  TestRun run = NewRun(ScriptSpec("true"));
  EXPECT_EQ(backend_->Lookup(run.handle).kind, Found::kAbsent);
  Launch(*backend_, &run);
  const std::string id = run.handle.external_id;
  agents::LookupOutcome found = LookUp(*backend_, run);
  EXPECT_EQ(found.kind, Found::kFound);
  EXPECT_EQ(found.external_id, id);
  EXPECT_EQ(LaunchAgain(*backend_, run).external_id, id) << "a second launch finds the first";
  WaitFor("squeue to forget it", [&] {
    return Lines(cluster_->AsRoot("squeue -h -t all --name=" + run.handle.run_key)).empty();
  });
  found = LookUp(*cluster_->MakeBackend(), run);
  EXPECT_EQ(found.kind, Found::kFound);
  EXPECT_EQ(found.external_id, id);
  EXPECT_EQ(CountJobs(run), 1u);
}

TEST_F(SlurmBackendTest, AnAnswerThatWasLostIsAdoptedAndNotDoubled) {
  TestRun run = NewRun(ScriptSpec("echo once"));
  cluster_->Control("signal", "slurmctld STOP");
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kUnclear);
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("Socket timed out"));
  EXPECT_EQ(backend_->Lookup(run.handle).kind, Found::kCouldNotAsk);
  cluster_->Control("signal", "slurmctld CONT");
  agents::LookupOutcome found;
  WaitFor("the job", [&] {
    found = backend_->Lookup(run.handle);
    return found.kind == Found::kFound;
  });
  run.handle.external_id = found.external_id;
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Output(*backend_, run), "once\n");
  EXPECT_EQ(CountJobs(run), 1u);
}

TEST_F(SlurmBackendTest, NothingChangesWhileSlurmctldIsAway) {
  TestRun run = NewRun(ScriptSpec("echo up; sleep 300"));
  Launch(*backend_, &run);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  cluster_->Control("stop", "slurmctld");
  const std::vector<v1::RunState> before = run.states;
  const absl::Status status = ObserveOnce(*backend_, {&run});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(run.states, before);
  EXPECT_EQ(backend_->Lookup(run.handle).kind, Found::kCouldNotAsk);
  EXPECT_EQ(EndOne(*backend_, run.handle).code(), absl::StatusCode::kUnavailable);
  TestRun late = NewRun(ScriptSpec("true"));
  EXPECT_EQ(LaunchOne(*backend_, *late.handle.assignment).kind, Kind::kUnclear);
  cluster_->Control("start", "slurmctld");
  EXPECT_TRUE(ObserveOnce(*backend_, {&run}).ok());
  EXPECT_EQ(run.states, before);
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(backend_->Lookup(late.handle).kind, Found::kAbsent);
}

TEST_F(SlurmBackendTest, AStrayOfARunDoesNothingAndIsCanceled) {
  TestRun run = NewRun(ScriptSpec("echo started; sleep 300"));
  Launch(*backend_, &run);
  WaitFor("the start", [&] { return Output(*backend_, run) == "started\n"; });
  // The job that a submission without an answer leaves, without the dependency that keeps it
  // waiting.
  const std::string directory = cluster_->runs() + "/" + run.handle.run_key;
  const auto submit = [&](const std::string& options) {
    cluster_->AsRoot(
        fmt::format("setpriv --reuid {0} --regid {0} --init-groups sbatch {1} -J {2} -D {3} "
                    "-o {3}/slurm-logs/slurm.out --open-mode=append {3}/sbatch/batch.sh {3}",
                    kTestUser, options, run.handle.run_key, directory));
  };
  submit("");
  WaitFor("the stray's end", [&] {
    return ReadWhole(directory + "/slurm-logs/slurm.out").find("does nothing") != std::string::npos;
  });
  submit("--hold");
  const auto waiting = [&] {
    return Lines(cluster_->AsRoot("squeue -h -t PD -o %i --name=" + run.handle.run_key)).size();
  };
  EXPECT_EQ(waiting(), 1u);
  WaitFor("the held stray's end", [&] {
    EXPECT_TRUE(ObserveOnce(*backend_, {&run}).ok());
    return waiting() == 0;
  });
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(Output(*backend_, run), "started\n");
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED);
}

TEST_F(SlurmBackendTest, ARequeueGoesBackToPendingUnderTheSameKeyAndRunsAgain) {
  TestRun run = NewRun(ScriptSpec(
      "echo start $SLURM_RESTART_COUNT; if [ -z \"$SLURM_RESTART_COUNT\" ]; then sleep 300; fi"));
  Launch(*backend_, &run);
  WaitFor("the start", [&] { return Output(*backend_, run) == "start\n"; });
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  cluster_->AsRoot("scontrol requeue " + run.handle.external_id);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(run.last.restarts, 1u) << "the queue tells it before there is a record";
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run), "start\nstart 1\n");
}

TEST_F(SlurmBackendTest, ALostNodeIsAFaultOfTheCluster) {
  v1::JobSpec spec = ScriptSpec("echo up; sleep 300");
  spec.mutable_slurm()->set_nodelist("n2");
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  WaitFor("the start", [&] { return Output(*backend_, run) == "up\n"; });
  cluster_->AsRoot("scontrol update jobid=" + run.handle.external_id + " requeue=0");
  cluster_->Control("crash", "n2");
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  cluster_->Control("start", "slurmd.n2");
  WaitFor("the node", [&] {
    return cluster_->AsRoot("sinfo -h -n n2 -p debug -o %t").find("idle") != std::string::npos;
  });
}

TEST_F(SlurmBackendTest,
       OfRunsThatNobodyKnowsAfterAGraceThoseThatBeganAreLostAndOthersMayBeTriedAgain) {
  TestRun began = NewRun(ScriptSpec("true"));
  TestRun never = NewRun(ScriptSpec("true"));
  began.handle.external_id = "999998";
  never.handle.external_id = "999999";
  for (const TestRun* run : {&began, &never}) {
    const RunPaths paths(cluster_->runs(), run->handle.run_key);
    Root().Run(fmt::format("install -D /dev/null {} && chown -R {} {}", paths.script(), kTestUser,
                           paths.directory()));
  }
  const RunPaths paths(cluster_->runs(), began.handle.run_key);
  Root().Run(fmt::format("echo 999998 >{}", paths.claim()));
  EXPECT_TRUE(ObserveOnce(*backend_, {&began, &never}).ok());
  EXPECT_TRUE(began.states.empty() && never.states.empty()) << "too early to tell";
  ObserveToEnd(*backend_, {&began, &never});
  EXPECT_EQ(began.handle.state, v1::RUN_STATE_LOST);
  EXPECT_THAT(began.last.evidence.detail(), HasSubstr("not in the queue"));
  EXPECT_EQ(never.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(never.last.failure.has_value());
  EXPECT_TRUE(never.last.failure->retriable());
  EXPECT_THAT(never.last.failure->message(), HasSubstr("cannot begin any more"));
}

TEST_F(SlurmBackendTest, ForgettingKeepsOnlyWhatTheUserMade) {
  const TestRun tidy = RunToEnd(ScriptSpec("true"));
  const TestRun maker = RunToEnd(ScriptSpec("echo 1 >result"));
  EXPECT_TRUE(ForgetOne(*backend_, tidy.handle).ok());
  EXPECT_TRUE(ForgetOne(*backend_, maker.handle).ok());
  EXPECT_EQ(ReadWhole(cluster_->runs() + "/" + maker.handle.run_key + "/work/result"), "1\n");
  EXPECT_EQ(Root().Run("ls " + cluster_->runs() + "/" + maker.handle.run_key).output,
            "claim\nwork\n");
  EXPECT_NE(Root().Run("ls " + cluster_->runs() + "/" + tidy.handle.run_key).status, 0);
  EXPECT_EQ(Root().Run("ls " + cluster_->runs() + "/ended/" + maker.handle.run_key).status, 2);
}

TEST_F(SlurmBackendTest, ManyRunsTakeFewQuestions) {
  constexpr int kRuns = 60;
  SlurmConfig config = cluster_->Config();
  config.observe_interval = absl::Seconds(2);
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  std::vector<TestRun> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(NewRun(ScriptSpec("true")));
  std::vector<TestRun*> pointers;
  const auto before = backend->SchedulerCalls();
  for (TestRun& run : runs) {
    Launch(*backend, &run);
    pointers.push_back(&run);
  }
  const absl::Time start = absl::Now();
  ObserveToEnd(*backend, pointers);
  const absl::Duration duration = absl::Now() - start;
  uint64_t calls = 0;
  for (const auto& [name, count] : backend->SchedulerCalls()) {
    const auto old = before.find(name);
    if (name != "sbatch" && name != "rest-submit")
      calls += count - (old == before.end() ? 0 : old->second);
  }
  for (const TestRun& run : runs) EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
  // However long they take.
  EXPECT_LE(calls, 2 + 2 * duration / config.observe_interval) << "for queue, history and all else";
}

}  // namespace
}  // namespace muster::slurm
