// Tests the layout and the start of runs: their files, their environment, their kinds of programs.
#include <fstream>
#include <memory>
#include <string>

#include "agents/slurm/run_files.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SlurmModesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ =
        new TestCluster("--nodes 2 --gpus 4 --min-job-age 60 --no-dbd --pyxis " MUSTER_PYXIS);
  }
  static void TearDownTestSuite() { delete cluster_; }

  TestRun RunToEnd(v1::JobSpec spec) {
    TestRun run = NewRun(std::move(spec));
    Launch(*backend_, &run);
    if (!HasFatalFailure()) ObserveToEnd(*backend_, {&run});
    return run;
  }
  std::string Directory(const TestRun& run) const {
    return cluster_->runs() + "/" + run.handle.run_key;
  }

  // A run that writes "start N", and at its TERM "checkpoint"; the second start ends with 0. Its
  // timeout begins before its steps, which take a second on a busy machine.
  static v1::JobSpec CheckpointSpec(uint32_t nodes) {
    v1::JobSpec spec = ScriptSpec(
        "#!/bin/bash\necho start $MUSTER_RESTART_COUNT\n"
        "if [ $MUSTER_RESTART_COUNT -gt 0 ]; then exit 0; fi\n"
        "trap 'sleep $NODE_RANK; echo checkpoint; exit 124' TERM\n"
        "while :; do sleep 0.1; done");
    spec.set_nodes(nodes);
    spec.mutable_slurm()->mutable_timeout()->set_seconds(8);
    return spec;
  }

  static TestCluster* cluster_;
  static SlurmConfig Config() {
    SlurmConfig config = cluster_->Config();
    config.image_dir = cluster_->runs() + "/images";
    config.conversion_memory_mib = 1024;
    return config;
  }

  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend(Config());
};

TestCluster* SlurmModesTest::cluster_ = nullptr;

TEST_F(SlurmModesTest, TheRunsDirectoryTellsWhatRanWhereAndHow) {
  v1::JobSpec spec = ScriptSpec("echo \"$1\"");
  spec.mutable_command()->add_script_arguments("hello");
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
  const std::string directory = Directory(run);
  EXPECT_EQ(ReadWhole(directory + "/slurm-logs/rank-0.out"), "hello\n");
  EXPECT_EQ(ReadWhole(directory + "/specs/command"), "echo \"$1\"");
  EXPECT_THAT(ReadWhole(directory + "/specs/job.json"), HasSubstr("hello"));
  EXPECT_THAT(ReadWhole(directory + "/meta/run.json"), HasSubstr(run.handle.run_key));
  EXPECT_THAT(ReadWhole(directory + "/meta/slurm.json"),
              HasSubstr("\"slurm_job_id\": \"" + run.handle.external_id + "\","));
  EXPECT_THAT(ReadWhole(directory + "/sbatch/command"),
              HasSubstr("--job-name=" + run.handle.run_key));
  EXPECT_EQ(ReadWhole(directory + "/sbatch/batch.sh"), BatchScript());
}

TEST_F(SlurmModesTest, ASecretIsWhereTheUserAloneReadsItAndNowhereElse) {
  const std::string secret = "hunter2-c0ffee";
  v1::JobSpec spec = ScriptSpec("echo \"${#TOKEN}\"; sleep 300");
  (*spec.mutable_env())["TOKEN"] = secret;
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  WaitFor("the start",
          [&] { return Output(*backend_, run) == fmt::format("{}\n", secret.size()); });
  const std::string id = run.handle.external_id;
  EXPECT_THAT(cluster_->AsRoot("scontrol show job -d " + id), Not(HasSubstr(secret)));
  EXPECT_THAT(cluster_->AsRoot("scontrol write batch_script " + id + " -"),
              testing::AllOf(HasSubstr("muster"), Not(HasSubstr(secret))));
  EXPECT_THAT(Root().Run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").output,
              Not(HasSubstr(secret)));
  // All files but the one that is meant for it.
  EXPECT_EQ(Root()
                .Run(fmt::format("cd {}; grep -rlF '{}' runs cluster/log cluster/etc",
                                 cluster_->directory(), secret))
                .output,
            fmt::format("runs/{}/env/environment\n", run.handle.run_key));
  const std::string directory = Directory(run);
  EXPECT_EQ(Root().Run(fmt::format("stat -c %a {0}/env/environment {0}", directory)).output,
            "600\n700\n");
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
}

