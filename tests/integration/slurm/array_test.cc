// The tasks of a job array that are launched together, and runs that have nothing but their time in
// common.
#include <fstream>

#include "agents/slurm/arrays.h"
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

// Waits for the file "go" in the working directory.
constexpr char kWaitForGo[] = "echo up; until [ -e go ]; do sleep 0.02; done\n";

class SlurmArrayTest : public ::testing::Test {
 protected:
  // There are two cores, so of five runs three wait.
  static void SetUpTestSuite() { cluster_ = new TestCluster("--nodes 1 --cpus 2 --min-job-age 5"); }
  static void TearDownTestSuite() { delete cluster_; }

  // Returns the tasks of one job array with these scripts.
  static std::vector<TestRun> ArrayOf(const std::vector<std::string>& scripts) {
    std::vector<v1::JobSpec> specs;
    for (const std::string& script : scripts) specs.push_back(ScriptSpec(script));
    return NewArray(std::move(specs));
  }
  // Makes tasks with these ids, all of which wait for Go.
  static std::vector<TestRun> WaitingArray(const std::vector<uint32_t>& ids) {
    return NewArray(std::vector(ids.size(), ScriptSpec(kWaitForGo)), ids);
  }
  // Ends the whole array behind Muster's back, and waits until squeue has forgotten it.
  static void CancelAndForget(const TestRun& run) {
    const std::string number = SlurmId(run).substr(0, SlurmId(run).find('_'));
    cluster_->AsRoot("scancel " + number);
    WaitFor("squeue forgets it", [&] {
      return cluster_->AsRoot("squeue --noheader --states=all --format=%F").find(number) ==
             std::string::npos;
    });
  }
  // Launches them together; each has to be launched.
  std::vector<TestRun> LaunchTogether(std::vector<TestRun> runs) {
    for (const agents::LaunchOutcome& outcome : LaunchAll(&runs))
      EXPECT_EQ(outcome.kind, Kind::kLaunched) << outcome.evidence.DebugString();
    return runs;
  }
  std::vector<agents::LaunchOutcome> LaunchAll(std::vector<TestRun>* runs) {
    std::vector<std::shared_ptr<const agent::v1::Assignment>> assignments;
    for (const TestRun& run : *runs) assignments.push_back(run.handle.assignment);
    std::vector<agents::LaunchOutcome> outcomes = backend_->Launch(assignments);
    for (size_t i = 0; i < runs->size(); ++i)
      (*runs)[i].handle.external_id = outcomes[i].external_id;
    return outcomes;
  }
  static std::vector<TestRun*> PointersTo(std::vector<TestRun>& runs, size_t from = 0) {
    std::vector<TestRun*> pointers;
    for (size_t i = from; i < runs.size(); ++i) pointers.push_back(&runs[i]);
    return pointers;
  }
  void Restart() { backend_ = cluster_->MakeBackend(); }
  // Returns the kind of call that counts submissions.
  static std::string Submits() { return cluster_->is_over_rest() ? "rest-submit" : "sbatch"; }
  static std::string SlurmId(const TestRun& run) { return run.handle.external_id; }
  static void Go(const TestRun& run) {
    std::ofstream(fmt::format("{}/{}/work/go", cluster_->runs(), run.handle.run_key)).flush();
  }

