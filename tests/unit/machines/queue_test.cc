// Launching, waiting, looking up and forgetting.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "fmt/format.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using agents::LookupOutcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class QueueTest : public BackendTest {
 protected:
  // Starts a run that holds the whole machine until its gate opens.
  std::string Block(const std::string& gate) {
    v1::JobSpec spec = Script("cat " + gate);
    spec.mutable_resources()->set_cpu_millis(2000);
    const std::string run_key = Submit(spec);
    AwaitState(run_key, v1::RUN_STATE_RUNNING);
    return run_key;
  }
  LookupOutcome::Kind Lookup(const std::string& run_key) {
    agents::RunHandle handle;
    handle.run_key = run_key;
    return backend_->Lookup(handle).kind;
  }
};

TEST_F(QueueTest, ARunWaitsWithAReasonUntilItsTurnComes) {
  const std::string gate = Gate("gate");
  const std::string blocker = Block(gate);
  v1::JobSpec spec = Program({"true"});
  spec.mutable_resources()->set_cpu_millis(1001);
  const std::string first = Submit(spec);
  const std::string second = Submit(Program({"true"}));
  AwaitReason(first, "waiting for 2 of 2 cores");
  AwaitReason(second, "waiting behind earlier runs");
  Open(gate);
  EXPECT_EQ(AwaitEnd(blocker).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitEnd(first).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitEnd(second).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(QueueTest, ARunThatNamesNoCoresTakesOne) {
  Block(Gate("gate"));
  AwaitReason(Submit(Program({"true"})), "waiting for 1 of 2 cores");
}

TEST_F(QueueTest, RunsStartInTheOrderInWhichTheyCame) {
  const std::string gate = Gate("gate");
  Block(gate);
  std::vector<std::string> runs;
  for (int i = 0; i < 12; ++i) {
    v1::JobSpec spec = Script(fmt::format("echo {} >> {}", i, dir_ / "order"));
    spec.mutable_resources()->set_cpu_millis(2000);
    runs.push_back(Submit(spec));
  }
  Open(gate);
  std::string expected;
  for (int i = 0; i < 12; ++i) {
    AwaitEnd(runs[static_cast<size_t>(i)]);
    expected += fmt::format("{}\n", i);
  }
  EXPECT_EQ(ReadAll(dir_ / "order"), expected);
}

TEST_F(QueueTest, ACanceledRunInTheQueueNeverStarts) {
  const std::string gate = Gate("gate");
  Block(gate);
  const std::string run_key = Submit(Script("echo ran"));
  Cancel(run_key);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(end.exit.has_value());
  Open(gate);
  AwaitEnd(RunKeyOf(1));
  StartBackend();
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(Exists(RunDir(run_key) + "/stdout"));
}

TEST_F(QueueTest, ASecondLaunchOfTheSameRunChangesNothing) {
  const v1::JobSpec spec = Script("echo once >> " + (dir_ / "count"));
  const std::string run_key = Submit(spec);
  EXPECT_EQ(Launch(run_key, spec).kind, LaunchOutcome::Kind::kLaunched);
  AwaitEnd(run_key);
  EXPECT_EQ(Launch(run_key, spec).kind, LaunchOutcome::Kind::kLaunched);
  StartBackend();
  EXPECT_EQ(Launch(run_key, spec).kind, LaunchOutcome::Kind::kLaunched);
  EXPECT_TRUE(ForgetOne(*backend_, handles_[run_key]).ok());
  StartBackend();
  EXPECT_EQ(Launch(run_key, spec).kind, LaunchOutcome::Kind::kLaunched);
  AwaitEnd(Submit(Program({"true"})));
  EXPECT_EQ(ReadAll(dir_ / "count"), "once\n");
}

TEST_F(QueueTest, ASecondSupervisorOfTheSameRunRunsNothing) {
  const std::string gate = Gate("gate");
  const std::string run_key = Submit(Script("echo once >> " + (dir_ / "count") + "; cat " + gate));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  hosts::LocalHost host;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-supervisor";
  const auto second = host.Run({.argv = {program, RunDir(run_key), ""}});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->exit_code, 3);
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(ReadAll(dir_ / "count"), "once\n");
}

TEST_F(QueueTest, ARunThatAnotherSupervisorTookIsFollowedToItsEnd) {
  const std::string gate = Gate("gate");
  const std::string gate2 = Gate("gate2");
  const std::string blocker = Block(gate);
  const std::string run_key = Submit(Script("cat " + gate2 + "; exit 5"));
  hosts::LocalHost host;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-supervisor";
  std::thread other([&] {
    EXPECT_TRUE(host.Run({.argv = {program, RunDir(run_key), ""}, .timeout = kPatience}).ok());
  });
  while (!Exists(RunDir(run_key) + "/claim")) std::this_thread::yield();
  Open(gate);
  AwaitEnd(blocker);
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  Open(gate2);
  EXPECT_EQ(AwaitEnd(run_key).exit->code(), 5);
  other.join();
}

TEST_F(QueueTest, LookupFindsWhatWasLaunchedAndNothingElse) {
  const std::string gate = Gate("gate");
  const std::string running = Block(gate);
  const std::string queued = Submit(Program({"true"}));
  EXPECT_EQ(Lookup(running), LookupOutcome::Kind::kFound);
  EXPECT_EQ(Lookup(queued), LookupOutcome::Kind::kFound);
  EXPECT_EQ(Lookup(RunKeyOf(99)), LookupOutcome::Kind::kAbsent);
  Open(gate);
  AwaitEnd(queued);
  EXPECT_EQ(Lookup(queued), LookupOutcome::Kind::kFound);
  StartBackend();
  EXPECT_EQ(Lookup(running), LookupOutcome::Kind::kFound);
  EXPECT_EQ(Lookup(RunKeyOf(99)), LookupOutcome::Kind::kAbsent);
}

TEST_F(QueueTest, WhatCanNeverFitIsRefusedInWords) {
  v1::JobSpec cores = Program({"true"});
  cores.mutable_resources()->set_cpu_millis(2001);
  v1::JobSpec memory = Program({"true"});
  memory.mutable_resources()->set_memory_bytes((1ULL << 30) + 1);
  v1::JobSpec gpus = Program({"true"});
  gpus.mutable_resources()->add_gpus()->set_count_millis(1000);
  v1::JobSpec share = Program({"true"});
  share.mutable_resources()->add_gpus()->set_count_millis(1500);
  v1::JobSpec nodes = Program({"true"});
  nodes.set_nodes(2);
  v1::JobSpec pool = Program({"true"});
  pool.mutable_placement()->set_pool("fast");
  for (const v1::JobSpec& spec : {cores, memory, gpus, share, nodes, pool}) {
    const LaunchOutcome outcome = Launch(RunKeyOf(1), spec);
    EXPECT_EQ(outcome.kind, LaunchOutcome::Kind::kRefused);
    EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
    EXPECT_FALSE(outcome.failure.message().empty());
    EXPECT_FALSE(outcome.failure.remedy().empty());
    EXPECT_EQ(Lookup(RunKeyOf(1)), LookupOutcome::Kind::kAbsent);
  }
}

TEST_F(QueueTest, AnUnreadableRunDirectoryIsNamedAndNotTakenForAbsence) {
  std::ofstream(RunDir(RunKeyOf(1))) << "a file where the directory should be";
  const LaunchOutcome outcome = Launch(RunKeyOf(1), Program({"true"}));
  EXPECT_EQ(outcome.kind, LaunchOutcome::Kind::kUnclear);
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr(RunDir(RunKeyOf(1))));
  EXPECT_EQ(Lookup(RunKeyOf(1)), LookupOutcome::Kind::kCouldNotAsk);
  agents::RunHandle handle;
  handle.run_key = RunKeyOf(1);
  const agents::ObserveOutcome seen = backend_->Observe({handle});
  EXPECT_FALSE(seen.scheduler.ok());
  EXPECT_TRUE(seen.observations.empty());
}

