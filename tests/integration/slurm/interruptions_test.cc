// Tests what happens to runs from outside: preemption, suspension, a cancel at the last moment, a
// full disk. On a cluster without slurmdbd, where least is known.
#include <fstream>

#include "agents/slurm/fields.h"
#include "agents/slurm/run_files.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class SlurmInterruptionsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster("--nodes 2 --no-dbd --min-job-age 5"); }
  static void TearDownTestSuite() { delete cluster_; }

  // Takes all of a node, now if its jobs can be preempted. The job's id; it runs until it is
  // canceled.
  std::string TakeNode(const std::string& node) {
    const std::string id = cluster_->AsRoot(fmt::format(
        "sbatch --parsable -p debug -w {} --exclusive -o /dev/null --wrap 'sleep 300'", node));
    return id.substr(0, id.find('\n'));
  }
  v1::JobSpec ScriptInPartition(const std::string& partition, const std::string& script) {
    v1::JobSpec spec = ScriptSpec(script);
    spec.mutable_slurm()->set_partition(partition);
    spec.mutable_slurm()->set_nodelist("n1");
    return spec;
  }
  void WaitUntilForgotten() {
    WaitFor("squeue to forget the jobs",
            [&] { return Lines(cluster_->AsRoot("squeue -h -t all -o %i")).empty(); });
  }
  void AwaitOutput(const TestRun& run, const std::string& text) {
    WaitFor("the output " + text, [&] { return Output(*backend_, run) == text; });
  }

  static TestCluster* cluster_;
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TestCluster* SlurmInterruptionsTest::cluster_ = nullptr;

// Waits for the file "go" in the working directory.
constexpr char kWaitForGo[] = "echo up; until [ -e go ]; do sleep 0.02; done\n";

void Go(const TestCluster& cluster, const TestRun& run) {
  std::ofstream(fmt::format("{}/{}/work/go", cluster.runs(), run.handle.run_key)).flush();
}

TEST_F(SlurmInterruptionsTest, APreemptedRunThatSlurmRequeuesGoesOnUnderTheSameKey) {
  TestRun run = NewRun(ScriptInPartition("scavenge",
                                         "echo start ${SLURM_RESTART_COUNT:-0}\n"
                                         "[ \"$SLURM_RESTART_COUNT\" ] && exit 3\n"
                                         "trap 'exit 0' TERM; while :; do sleep 0.1; done"));
  Launch(*backend_, &run);
  AwaitOutput(run, "start 0\n");
  const std::string id = run.handle.external_id;
  const std::string other = TakeNode("n1");
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING) << "its 0 was the answer to a TERM";
  cluster_->AsRoot("scancel " + other);
  AwaitOutput(run, "start 0\nstart 1\n");
  WaitUntilForgotten();
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.external_id, id);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 3);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM)
      << "the preemption did not end it: " << run.last.failure->DebugString();
}

// Most looks between two squeue see the record of the first start and nothing else.
TEST_F(SlurmInterruptionsTest, ARequeuedRunWaitsAndItsOldRecordMovesItNowhere) {
  SlurmConfig config = cluster_->Config();
  config.observe_interval = absl::Seconds(2);
  backend_ = cluster_->MakeBackend(config);
  TestRun run = NewRun(ScriptSpec(std::string("trap 'exit 3' TERM\n") + kWaitForGo));
  Launch(*backend_, &run);
  AwaitOutput(run, "up\n");
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  cluster_->AsRoot("scontrol requeue " + run.handle.external_id);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  run.states.clear();
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(run.states, testing::IsSubsetOf({v1::RUN_STATE_PENDING, v1::RUN_STATE_STARTING,
                                               v1::RUN_STATE_RUNNING}));
  AwaitOutput(run, "up\nup\n");
  Go(*cluster_, run);
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
}

TEST_F(SlurmInterruptionsTest, APreemptedRunThatSlurmCancelsIsPreempted) {
  TestRun run = NewRun(
      ScriptInPartition("scavkill", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"));
  Launch(*backend_, &run);
  AwaitOutput(run, "up\n");
  const std::string other = TakeNode("n1");
  ObserveToEnd(*backend_, {&run});
  cluster_->AsRoot("scancel " + other);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_PREEMPTED);
}

TEST_F(SlurmInterruptionsTest, ASuspensionIsNoEnd) {
  TestRun run = NewRun(ScriptSpec(kWaitForGo));
  Launch(*backend_, &run);
  AwaitOutput(run, "up\n");
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  cluster_->AsRoot("scontrol suspend " + run.handle.external_id);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_SUSPENDED);
  cluster_->AsRoot("scontrol resume " + run.handle.external_id);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  Go(*cluster_, run);
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_THAT(run.states, testing::IsSupersetOf({v1::RUN_STATE_RUNNING, v1::RUN_STATE_SUSPENDED,
                                                 v1::RUN_STATE_SUCCEEDED}));
}