  static TestCluster* cluster_;
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TestCluster* SlurmArrayTest::cluster_ = nullptr;

TEST_F(SlurmArrayTest, AJobArrayIsOneSbatchAndEachTaskHasItsOwnLogAndEnd) {
  std::vector<std::string> scripts;
  for (int i = 0; i < 12; ++i) scripts.push_back(fmt::format("echo run {}; exit {}", i, i % 3));
  std::vector<TestRun> runs = LaunchTogether(ArrayOf(scripts));
  EXPECT_EQ(backend_->SchedulerCalls()[Submits()], 1u);
  ObserveToEnd(*backend_, PointersTo(runs));
  for (int i = 0; i < 12; ++i) {
    const TestRun& run = runs[i];
    EXPECT_EQ(run.handle.state, i % 3 == 0 ? v1::RUN_STATE_SUCCEEDED : v1::RUN_STATE_FAILED)
        << run.last.evidence.DebugString();
    ASSERT_TRUE(run.last.exit.has_value());
    EXPECT_EQ(run.last.exit->code(), i % 3) << "one that fails is no matter of the others";
    EXPECT_EQ(Output(*backend_, run), fmt::format("run {}\n", i));
    EXPECT_TRUE(SlurmId(run).ends_with(fmt::format("_{}", i))) << SlurmId(run);
    EXPECT_EQ(backend_->Lookup(run.handle).external_id, SlurmId(run));
  }
}

TEST_F(SlurmArrayTest, AnAnswerThatWasLostIsFoundByEachRunAndNothingRunsTwice) {
  std::vector<TestRun> runs = ArrayOf(std::vector<std::string>(4, "echo once"));
  cluster_->Control("signal", "slurmctld STOP");
  for (const agents::LaunchOutcome& outcome : LaunchAll(&runs))
    EXPECT_EQ(outcome.kind, Kind::kUnclear);
  cluster_->Control("signal", "slurmctld CONT");
  // The agent is another one, too.
  Restart();
  for (TestRun& run : runs) {
    agents::LookupOutcome found;
    WaitFor("the job", [&] {
      found = backend_->Lookup(run.handle);
      return found.kind == Found::kFound;
    });
    run.handle.external_id = found.external_id;
  }
  for (const TestRun& run : runs) {
    EXPECT_EQ(LaunchAgain(*backend_, run).kind, Kind::kLaunched)
        << "it is found, and not launched again";
  }
  EXPECT_EQ(backend_->SchedulerCalls().count(Submits()), 0u);
  ObserveToEnd(*backend_, PointersTo(runs));
  for (const TestRun& run : runs) {
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
    EXPECT_EQ(Output(*backend_, run), "once\n");
  }
}

TEST_F(SlurmArrayTest, ATaskThatIsCanceledWhileItWaitsIsCanceledAlsoForTheNextAgent) {
  std::vector<TestRun> runs = LaunchTogether(ArrayOf(std::vector<std::string>(5, kWaitForGo)));
  ObserveUntil(*backend_, {&runs[0], &runs[1]}, v1::RUN_STATE_RUNNING);
  ObserveUntil(*backend_, {&runs[3], &runs[4]}, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(*backend_, runs[3].handle).ok());
  ObserveToEnd(*backend_, {&runs[3]});
  EXPECT_EQ(runs[3].handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(runs[3].last.evidence.detail(), HasSubstr("canceled while it waited"));
  EXPECT_TRUE(EndOne(*backend_, runs[4].handle).ok());
  Restart();
  // A new agent asks once more for what it has not seen end.
  EXPECT_TRUE(EndOne(*backend_, runs[4].handle).ok());
  EXPECT_EQ(backend_->Lookup(runs[4].handle).external_id, SlurmId(runs[4]))
      << "it was submitted, and is not launched again";
  ObserveToEnd(*backend_, {&runs[4]});
  EXPECT_EQ(runs[4].handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_TRUE(EndOne(*backend_, runs[0].handle).ok());
  ObserveToEnd(*backend_, {&runs[0]});
  EXPECT_EQ(runs[0].handle.state, v1::RUN_STATE_CANCELED) << "one that ran";
  for (const TestRun& run : runs) Go(run);
  ObserveToEnd(*backend_, {&runs[1], &runs[2]});
  EXPECT_EQ(runs[1].handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(runs[2].handle.state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(SlurmArrayTest, ATaskThatAnotherCancelsWhileItWaitsIsCanceledAndNotLost) {
  std::vector<TestRun> runs = LaunchTogether(ArrayOf(std::vector<std::string>(4, kWaitForGo)));
  ObserveUntil(*backend_, {&runs[0], &runs[1]}, v1::RUN_STATE_RUNNING);
  ObserveUntil(*backend_, {&runs[2], &runs[3]}, v1::RUN_STATE_PENDING);
  cluster_->AsRoot("scancel " + SlurmId(runs[2]));
  ObserveToEnd(*backend_, {&runs[2]});
  EXPECT_EQ(runs[2].handle.state, v1::RUN_STATE_CANCELED) << runs[2].last.evidence.DebugString();
  EXPECT_THAT(runs[2].last.evidence.detail(), HasSubstr("not by Muster"));
  for (const TestRun& run : runs) Go(run);
  ObserveToEnd(*backend_, {&runs[0], &runs[1], &runs[3]});
  EXPECT_EQ(runs[3].handle.state, v1::RUN_STATE_SUCCEEDED);
}

// Accounting has the tasks that never started in one line, with their step unless they are few:
// "1_[9-43:2]".
TEST_F(SlurmArrayTest, ALateLookFindsTheTasksOfARestThatWasCanceled) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 5; id <= 43; id += 2) ids.push_back(id);
  std::vector<TestRun> runs = LaunchTogether(WaitingArray(ids));
  ObserveUntil(*backend_, {&runs[0], &runs[1]}, v1::RUN_STATE_RUNNING);
  ObserveUntil(*backend_, PointersTo(runs, 2), v1::RUN_STATE_PENDING);
  // A task that ends by itself has a line of its own, which counts, also if the other has it too.
  Go(runs[0]);
  ObserveUntil(*backend_, {&runs[2]}, v1::RUN_STATE_RUNNING);
  const std::string number = SlurmId(runs[0]).substr(0, SlurmId(runs[0]).find('_'));
  CancelAndForget(runs[0]);
  WaitFor("sacct has the line", [&] {
    const std::string lines = cluster_->AsRoot("sacct -a -n -X -P -o JobID,State -j " + number);
    const size_t rest = lines.find("_[");
    return lines.find(":2]|CANCELLED", rest) != std::string::npos;
  });
  Restart();
  ObserveToEnd(*backend_, PointersTo(runs));
  EXPECT_EQ(runs[0].handle.state, v1::RUN_STATE_SUCCEEDED) << runs[0].last.evidence.DebugString();
  for (size_t i = 1; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].handle.state, v1::RUN_STATE_CANCELED)
        << SlurmId(runs[i]) << ": " << runs[i].last.evidence.DebugString();
  }
}

// slurmrestd cuts off the list of those that wait, and says nothing of the others.
TEST_F(SlurmArrayTest, TasksWithoutAnyOrderInTheirIdsAreSeenToTheirEnds) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 30; ++i) ids.push_back(i * i + 100);
  std::vector<TestRun> runs = LaunchTogether(WaitingArray(ids));
  ObserveUntil(*backend_, {&runs[0], &runs[1]}, v1::RUN_STATE_RUNNING);
  ObserveUntil(*backend_, {&runs[2]}, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(*backend_, runs[3].handle).ok());
  EXPECT_TRUE(EndOne(*backend_, runs[28].handle).ok());
  ObserveToEnd(*backend_, {&runs[3]});
  EXPECT_EQ(backend_->Lookup(runs[29].handle).external_id, SlurmId(runs[29]));
  for (int i = 0; i < 27; ++i) Go(runs[i]);
  std::vector<TestRun*> first = PointersTo(runs);
  first.erase(first.begin() + 27, first.end());
  first.erase(first.begin() + 3);
  ObserveToEnd(*backend_, first);
  for (const TestRun* run : first)
    EXPECT_EQ(run->handle.state, v1::RUN_STATE_SUCCEEDED) << run->last.evidence.DebugString();
  ObserveToEnd(*backend_, {&runs[28]});
  EXPECT_EQ(runs[28].handle.state, v1::RUN_STATE_CANCELED);
  CancelAndForget(runs[29]);
  ObserveToEnd(*backend_, {&runs[27], &runs[29]});
  EXPECT_EQ(runs[29].handle.state, v1::RUN_STATE_CANCELED) << runs[29].last.evidence.DebugString();
}