TEST_F(SlurmModesTest, ARunAtItsTimeoutGoesOnUnderTheSameIdFromItsCheckpoint) {
  TestRun one = NewRun(CheckpointSpec(1));
  TestRun two = NewRun(CheckpointSpec(2));
  for (TestRun* run : {&one, &two}) Launch(*backend_, run);
  const std::string id_of_one = one.handle.external_id;
  const std::string id_of_two = two.handle.external_id;
  ObserveToEnd(*backend_, {&one, &two});
  EXPECT_EQ(one.handle.state, v1::RUN_STATE_SUCCEEDED) << one.last.evidence.DebugString();
  EXPECT_EQ(two.handle.state, v1::RUN_STATE_SUCCEEDED) << two.last.evidence.DebugString();
  EXPECT_EQ(one.handle.external_id, id_of_one);
  EXPECT_EQ(two.handle.external_id, id_of_two);
  const std::string both_starts = "start 0\ncheckpoint\nstart 1\n";
  EXPECT_EQ(Output(*backend_, one), both_starts);
  EXPECT_EQ(Output(*backend_, two, 0), both_starts);
  EXPECT_EQ(Output(*backend_, two, 1), both_starts) << "each rank has its time";
  EXPECT_THAT(ReadWhole(Directory(one) + "/meta/slurm.json"), HasSubstr("\"restart_count\": 1"));
}