TEST_F(SlurmInterruptionsTest, ACancelAsTheJobEndsIsEitherAndNeverNeither) {
  constexpr int kRuns = 12;
  std::vector<TestRun> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(NewRun(ScriptSpec(kWaitForGo)));
  std::vector<TestRun*> pointers;
  for (TestRun& run : runs) {
    Launch(*backend_, &run);
    pointers.push_back(&run);
  }
  for (const TestRun& run : runs) AwaitOutput(run, "up\n");
  for (int i = 0; i < kRuns; ++i) {
    // The second half is canceled a look later: some have ended by then, some are ending.
    Go(*cluster_, runs[i]);
    if (i >= kRuns / 2) {
      EXPECT_TRUE(ObserveOnce(*backend_, pointers).ok());
    }
    EXPECT_TRUE(EndOne(*backend_, runs[i].handle).ok());
  }
  ObserveToEnd(*backend_, pointers);
  for (const TestRun& run : runs) {
    EXPECT_THAT(run.handle.state, testing::AnyOf(v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_CANCELED));
    EXPECT_NE(run.last.evidence.detail(), "");
    if (run.handle.state == v1::RUN_STATE_CANCELED) {
      EXPECT_THAT(run.last.evidence.detail(), HasSubstr("CANCELLED"));
    } else {
      ASSERT_TRUE(run.last.exit.has_value());
      EXPECT_EQ(run.last.exit->code(), 0);
    }
    EXPECT_TRUE(EndOne(*backend_, run.handle).ok()) << "a run that has ended counts as canceled";
  }
}

TEST_F(SlurmInterruptionsTest, TasksOfANodeShareItsRankAndItsLog) {
  v1::JobSpec spec = ScriptSpec("echo $NODE_RANK $SLURM_PROCID $SLURM_LOCALID $NNODES");
  spec.set_nodes(2);
  spec.mutable_slurm()->set_tasks_per_node(2);
  spec.mutable_resources()->set_cpu_millis(2000);
  TestRun run = NewRun(spec);
  spec.mutable_command()->set_script("[ $SLURM_PROCID = 3 ] && exit 5; sleep 300");
  TestRun bad = NewRun(spec);
  Launch(*backend_, &run);
  Launch(*backend_, &bad);
  ObserveToEnd(*backend_, {&run, &bad});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  const std::string first = Output(*backend_, run, 0);
  EXPECT_THAT(Lines(first), UnorderedElementsAre("0 0 0 2", "0 1 1 2"));
  const std::string second = Output(*backend_, run, 1);
  EXPECT_THAT(Lines(second), UnorderedElementsAre("1 2 0 2", "1 3 1 2"));
  EXPECT_EQ(bad.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(bad.last.exit.has_value());
  EXPECT_EQ(bad.last.exit->code(), 5);
  EXPECT_EQ(bad.last.exit->rank(), 1u);
}

// run_dir is a small file system of its own, which a test can fill.
class SlurmFullDiskTest : public SlurmInterruptionsTest {
 protected:
  void SetUp() override {
    const RootHelper::Result mounted = Root().Run(
        fmt::format("mkdir -p {0} && mount -t tmpfs -o size=256k,mode=700,uid={1} tmpfs {0}", disk_,
                    kTestUser));
    ASSERT_EQ(mounted.status, 0) << "mounting a small file system takes root: " << mounted.output;
    SlurmConfig config = cluster_->Config();
    config.run_dir = disk_;
    config.record_grace = absl::Seconds(2);
    backend_ = cluster_->MakeBackend(config);
  }
  void TearDown() override { Root().Run("umount --lazy " + disk_); }

  void Fill() { Root().Run(fmt::format("cat /dev/zero >{}/filler", disk_)); }
  void Free() { Root().Run(fmt::format("rm {}/filler", disk_)); }

  const std::string disk_ = cluster_->directory() + "/disk";
};

TEST_F(SlurmFullDiskTest, ARunThatStartsOnAFullDiskFailsWithoutACodeThatItNeverHad) {
  const std::string first = TakeNode("n1");
  const std::string second = TakeNode("n2");
  TestRun run = NewRun(ScriptSpec("echo never"));
  Launch(*backend_, &run);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  Fill();
  cluster_->AsRoot("scancel " + first + " " + second);
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  EXPECT_FALSE(run.last.exit.has_value()) << run.last.exit->DebugString();
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("could not write to run_dir"));
  Free();
  EXPECT_FALSE(std::ifstream(RunPaths(disk_, run.handle.run_key).claim()).is_open());
  TestRun next = NewRun(ScriptSpec("echo again"));
  Launch(*backend_, &next);
  ObserveToEnd(*backend_, {&next});
  EXPECT_EQ(next.handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Output(*backend_, next), "again\n");
}

TEST_F(SlurmFullDiskTest, ARunThatFillsTheDiskEndsAsSlurmSaysThatItEnded) {
  TestRun bad = NewRun(ScriptSpec("cat /dev/zero; exit 9"));
  Launch(*backend_, &bad);
  ObserveToEnd(*backend_, {&bad});
  EXPECT_EQ(bad.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(bad.last.exit.has_value());
  EXPECT_EQ(bad.last.exit->code(), 9);
}

}  // namespace
}  // namespace muster::slurm
