// Tests limits of memory and cores: on the kernel's own control groups where this machine lets the
// tests make some, and on a directory that plays cgroup v2, whose controllers a machine with cgroup
// v1 does not have.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agents/machines/control_group.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"
#include "fmt/format.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

// A directory in which the files of cgroup v2 are plain ones.
class UnifiedGroupsTest : public ::testing::Test {
 protected:
  UnifiedGroupsTest() {
    Put("cgroup.controllers", "cpuset cpu io memory pids\n");
    Put("cgroup.subtree_control", "");
  }
  void Put(const std::string& name, const std::string& content) {
    const std::filesystem::path path = dir_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  GroupPlaces Find(const std::string& own) {
    Put("own", own);
    return FindGroupPlaces(dir_.path(), dir_ / "own");
  }

  hosts::TempDir dir_;
};

TEST_F(UnifiedGroupsTest, AServiceWithItsOwnGroupMakesThoseOfRunsBesideItsProcesses) {
  // The agent's request goes over the first bytes of a plain file.
  Put("system.slice/muster.service/cgroup.subtree_control", "xxxxxxx cpu memory\n");
  const GroupPlaces places = Find("0::/system.slice/muster.service/muster-agent\n");
  EXPECT_TRUE(places.is_unified);
  EXPECT_EQ(places.memory, dir_ / "system.slice/muster.service");
  EXPECT_EQ(places.cores, places.memory);
}

TEST_F(UnifiedGroupsTest, AServiceAsksForTheControllersThatRunsNeed) {
  const std::string file = "system.slice/muster.service/cgroup.subtree_control";
  Put(file, "");
  Find("0::/system.slice/muster.service/muster-agent\n");
  // A plain file keeps the last of what is written from its start.
  EXPECT_EQ(ReadAll(dir_ / file), "+cpuory");
}

TEST_F(UnifiedGroupsTest, OthersMakeThemAtTheTopAsFarAsControllersAreOnThere) {
  Put("cgroup.subtree_control", "io memory pids\n");
  const GroupPlaces places = Find("0::/user.slice/session-3.scope\n");
  EXPECT_EQ(places.memory, dir_.path());
  EXPECT_EQ(places.cores, "");
  RunGroup group;
  EXPECT_EQ(group.Make(places, "muster-run-x", {.memory_bytes = 0, .cores = 2}),
            "this user may make no control group for cores");
}

TEST_F(UnifiedGroupsTest, AGroupThatDoesNotTakeItsLimitIsNamedAndNotKept) {
  Put("cgroup.subtree_control", "cpu memory\n");
  RunGroup group;
  // A plain directory has no file for the limit.
  EXPECT_THAT(group.Make(Find("0::/\n"), "muster-run-x", {.memory_bytes = kMiB, .cores = 0}),
              HasSubstr(fmt::format("\"{}\": No such file", dir_ / "muster-run-x/memory.max")));
  EXPECT_FALSE(Exists(dir_ / "muster-run-x"));
  EXPECT_THAT(group.Entrances(), IsEmpty());
}

TEST_F(UnifiedGroupsTest, AProcessThatWasKilledForWantOfTheMachinesMemoryIsNotCounted) {
  Put("run/memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(CountOomKillsAtLimit(dir_ / "run"), 2);
  Put("run/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(CountOomKillsAtLimit(dir_ / "run"), 0);
  EXPECT_EQ(CountOomKillsAtLimit(dir_ / "none"), 0);
}

TEST(DividedGroupsTest, AProcessThatWasKilledForWantOfTheMachinesMemoryIsNotCounted) {
  hosts::TempDir dir;
  std::ofstream(dir / "memory.oom_control") << "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
  std::ofstream(dir / "memory.limit_in_bytes") << 64 * kMiB << "\n";
  std::ofstream(dir / "memory.max_usage_in_bytes") << 63 * kMiB << "\n";
  EXPECT_EQ(CountOomKillsAtLimit(dir.path()), 0);
  std::ofstream(dir / "memory.max_usage_in_bytes") << 64 * kMiB - 4096 << "\n";
  EXPECT_EQ(CountOomKillsAtLimit(dir.path()), 1);
}

TEST(DividedGroupsTest, GroupsAreMadeBelowWhatWasGivenAwayOrBelowTheOwn) {
  hosts::TempDir dir;
  std::filesystem::create_directories(dir / "memory/muster");
  std::filesystem::create_directories(dir / "cpu/system.slice");
  std::ofstream(dir / "own") << "4:memory:/lab\n3:cpu,cpuacct:/system.slice\n0::/\n";
  const GroupPlaces places = FindGroupPlaces(dir.path(), dir / "own");
  EXPECT_FALSE(places.is_unified);
  EXPECT_EQ(places.memory, dir / "memory/muster");
  EXPECT_EQ(places.cores, dir / "cpu/system.slice");
  EXPECT_THAT(RunGroup::DirectoriesOf(places, "r", {.memory_bytes = 1, .cores = 1}),
              ElementsAre(dir / "memory/muster/r", dir / "cpu/system.slice/r"));
  EXPECT_THAT(RunGroup::DirectoriesOf(places, "r", {.memory_bytes = 0, .cores = 1}),
              ElementsAre(dir / "cpu/system.slice/r"));
}

TEST(RemoveGroups, WhatARunHasWrittenIntoItsListIsLeftAlone) {
  hosts::TempDir dir;
  const std::string run = dir / "k-1-1";
  const std::string other = dir / "muster-run-k-1-1.7";
  std::filesystem::create_directories(run);
  std::filesystem::create_directories(other);
  const pid_t bystander = fork();
  if (bystander == 0) {
    pause();
    _exit(0);
  }
  // The group is not the kernel's, and not this run's.
  std::ofstream(other + "/cgroup.procs") << bystander << "\n";
  std::ofstream(run + "/groups") << other << "\n/sys/fs/cgroup/muster-run-k-2-1.7\n";
  RemoveGroupsOf(run);
  EXPECT_TRUE(Exists(other + "/cgroup.procs"));
  EXPECT_TRUE(IsAlive(bystander));
  kill(bystander, SIGKILL);
  EXPECT_TRUE(AwaitDeath(bystander));
}

TEST(Limits, WhatWasFoundArrivesAsItWasSent) {
  const LimitsFound found = {.memory = true, .cores = false, .kind = "k", .why = "w"};
  const std::optional<LimitsFound> got = LimitsFound::Decode(found.Encode());
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(got->memory);
  EXPECT_FALSE(got->cores);
  EXPECT_EQ(got->kind + got->why, "kw");
  EXPECT_FALSE(LimitsFound::Decode("sh: not found").has_value());
}

// Tests on the kernel's own groups.
class LimitsTest : public BackendTest {
 protected:
  void SetUp() override {
    const LimitsFound found = ProbeLimits();
    if (!found.memory || !found.cores)
      GTEST_SKIP() << "this machine lets the tests make no control groups: " << found.why;
    BackendTest::SetUp();
  }
  // Returns the directories of its groups.
  std::vector<std::string> GroupsOf(const std::string& run_key) const {
    std::vector<std::string> groups;
    std::ifstream file(RunDir(run_key) + "/groups");
    for (std::string line; std::getline(file, line);) groups.push_back(line);
    return groups;
  }
  static v1::JobSpec WithMemory(v1::JobSpec spec, uint64_t bytes) {
    spec.mutable_resources()->set_memory_bytes(bytes);
    return spec;
  }
};

// Takes as much memory as it is told to, and says so.
constexpr char kEater[] = "head -c {} /dev/zero | tail >/dev/null && echo fed\n";

TEST_F(LimitsTest, ARunThatUsesMoreMemoryThanItAskedForFailsForThat) {
  const std::string run_key =
      Submit(WithMemory(Script("set -e\n" + fmt::format(kEater, 200 * kMiB)), 64 * kMiB));
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(end.failure.has_value());
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_OOM);
  EXPECT_THAT(end.failure->message(), HasSubstr("killed at its memory limit of 64Mi"));
  EXPECT_THAT(end.failure->remedy(), HasSubstr("Ask for more memory"));
  EXPECT_FALSE(end.failure->retriable());
  EXPECT_THAT(end.evidence.detail(), HasSubstr("killed at its memory limit"));
  EXPECT_THAT(Stdout(run_key), Not(HasSubstr("fed")));
}

TEST_F(LimitsTest, ARunThatKeepsToItsMemorySucceedsAndLeavesNoGroup) {
  const std::string run_key = Submit(WithMemory(
      Script(fmt::format(kEater, 8 * kMiB) + "cat \"$MUSTER_RUN_DIR/groups\""), 64 * kMiB));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  const std::string output = Stdout(run_key);
  EXPECT_THAT(output, HasSubstr("fed\n/sys/fs/cgroup/"));
  const std::string group = output.substr(4, output.find('\n', 4) - 4);
  EXPECT_THAT(group, HasSubstr("muster-run-" + run_key));
  EXPECT_FALSE(Exists(group));
  EXPECT_FALSE(Exists(RunDir(run_key) + "/groups"));
}

TEST_F(LimitsTest, ARunIsHeldToTheCoresThatItAskedFor) {
  v1::JobSpec spec = Script(
      "for d in $(cat \"$MUSTER_RUN_DIR/groups\"); do cat $d/cpu.cfs_quota_us $d/cpu.max; done "
      "2>/dev/null; exit 0");
  spec.mutable_resources()->set_cpu_millis(1500);
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(Stdout(run_key), ::testing::StartsWith("200000"));
}

TEST_F(LimitsTest, ARunThatAsksForNothingHasNoGroup) {
  const std::string run_key = Submit(Script("test ! -e \"$MUSTER_RUN_DIR/groups\""));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(LimitsTest, ARunWhoseSupervisorIsKilledLeavesNoGroup) {
  const std::string gate = Gate("gate");
  const std::string run_key = Submit(WithMemory(Script(fmt::format("cat {}", gate)), 64 * kMiB));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  const std::vector<std::string> groups = GroupsOf(run_key);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(Exists(groups[0]));
  std::string bytes;
  ASSERT_EQ(ReadSmallFile(RunDir(run_key) + "/claim", kMaxRecordBytes, &bytes), 0);
  kill(Claim::Decode(bytes)->owner.pid, SIGKILL);
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_FALSE(Exists(groups[0]));
}

TEST_F(LimitsTest, ARunGoesWithoutLimitsWhereTheOperatorWantsNone) {
  config_.limits = false;
  StartBackend();
  const std::string run_key =
      Submit(WithMemory(Script(fmt::format(kEater, 200 * kMiB)), 64 * kMiB));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "fed\n");
  const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
  ASSERT_TRUE(inventory.ok());
  ASSERT_EQ(inventory->issues_size(), 1);
  EXPECT_EQ(inventory->issues(0).code(), v1::CLUSTER_ISSUE_CODE_CONFIGURATION);
  EXPECT_THAT(inventory->issues(0).message(),
              HasSubstr("not enforced, a run that uses more than it asked for is not stopped by "
                        "Muster: machines.limits is no"));
}

TEST_F(LimitsTest, WhatRunsAreHeldToIsInThePreflightAndNoWarning) {
  EXPECT_THAT(backend_->Inventory()->issues(), IsEmpty());
  const v1::ClusterChecks checks = backend_->Check();
  EXPECT_THAT(checks.DebugString(), HasSubstr("runs are held to their memory and cores, by "));
}

}  // namespace
}  // namespace muster::machines