TEST_F(SlurmModesTest, WithoutARequeueATimeoutIsTheEnd) {
  v1::JobSpec never = CheckpointSpec(2);
  never.mutable_slurm()->set_requeue(false);
  TestRun refused = NewRun(CheckpointSpec(1));
  TestRun wanted = NewRun(never);
  v1::JobSpec by_itself = ScriptSpec("exit 124");
  by_itself.mutable_slurm()->mutable_timeout()->set_seconds(3600);
  TestRun itself = NewRun(by_itself);
  driver::Hold(&refused);
  for (TestRun* run : {&refused, &wanted, &itself}) Launch(*backend_, run);
  cluster_->AsRoot("scontrol update jobid=" + refused.handle.external_id + " requeue=0");
  EXPECT_TRUE(HoldOne(*backend_, refused.handle, false).ok());
  ObserveToEnd(*backend_, {&refused, &wanted, &itself});
  for (const TestRun* run : {&refused, &wanted}) {
    EXPECT_EQ(run->handle.state, v1::RUN_STATE_FAILED);
    ASSERT_TRUE(run->last.failure.has_value());
    EXPECT_EQ(run->last.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
    ASSERT_TRUE(run->last.exit.has_value());
    EXPECT_EQ(run->last.exit->code(), 124) << "the command's own";
  }
  EXPECT_THAT(refused.last.failure->message(), HasSubstr("was not requeued: "));
  EXPECT_EQ(Output(*backend_, wanted, 1), "start 0\ncheckpoint\n");
  ASSERT_TRUE(itself.last.failure.has_value());
  EXPECT_EQ(itself.last.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  // Slurm has the command's code, too.
  EXPECT_THAT(cluster_->AsRoot("scontrol show job " + wanted.handle.external_id),
              HasSubstr("ExitCode=124:0"));
}

// Holds the facts that programs of several nodes find; `nodes` of them, in an image or not.
struct Ranks {
  uint32_t nodes;
  const char* image;
};
class SlurmRanksTest : public SlurmModesTest, public testing::WithParamInterface<Ranks> {};

TEST_P(SlurmRanksTest, EachTaskKnowsItsNodeAndNoTaskOfSlurms) {
  const auto [nodes, image] = GetParam();
  v1::JobSpec spec = ScriptSpec("#!/bin/bash\nenv -0 | tr '\\n\\0' ',\\n'");
  spec.set_nodes(nodes);
  spec.set_image(image);
  spec.mutable_resources()->add_gpus()->set_count_millis(2000);
  const TestRun run = RunToEnd(spec);
  ASSERT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  const std::string hosts = nodes == 1 ? "n1" : "n1,n2";
  for (uint32_t rank = 0; rank < nodes; ++rank) {
    const std::string env = "\n" + Output(*backend_, run, rank);
    const std::string number = std::to_string(rank);
    const std::string count = std::to_string(nodes);
    for (const std::string& line :
         {"WORLD_SIZE=" + count, "NNODES=" + count, "SKYPILOT_NUM_NODES=" + count,
          "MUSTER_NUM_NODES=" + count, "NODE_RANK=" + number, "SKYPILOT_NODE_RANK=" + number,
          "MUSTER_NODE_RANK=" + number, std::string("NPROC_PER_NODE=2"),
          std::string("NUM_GPU_PER_NODE=2"), std::string("SKYPILOT_NUM_GPUS_PER_NODE=2"),
          std::string("MASTER_ADDR=") + (nodes == 1 ? "127.0.0.1" : "n1"),
          "SKYPILOT_NODE_IPS=" + hosts, std::string("MUSTER_RESTART_COUNT=0"),
          fmt::format("MASTER_PORT={}", 29500 + run.handle.assignment->job_id() % 1000),
          "SLURM_JOB_ID=" + run.handle.external_id}) {
      EXPECT_THAT(env, HasSubstr("\n" + line + "\n"));
    }
    // PyTorch Lightning would wait for as many processes as Slurm has tasks.
    for (const char* name : {"SLURM_NTASKS=", "SLURM_NPROCS=", "SLURM_NNODES=", "SLURM_PROCID=",
                             "SLURM_LOCALID=", "SLURM_NTASKS_PER_NODE=", "RANK=", "LOCAL_RANK="}) {
      EXPECT_THAT(env, Not(HasSubstr(std::string("\n") + name)));
    }
  }
}

// The image has enroot's hook for PyTorch set WORLD_SIZE, RANK and others.
constexpr char kTorch[] = "registry.test/muster/torch:1";
INSTANTIATE_TEST_SUITE_P(Shapes, SlurmRanksTest,
                         testing::Values(Ranks{1, ""}, Ranks{2, ""}, Ranks{1, kTorch},
                                         Ranks{2, kTorch}),
                         [](const auto& info) {
                           return fmt::format("{}Nodes{}", info.param.nodes,
                                              *info.param.image == '\0' ? "" : "InAContainer");
                         });

TEST_F(SlurmModesTest, AJobThatAsksForSeveralTasksOnANodeSeesThem) {
  v1::JobSpec spec = ScriptSpec("echo $SLURM_NTASKS; sleep 0.1");
  spec.mutable_slurm()->set_tasks_per_node(2);
  EXPECT_EQ(Output(*backend_, RunToEnd(spec)), "2\n2\n");
}

// A script like the examples of Slurm's manual.
constexpr char kPlainScript[] = R"sh(#!/bin/bash -e
#SBATCH --job-name=plain
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=4
#SBATCH --mem=10G
#SBATCH --gres=gpu:h100:1
#SBATCH --output=plain-%j.out
echo "$1 in $(basename "$PWD") as $SLURM_JOB_NAME, from $(basename "$SLURM_SUBMIT_DIR")"
echo "tasks $SLURM_NTASKS cpus $SLURM_CPUS_PER_TASK on node $SLURM_CPUS_ON_NODE mem $SLURM_MEM_PER_NODE"
echo "gpus $CUDA_VISIBLE_DEVICES nodes $SLURM_JOB_NODELIST rank $SLURM_PROCID"
srun --label bash -c 'echo "$SLURM_PROCID of $SLURM_NTASKS, with $CUDA_VISIBLE_DEVICES"' | sort
echo complaint >&2
exit 5
)sh";

TEST_F(SlurmModesTest, ABatchScriptDoesWhatItDoesWithPlainSbatch) {
  const std::string directory = cluster_->runs() + "/plain";
  Root().Run(fmt::format("install -d -o {} {}", kTestUser, directory));
  std::ofstream(directory + "/script") << kPlainScript;
  // Each has a node to itself: the same one only if no job is there.
  const auto await_nodes = [&] {
    WaitFor("all nodes are free",
            [&] { return cluster_->AsRoot("squeue -h -t R,CG -o %i").empty(); });
  };
  await_nodes();
  const std::string id = cluster_->AsRoot(fmt::format(
      "sh -c 'cd {1} && exec setpriv --reuid {0} --regid {0} --init-groups sbatch --parsable "
      "script \"a b\"'",
      kTestUser, directory));
  const std::string plain = fmt::format("{}/plain-{}.out", directory, id.substr(0, id.find('\n')));
  WaitFor("the plain job", [&] { return ReadWhole(plain).ends_with("complaint\n"); });
  await_nodes();

  // The spec that `muster sbatch` makes of it.
  v1::JobSpec spec = ScriptSpec(kPlainScript);
  spec.set_name("plain");
  spec.mutable_command()->add_script_arguments("a b");
  spec.set_working_directory(directory);
  spec.mutable_resources()->set_cpu_millis(8000);
  spec.mutable_resources()->set_memory_bytes(uint64_t{10} << 30);
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type("h100");
  gpus->set_count_millis(1000);
  spec.mutable_slurm()->set_tasks_per_node(2);
  for (const char* option :
       {"--nodes=1", "--ntasks=2", "--cpus-per-task=4", "--mem=10G", "--gres=gpu:h100:1"})
    spec.mutable_slurm()->add_extra_options(option);
  spec.mutable_slurm()->mutable_batch_script()->set_output("plain-%j.out");
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 5) << run.last.evidence.DebugString();
  const std::string mine =
      ReadWhole(fmt::format("{}/plain-{}.out", directory, run.handle.external_id));
  EXPECT_EQ(mine, ReadWhole(plain));
  EXPECT_THAT(mine, HasSubstr("a b in plain as plain, from plain"));
  EXPECT_EQ(Output(*backend_, run), mine);
}