TEST_F(SlurmArrayTest, AForgottenTaskWhoseNumberIsGivenAgainFailsAndIsNotCanceled) {
  cluster_->AsRoot("scontrol update partitionname=debug state=down");
  // Accounting is told of jobs every five seconds; a slurmctld that has lost them has it call those
  // that it knows canceled.
  cluster_->Control("stop", "slurmdbd");
  std::vector<TestRun> forgotten = LaunchTogether(ArrayOf(std::vector<std::string>(3, "true")));
  const std::string number = SlurmId(forgotten[0]).substr(0, SlurmId(forgotten[0]).find('_'));
  cluster_->Control("stop", "slurmctld KILL");
  cluster_->Control("start", "slurmdbd");
  cluster_->AsRoot(
      fmt::format("sh -c 'rm {0}/state/job_state* {0}/state/part_state*; echo FirstJobId={1} "
                  ">>{0}/etc/slurm.conf'",
                  cluster_->directory() + "/cluster", number));
  cluster_->Control("start", "slurmctld");

  std::vector<TestRun> others = LaunchTogether(ArrayOf(std::vector<std::string>(2, "true")));
  ASSERT_EQ(SlurmId(others[0]), SlurmId(forgotten[0]));
  ObserveToEnd(*backend_, PointersTo(others));
  ObserveToEnd(*backend_, PointersTo(forgotten));
  for (const TestRun& run : forgotten) {
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
    EXPECT_TRUE(run.last.failure.has_value() && run.last.failure->retriable());
  }
}