TEST_F(QueueTest, ARunWhoseDirectoryIsGoneIsLostAndBlocksNoOther) {
  const std::string gate = Gate("gate");
  Block(gate);
  const std::string run_key = Submit(Program({"true"}));
  const std::string next = Submit(Program({"true"}));
  std::filesystem::remove_all(RunDir(run_key));
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_LOST);
  EXPECT_EQ(AwaitEnd(next).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(QueueTest, ForgettingKeepsTheUsersFilesAndTheNewestLogs) {
  config_.keep_finished_runs = 2;
  StartBackend();
  std::vector<std::string> runs;
  for (const char* text : {"echo result > result", "echo log", "echo log", "echo log"}) {
    // One after the other, because those that end last are kept.
    const std::string run_key = Submit(Script(text));
    AwaitEnd(run_key);
    EXPECT_TRUE(ForgetOne(*backend_, handles_[run_key]).ok());
    handles_.erase(run_key);
    runs.push_back(run_key);
  }
  StartBackend();  // does what may not have been done yet
  EXPECT_FALSE(Exists(RunDir(runs[0]) + "/stdout"));
  EXPECT_EQ(ReadAll(RunDir(runs[0]) + "/work/result"), "result\n");
  EXPECT_FALSE(Exists(RunDir(runs[1])));
  EXPECT_EQ(Stdout(runs[2]), "log\n");
  EXPECT_EQ(Stdout(runs[3]), "log\n");
  EXPECT_FALSE(Exists(RunDir(runs[3]) + "/spec"));
}

TEST_F(QueueTest, FilesOfForgottenRunsGoAfterTheTimeThatTheyAreKept) {
  config_.keep_work = absl::Seconds(1);
  StartBackend();
  const std::string known = Submit(Script("echo x > file"));
  const std::string forgotten = Submit(Script("echo x > file"));
  AwaitEnd(known);
  AwaitEnd(forgotten);
  EXPECT_TRUE(ForgetOne(*backend_, handles_[forgotten]).ok());
  handles_.erase(forgotten);
  const absl::Time deadline = absl::Now() + kPatience;
  while (Exists(RunDir(forgotten) + "/work") && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(10));
  EXPECT_FALSE(Exists(RunDir(forgotten) + "/work"));
  EXPECT_EQ(ReadAll(RunDir(known) + "/work/file"), "x\n");
}

TEST_F(QueueTest, ManyRunsLaunchedByManyThreadsAllEnd) {
  constexpr int kThreads = 4;
  constexpr int kRuns = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kRuns; ++i) {
        agent::v1::Assignment assignment;
        assignment.set_run_key(RunKeyOf(t * kRuns + i + 1));
        *assignment.mutable_spec() = Program({"true"});
        EXPECT_EQ(LaunchOne(*backend_, assignment).kind, LaunchOutcome::Kind::kLaunched);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 1; i <= kThreads * kRuns; ++i) {
    const std::string run_key = RunKeyOf(i);
    handles_[run_key].run_key = run_key;
    EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  }
  EXPECT_EQ(backend_->SchedulerCalls().at("muster-supervisor"), 200u);
}