TEST_F(SlurmModesTest, ABatchScriptRunsOnceAndStartsItsTasksOnAllNodesItself) {
  v1::JobSpec spec = ScriptSpec(
      "#!/bin/bash\nhostname -s >/dev/null; echo once; srun -l true 2>/dev/null; "
      "srun -l echo task 2>/dev/null | sort");
  spec.set_nodes(2);
  spec.mutable_slurm()->mutable_batch_script();
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run), "once\n0: task\n1: task\n");
  EXPECT_EQ(backend_->OpenLogs(run.handle).logs.size(), 2u) << "of one rank";
}

// Makes a controller on the first node and workers on both.
v1::JobSpec RolesSpec(const std::string& controller, const std::string& worker) {
  v1::JobSpec spec = ScriptSpec("");
  spec.clear_command();
  spec.set_nodes(2);
  (*spec.mutable_env())["SHARED"] = "of the job";
  v1::Role* role = spec.add_roles();
  role->set_name("controller");
  role->set_nodes(1);
  role->mutable_command()->set_script("#!/bin/bash\n" + controller);
  role = spec.add_roles();
  role->set_name("gpu-worker");
  role->set_nodes(2);
  role->mutable_command()->set_script("#!/bin/bash\n" + worker);
  (*role->mutable_env())["SHARED"] = "of the worker";
  return spec;
}

TEST_F(SlurmModesTest, RolesRunBesideEachOtherEachWithItsOwnPlaceAndLogs) {
  // Each waits for the other, so they run at the same time.
  const std::string tell =
      "touch ../$MUSTER_ROLE.$NODE_RANK; "
      "until [ -e ../controller.0 -a -e ../gpu-worker.0 -a -e ../gpu-worker.1 ]; do sleep 0.1; "
      "done; "
      "echo $MUSTER_ROLE $NODE_RANK of $WORLD_SIZE at $MASTER_ADDR, $SHARED; "
      "echo $MUSTER_ROLE_CONTROLLER_NODES $MUSTER_ROLE_GPU_WORKER_NODES $SKYPILOT_NODE_IPS";
  const TestRun run = RunToEnd(RolesSpec(tell, tell));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run, 0), "controller 0 of 1 at n1, of the job\nn1 n1,n2 n1\n");
  for (const int rank : {0, 1}) {
    EXPECT_EQ(Output(*backend_, run, 1 + rank),
              fmt::format("gpu-worker {} of 2 at n1, of the worker\nn1 n1,n2 n1 n2\n", rank));
  }
}