// Returns the lines that the program wrote: slurmstepd says in the same file why it ended the first
// start.
std::string OwnLines(const std::string& output) {
  std::string own;
  for (const std::string_view line : Lines(output)) {
    if (!line.starts_with("slurmstepd")) own += std::string(line) + "\n";
  }
  return own;
}

TEST_F(SlurmArrayTest, ARequeuedTaskRunsAgainUnderTheSameId) {
  const std::string script =
      "echo start $SLURM_RESTART_COUNT; [ \"$SLURM_RESTART_COUNT\" ] || exec sleep 300";
  std::vector<TestRun> runs = LaunchTogether(ArrayOf({script, "true"}));
  const std::string id = SlurmId(runs[0]);
  WaitFor("the start", [&] { return Output(*backend_, runs[0]) == "start\n"; });
  ObserveUntil(*backend_, {&runs[0]}, v1::RUN_STATE_RUNNING);
  cluster_->AsRoot("scontrol requeue " + id);
  ObserveUntil(*backend_, {&runs[0]}, v1::RUN_STATE_PENDING);
  ObserveToEnd(*backend_, PointersTo(runs));
  EXPECT_EQ(runs[0].handle.state, v1::RUN_STATE_SUCCEEDED) << runs[0].last.evidence.DebugString();
  EXPECT_EQ(OwnLines(Output(*backend_, runs[0])), "start\nstart 1\n");
  EXPECT_EQ(SlurmId(runs[0]), id);
}

// The array's number is also one of the tasks' own.
TEST_F(SlurmArrayTest, ATaskAtItsTimeoutIsPutBackWithoutTheOthers) {
  v1::JobSpec stopped = ScriptSpec(
      "#!/bin/bash\necho start $MUSTER_RESTART_COUNT\n"
      "[ $MUSTER_RESTART_COUNT -gt 0 ] || exec sleep 300\n");
  // The time counts from the start of its job, in whole seconds.
  stopped.mutable_slurm()->mutable_timeout()->set_seconds(4);
  v1::JobSpec waiting = ScriptSpec(kWaitForGo);
  waiting.mutable_slurm()->mutable_timeout()->set_seconds(600);
  for (const bool is_last : {false, true}) {
    std::vector<TestRun> runs = LaunchTogether(
        NewArray(is_last ? std::vector{waiting, stopped} : std::vector{stopped, waiting}));
    TestRun& first = runs[is_last ? 1 : 0];
    TestRun& second = runs[is_last ? 0 : 1];
    ObserveToEnd(*backend_, {&first});
    EXPECT_EQ(first.handle.state, v1::RUN_STATE_SUCCEEDED) << first.last.evidence.DebugString();
    EXPECT_EQ(Output(*backend_, first), "start 0\nstart 1\n");
    Go(second);
    ObserveToEnd(*backend_, {&second});
    EXPECT_EQ(second.handle.state, v1::RUN_STATE_SUCCEEDED) << second.last.evidence.DebugString();
    EXPECT_EQ(Output(*backend_, second), "up\n") << "it was not put back";
  }
}