TEST_F(QueueTest, AMissingSupervisorIsSaidByProbeAndRunsWait) {
  config_.supervisor_path = dir_ / "muster-supervisor";
  StartBackend();
  const absl::Status probe = backend_->Probe();
  EXPECT_TRUE(absl::IsNotFound(probe));
  EXPECT_NE(probe.message().find("install muster-supervisor"), absl::string_view::npos);
  const std::string run_key = Submit(Program({"true"}));
  EXPECT_EQ(AwaitReason(run_key, "cannot start").state, v1::RUN_STATE_PENDING);
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
}

class GpuTest : public BackendTest {
 protected:
  GpuTest() {
    config_.cpus = 8;
    config_.gpus = {{{"h100", 4}}};
  }
};

TEST_F(GpuTest, EachRunSeesItsOwnGpusAndNoOthers) {
  v1::JobSpec spec = Script("echo $CUDA_VISIBLE_DEVICES $NUM_GPU_PER_NODE; cat " + dir_.path() +
                            "/$MUSTER_RUN_KEY");
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type("H100");
  gpus->set_count_millis(2000);
  std::vector<std::string> runs;
  for (int i = 1; i <= 3; ++i) {
    Gate(RunKeyOf(i));
    runs.push_back(Submit(spec));
  }
  AwaitState(runs[0], v1::RUN_STATE_RUNNING);
  AwaitState(runs[1], v1::RUN_STATE_RUNNING);
  AwaitReason(runs[2], "waiting for 2 h100 GPUs");
  StartBackend();  // the allocations are remembered
  AwaitReason(runs[2], "waiting for 2 h100 GPUs");
  for (const std::string& run_key : runs) {
    Open(dir_ / run_key);
    EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  }
  EXPECT_EQ(Stdout(runs[0]), "0,1 2\n");
  EXPECT_EQ(Stdout(runs[1]), "2,3 2\n");
  EXPECT_EQ(Stdout(runs[2]), "0,1 2\n");
}