// A role that wanted some would be refused while Slurm has not noticed the end of the setup's step,
// which no test can make it do: so what their sruns are told is looked at.
TEST_F(SlurmModesTest, RolesReserveNoMemory) {
  TestRun run = NewRun(RolesSpec("exec sleep 300", "exec sleep 300"));
  Launch(*backend_, &run);
  const std::string sruns = "pgrep -fa '^srun .*/" + run.handle.run_key + " step role-";
  for (const int role : {0, 1}) {
    std::string argv;
    WaitFor("the role's srun", [&] {
      argv = Root().Run(fmt::format("{}{} '", sruns, role)).output;
      return !argv.empty();
    });
    EXPECT_THAT(argv, HasSubstr(" --overlap --mem=0 "));
  }
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
}

TEST_F(SlurmModesTest, OneRoleThatFailsEndsAllAndIsNamed) {
  const TestRun run = RunToEnd(
      RolesSpec("trap 'echo stopped; exit' TERM; touch ../up; while :; do sleep 0.1; done",
                "[ $NODE_RANK = 0 ] || { until [ -e ../up ]; do sleep 0.1; done; exit 7; }; "
                "exec sleep 300"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value()) << run.last.evidence.DebugString();
  EXPECT_EQ(run.last.exit->code(), 7);
  EXPECT_EQ(run.last.exit->rank(), 2u);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("rank 2 (role gpu-worker"));
  EXPECT_EQ(Output(*backend_, run, 0), "stopped\n");
}

TEST_F(SlurmModesTest, ARoleThatEndsWithZeroLeavesTheOthersAtWork) {
  const TestRun run = RunToEnd(RolesSpec("exit 0", "sleep 2; echo done"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run, 2), "done\n");
}

TEST_F(SlurmModesTest, TheSuccessOfARoleThatLeadsEndsTheOthersAndIsTheRuns) {
  v1::JobSpec spec =
      RolesSpec("until [ -e ../up.0 -a -e ../up.1 ]; do sleep 0.1; done; echo learned",
                "trap 'echo stopped; exit 3' TERM; touch ../up.$NODE_RANK; "
                "while :; do sleep 0.1; done");
  spec.mutable_roles(0)->set_leads(true);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run, 0), "learned\n");
  for (const int rank : {1, 2}) EXPECT_EQ(Output(*backend_, run, rank), "stopped\n");
}

// This is the usual end: the others lose the one that led them, and fail of that at once.
TEST_F(SlurmModesTest, RolesThatFailBecauseTheLeadingOneIsThroughFailNothing) {
  v1::JobSpec spec = RolesSpec("sleep 2; touch ../through; sleep 1",
                               "until [ -e ../through ]; do sleep 0.1; done; exit 9");
  spec.mutable_roles(0)->set_leads(true);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_FALSE(run.last.failure.has_value());
}

TEST_F(SlurmModesTest, ARoleThatFailsBeforeTheLeadingOneHasSucceededFailsTheRun) {
  v1::JobSpec spec =
      RolesSpec("trap 'exit 0' TERM; while :; do sleep 0.1; done", "[ $NODE_RANK = 0 ] || exit 7");
  spec.mutable_roles(0)->set_leads(true);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 7);
}

TEST_F(SlurmModesTest, RolesAreStoppedAtATimeoutAndRunInContainers) {
  v1::JobSpec spec = RolesSpec("trap 'echo $MUSTER_ROLE; exit 3' TERM; while :; do sleep 0.1; done",
                               "while :; do sleep 0.1; done");
  spec.set_image("registry.test/muster/bash:1");
  // The containers take some of this time.
  spec.mutable_slurm()->mutable_timeout()->set_seconds(12);
  spec.mutable_slurm()->set_requeue(false);
  const TestRun run = RunToEnd(spec);
  ASSERT_TRUE(run.last.failure.has_value()) << run.last.evidence.DebugString();
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT)
      << run.last.failure->DebugString();
  EXPECT_EQ(Output(*backend_, run, 0), "controller\n");
}

}  // namespace
}  // namespace muster::slurm