TEST_F(SlurmArrayTest, AProgramThatActsOnItsJobActsOnNoOtherRun) {
  const std::string requeue =
      "[ $MUSTER_RESTART_COUNT -gt 0 ] || { until [ -e go ]; do sleep 0.02; done;\n"
      "scontrol requeue $SLURM_JOB_ID; sleep 300; }\n";
  const std::string cancel =
      "until [ -e go ]; do sleep 0.02; done; scancel $SLURM_JOB_ID; sleep 300\n";
  const std::string wait = cluster_->runs() + "/wait.sh", acts = cluster_->runs() + "/acts.sh";
  std::ofstream(wait) << kWaitForGo << std::flush;
  // A spec does not show what its program does.
  for (const std::string& script : {requeue, cancel}) {
    std::ofstream(acts) << script << std::flush;
    std::vector<TestRun> runs =
        LaunchTogether({NewRun(ScriptSpec("sh " + wait)), NewRun(ScriptSpec("sh " + acts))});
    TestRun &other = runs[0], &acting = runs[1];
    WaitFor("the other's start", [&] { return Output(*backend_, other) == "up\n"; });
    Go(acting);
    ObserveToEnd(*backend_, {&acting});
    EXPECT_EQ(acting.handle.state,
              script == cancel ? v1::RUN_STATE_CANCELED : v1::RUN_STATE_SUCCEEDED)
        << acting.last.evidence.DebugString();
    Go(other);
    ObserveToEnd(*backend_, {&other});
    EXPECT_EQ(other.handle.state, v1::RUN_STATE_SUCCEEDED) << other.last.evidence.DebugString();
    EXPECT_EQ(Output(*backend_, other), "up\n") << "it was not put back";
  }
}

TEST_F(SlurmArrayTest, ATaskMakesStepsOfItsOwn) {
  const std::string script = "srun -n1 bash -c 'echo step $SLURM_STEP_ID'";
  std::vector<TestRun> runs = LaunchTogether(ArrayOf({script, script}));
  EXPECT_TRUE(SlurmId(runs[1]).ends_with("_1"));
  ObserveToEnd(*backend_, PointersTo(runs));
  for (const TestRun& run : runs) EXPECT_EQ(Output(*backend_, run), "step 0\n");
}

// A submission leaves such an array if it arrived although its answer said that it had not.
TEST_F(SlurmArrayTest, TheTasksOfADoubledArrayDoNothingAndAreCanceled) {
  std::vector<TestRun> runs = LaunchTogether(ArrayOf(std::vector<std::string>(2, kWaitForGo)));
  ObserveUntil(*backend_, PointersTo(runs), v1::RUN_STATE_RUNNING);
  const std::string lists = ArrayPaths::Directory(cluster_->runs());
  const std::string name =
      Root()
          .Run(fmt::format("cd {} && ls | grep '^{}[.]array-[0-9a-f]*$' | tr -d '\\n'", lists,
                           runs[0].handle.run_key))
          .output;
  const std::string again = cluster_->AsRoot(fmt::format(
      "setpriv --reuid {0} --regid {0} --init-groups sbatch --parsable --hold -J {1} --array=0-1 "
      "-o {2}/{1}.out/%a --open-mode=append {3} {2}/{1} array",
      kTestUser, name, lists, RunPaths(cluster_->runs(), runs[0].handle.run_key).script()));
  WaitFor("the strays' end", [&] {
    EXPECT_TRUE(ObserveOnce(*backend_, PointersTo(runs)).ok());
    return cluster_->AsRoot("squeue -h -t PD -o %i").empty();
  });
  for (const TestRun& run : runs) {
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_RUNNING);
    WaitFor("the word that it runs", [&] { return Output(*backend_, run) == "up\n"; });
    Go(run);
  }
  ObserveToEnd(*backend_, PointersTo(runs));
  for (const TestRun& run : runs) EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(SlurmArrayTest, ARefusalIsQuotedForEachRun) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_placement()->set_pool("nosuch");
  std::vector<TestRun> runs = NewArray(std::vector(3, spec));
  for (const agents::LaunchOutcome& outcome : LaunchAll(&runs)) {
    EXPECT_EQ(outcome.kind, Kind::kRefused);
    EXPECT_THAT(outcome.failure.message(), HasSubstr("Invalid partition name specified"));
  }
  EXPECT_EQ(backend_->SchedulerCalls()[Submits()], 1u);
}

}  // namespace
}  // namespace muster::slurm