TEST_F(GpuTest, RunsWithSharesHaveADeviceTogetherAlsoAfterARestart) {
  v1::JobSpec spec = Script("echo $CUDA_VISIBLE_DEVICES $NUM_GPU_PER_NODE; cat " + dir_.path() +
                            "/$MUSTER_RUN_KEY");
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type("H100");
  gpus->set_count_millis(500);
  std::vector<std::string> runs;
  for (int i = 1; i <= 3; ++i) {
    Gate(RunKeyOf(i));
    runs.push_back(Submit(spec));
    AwaitState(runs.back(), v1::RUN_STATE_RUNNING);
  }
  StartBackend();  // the shares are remembered: one device has room for half, two are free
  v1::JobSpec whole = Script("echo $CUDA_VISIBLE_DEVICES");
  whole.mutable_resources()->add_gpus()->set_count_millis(3000);
  const std::string waiting = Submit(whole);
  AwaitReason(waiting, "waiting for 3 GPUs");
  whole.mutable_resources()->mutable_gpus(0)->set_count_millis(2000);
  whole.mutable_time_limit()->set_seconds(3600);
  const std::string passing = Submit(whole);
  EXPECT_EQ(AwaitEnd(passing).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(passing), "2,3\n");
  for (const std::string& run_key : runs) {
    Open(dir_ / run_key);
    EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  }
  EXPECT_EQ(AwaitEnd(waiting).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(runs[0]), "0 1\n");
  EXPECT_EQ(Stdout(runs[1]), "0 1\n");
  EXPECT_EQ(Stdout(runs[2]), "1 1\n");
}

TEST_F(GpuTest, WhatIsFreeOfSharedDevicesIsToldDeviceByDevice) {
  v1::JobSpec spec = Script("cat " + dir_.path() + "/$MUSTER_RUN_KEY");
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  std::vector<std::string> runs;
  for (const uint64_t millis : {700, 600, 1000}) {
    gpus->set_count_millis(millis);
    Gate(RunKeyOf(static_cast<int>(runs.size()) + 1));
    runs.push_back(Submit(spec));
    AwaitState(runs.back(), v1::RUN_STATE_RUNNING);
  }
  const absl::StatusOr<v1::ClusterDetails> details = backend_->Describe(true);
  ASSERT_TRUE(details.ok());
  for (const auto& free : {details->nodes(0).free_gpus(), details->pools(0).now().free_gpus(),
                           backend_->Inventory()->pools(0).free_gpus()}) {
    EXPECT_EQ(free.at("h100").whole(), 1u);
    EXPECT_THAT(free.at("h100").parts_millis(), ElementsAre(400, 300));
  }
  for (const std::string& run_key : runs) {
    Open(dir_ / run_key);
    AwaitEnd(run_key);
  }
}

TEST_F(GpuTest, ARunThatWaitsForOneWithALimitIsToldWhenItStarts) {
  v1::JobSpec spec = Script("cat " + Gate("gate"));
  spec.mutable_resources()->add_gpus()->set_count_millis(4000);
  spec.mutable_time_limit()->set_seconds(3600);
  const std::string first = Submit(spec);
  AwaitState(first, v1::RUN_STATE_RUNNING);
  const auto is_in_an_hour = [this](absl::Time time) {
    const absl::Duration wait = time - absl::Now();
    return wait > absl::Minutes(55) && wait <= absl::Hours(1) + config_.cancel_grace;
  };
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "");
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(is_in_an_hour(absl::FromUnixSeconds(plan->estimated_start_time().seconds())));
  const std::string second = Submit(spec);
  const agents::Observation waiting = AwaitReason(second, "waiting for 4 GPUs");
  ASSERT_TRUE(waiting.estimated_start.has_value());
  EXPECT_TRUE(is_in_an_hour(*waiting.estimated_start));
  // The start of a run that waits behind it is not known.
  EXPECT_FALSE(backend_->Plan(spec, "")->has_estimated_start_time());
  EXPECT_FALSE(AwaitReason(Submit(spec), "waiting behind").estimated_start.has_value());
  Cancel(RunKeyOf(3));
  Cancel(second);
  Open(dir_ / "gate");
  AwaitEnd(first);
}

TEST_F(GpuTest, ARunThatWaitsForOneWithoutALimitIsToldNoTime) {
  v1::JobSpec spec = Script("cat " + Gate("gate"));
  spec.mutable_resources()->add_gpus()->set_count_millis(4000);
  const std::string first = Submit(spec);
  AwaitState(first, v1::RUN_STATE_RUNNING);
  EXPECT_FALSE(backend_->Plan(spec, "")->has_estimated_start_time());
  const std::string second = Submit(spec);
  EXPECT_FALSE(AwaitReason(second, "waiting for 4 GPUs").estimated_start.has_value());
  Cancel(second);
  Open(dir_ / "gate");
  AwaitEnd(first);
}

TEST_F(GpuTest, APlanSaysWhetherTheRunWouldStartBesideThoseThatWait) {
  const auto gpu_run = [](const std::string& script, uint64_t gpus, int64_t limit_s) {
    v1::JobSpec spec = Script(script);
    spec.mutable_resources()->add_gpus()->set_count_millis(gpus * 1000);
    if (limit_s > 0) spec.mutable_time_limit()->set_seconds(limit_s);
    return spec;
  };
  const auto queue_of = [](const v1::JobPlan& plan) {
    for (const v1::ClusterCheck& check : plan.checks()) {
      if (check.subject() == "the machine's queue") return check.seen();
    }
    return std::string();
  };
  const auto wait_of = [](const v1::JobPlan& plan) {
    if (!plan.has_estimated_start_time()) return absl::InfiniteDuration();
    return absl::FromUnixSeconds(plan.estimated_start_time().seconds()) - absl::Now();
  };
  const std::string running = Submit(gpu_run("cat " + Gate("gate"), 3, 3600));
  AwaitState(running, v1::RUN_STATE_RUNNING);
  const std::string large = Submit(gpu_run("true", 4, 0));
  AwaitReason(large, "waiting for 4 GPUs");

  const auto passes = backend_->Plan(gpu_run("true", 1, 60), "");
  ASSERT_TRUE(passes.ok()) << passes.status();
  EXPECT_LT(wait_of(*passes), absl::Minutes(1));
  EXPECT_EQ(queue_of(*passes), "1 run waits, and this one would start before it");
  const auto too_long = backend_->Plan(gpu_run("true", 1, 7200), "");
  EXPECT_EQ(wait_of(*too_long), absl::InfiniteDuration());
  EXPECT_EQ(queue_of(*too_long), "1 run waits before it");
  v1::JobSpec urgent = gpu_run("true", 1, 7200);
  urgent.set_priority(1);
  EXPECT_LT(wait_of(*backend_->Plan(urgent, "")), absl::Minutes(1));

  ASSERT_TRUE(HoldOne(*backend_, handles_[large], true).ok());
  AwaitReason(large, "held");
  const auto beside_held = backend_->Plan(gpu_run("true", 1, 7200), "");
  EXPECT_LT(wait_of(*beside_held), absl::Minutes(1));
  EXPECT_EQ(queue_of(*beside_held), "0 runs wait before it");
  const auto after_running = backend_->Plan(gpu_run("true", 4, 0), "");
  EXPECT_GT(wait_of(*after_running), absl::Minutes(55));
  EXPECT_LE(wait_of(*after_running), absl::Hours(1) + config_.cancel_grace);
  Cancel(large);
  Open(dir_ / "gate");
  AwaitEnd(running);
}

TEST_F(GpuTest, TheTimeLimitOfARunThatAnEarlierAgentStartedStillTellsWhoMayPass) {
  const auto gpu_run = [&](const std::string& script, uint64_t gpus, int64_t limit_s) {
    v1::JobSpec spec = Script(script);
    spec.mutable_resources()->add_gpus()->set_count_millis(gpus * 1000);
    if (limit_s > 0) spec.mutable_time_limit()->set_seconds(limit_s);
    return spec;
  };
  const std::string gate = Gate("gate");
  const std::string running = Submit(gpu_run("cat " + gate, 3, 3600));
  AwaitState(running, v1::RUN_STATE_RUNNING);
  StartBackend();
  const std::string large = Submit(gpu_run("true", 4, 0));
  const std::string too_long = Submit(gpu_run("true", 1, 7200));
  const std::string short_one = Submit(gpu_run("true", 1, 60));
  EXPECT_EQ(AwaitEnd(short_one).state, v1::RUN_STATE_SUCCEEDED);
  AwaitReason(large, "waiting for 4 GPUs");
  AwaitReason(too_long, "waiting behind earlier runs");
  Open(gate);
  EXPECT_EQ(AwaitEnd(large).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitEnd(too_long).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(GpuTest, TheInventoryShowsTheMachineAsOneNode) {
  const auto inventory = backend_->Inventory();
  ASSERT_TRUE(inventory.ok());
  ASSERT_EQ(inventory->pools_size(), 1);
  EXPECT_TRUE(inventory->pools(0).is_default());
  ASSERT_EQ(inventory->pools(0).node_groups_size(), 1);
  const v1::NodeGroup& node = inventory->pools(0).node_groups(0);
  EXPECT_EQ(node.count(), 1u);
  EXPECT_EQ(node.cpus(), 8u);
  EXPECT_EQ(node.memory_bytes(), 1ULL << 30);
  EXPECT_EQ(node.gpus().at("h100"), 4u);
  EXPECT_FALSE(inventory->identity().empty());
}

}  // namespace
}  // namespace muster::machines
