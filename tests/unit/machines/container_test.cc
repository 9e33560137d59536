// Runs in containers: by podman itself where this machine lets it run, and by programs of the other
// tools' names that note their words and start what they are told to.
#include "agents/machines/container.h"

#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "agents/hosts/local_host.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"
#include "fmt/format.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kImage[] = "docker.io/library/busybox:1";

ContainerRequest RequestFor(const std::string& tool) {
  ContainerRequest request;
  request.tool = tool;
  request.image = kImage;
  request.name = "muster-k-1-1.7";
  request.directory = "/runs/k-1-1";
  request.mounts = {"/runs/k-1-1:/runs/k-1-1", "/data:/d:ro"};
  request.user = 1000;
  request.group = 100;
  return request;
}

// Returns whether the file comes within the patience.
bool AwaitFile(const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
  while (!Exists(path)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(ContainerWords, GpusAreShownToTheContainerAsEachToolTakesThem) {
  const auto run_of = [](const std::string& tool, bool is_amd) {
    ContainerRequest request = RequestFor(tool);
    request.gpus = {"GPU-a", "GPU-b"};
    request.has_amd_gpus = is_amd;
    return PlanContainer(request);
  };
  EXPECT_THAT(run_of(kPodman, false).run, AllOf(Contains("--device=nvidia.com/gpu=GPU-a"),
                                                Contains("--device=nvidia.com/gpu=GPU-b")));
  EXPECT_THAT(run_of(kDocker, false).run, Contains("--gpus=\"device=GPU-a,GPU-b\""));
  EXPECT_THAT(run_of(kApptainer, false).run, Contains("--nv"));
  EXPECT_THAT(run_of(kEnroot, false).environment, Contains("NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b"));
  for (const char* tool : {kPodman, kDocker}) {
    EXPECT_THAT(run_of(tool, true).run,
                AllOf(Contains("--device=/dev/kfd"), Contains("--device=/dev/dri")));
  }
  EXPECT_THAT(run_of(kApptainer, true).run, Contains("--rocm"));
  EXPECT_THAT(run_of(kEnroot, true).run, Contains("/dev/kfd:/dev/kfd"));
  EXPECT_THAT(PlanContainer(RequestFor(kEnroot)).environment,
              Contains("NVIDIA_VISIBLE_DEVICES=void"));
}

TEST(ContainerWords, MountsLimitsAndUserAreWordsOfEachTool) {
  ContainerRequest request = RequestFor(kDocker);
  request.memory_bytes = 1024;
  request.cores = 2;
  EXPECT_THAT(PlanContainer(request).run,
              AllOf(Contains("--volume=/data:/d:ro"), Contains("--memory=1024"),
                    Contains("--memory-swap=1024"), Contains("--cpus=2"),
                    Contains("--user=1000:100"), Contains("--security-opt=no-new-privileges")));
  // The root of podman is the user.
  EXPECT_THAT(PlanContainer(RequestFor(kPodman)).run, Contains("--user=0:0"));
  EXPECT_THAT(PlanContainer(RequestFor(kApptainer)).run, Contains("/data:/d:ro"));
  EXPECT_THAT(PlanContainer(RequestFor(kEnroot)).run,
              AllOf(Contains("/data:/d:none:x-create=auto,rbind,ro"),
                    Contains("/runs/k-1-1:/runs/k-1-1:none:x-create=auto,rbind,rw")));
  EXPECT_THAT(PlanContainer(RequestFor(kEnroot)).pull[0],
              Contains("docker://docker.io#library/busybox:1"));
}

// Runs the script under a real shell.
hosts::CommandResult Enter(const hosts::TempDir& dir, const std::string& script,
                           const std::vector<std::string>& words) {
  hosts::LocalHost host;
  EXPECT_TRUE(host.WriteFile(dir / "enter", script, {}).ok());
  hosts::Command command = {.argv = {"/bin/sh", dir / "enter"}, .timeout = kPatience};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return host.Run(command).value();
}

TEST(EnterScriptTest, VariablesArriveWhateverIsInThem) {
  const hosts::TempDir dir;
  const std::string script =
      EnterScript({"A=two\nlines", "B=it's $HOME `id` \"x\" \\", "not-a-name=1", "1=2", "C="},
                  dir.path(), true);
  EXPECT_EQ(Enter(dir, script, {"/bin/sh", "-c", "printf '<%s>' \"$A\" \"$B\" \"${C-unset}\"; pwd"})
                .stdout_data,
            "<two\nlines><it's $HOME `id` \"x\" \\><>" + dir.path() + "\n");
}

TEST(EnterScriptTest, TheCodeIsTheProgramsInEitherForm) {
  const hosts::TempDir dir;
  for (const bool is_first : {true, false}) {
    EXPECT_EQ(Enter(dir, EnterScript({}, "/", is_first), {"/bin/sh", "-c", "exit 7"}).exit_code, 7);
    EXPECT_EQ(Enter(dir, EnterScript({}, "/no/such/place", is_first), {"true"}).exit_code, 1);
  }
}

TEST(EnterScriptTest, ATermOfTheFirstProcessIsHandedOnAndItsEndAwaited) {
  const hosts::TempDir dir;
  // The program tells its parent, the script.
  const hosts::CommandResult end = Enter(dir, EnterScript({}, "/", true),
                                         {"/bin/sh", "-c",
                                          "trap 'echo took leave; exit 9' TERM; kill -TERM $PPID; "
                                          "while :; do sleep 0.01; done"});
  EXPECT_EQ(end.stdout_data, "took leave\n");
  EXPECT_EQ(end.exit_code, 9);
}

// A program of the tool's name, found before any other, that notes its words and does what the tool
// would.
class FakeToolTest : public BackendTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    old_path_ = getenv("PATH");
    setenv("PATH", (dir_ / "bin:" + old_path_).c_str(), 1);
    hosts::LocalHost host;
    ASSERT_TRUE(host.MakeDirectories(dir_ / "bin", 0755).ok());
    const std::string script = fmt::format(R"(#!/bin/sh
printf '%s\n' "$0 $*" >>{0}/words
env >>{0}/tool-environment
case "$1" in
  version | --version) exit 0 ;;
  info) cat {0}/limits 2>/dev/null || printf 'a warning\n[cpuset cpu memory pids]\ntrue true\n'; exit 0 ;;
  ps | list) cat {0}/list 2>/dev/null; exit 0 ;;
  image) exit 1 ;;
  pull | import | create)
    test ! -e {0}/no-image || {{ echo "manifest unknown: $2" >&2; exit 1; }}
    test "$1" != create || echo "$3" >>{0}/created
    exit 0 ;;
  inspect) cat {0}/oom 2>/dev/null || echo false; exit 0 ;;
  kill) test ! -e {0}/hangs || {{ sleep 20; touch {0}/outlived; }}; exit 1 ;;
  rm | remove) test ! -e {0}/stuck; exit ;;
esac
# run, exec, start: to the program.
while [ "$1" != /bin/sh ] && [ "$1" != --rc ]; do shift; done
if [ "$1" = --rc ]; then grep -qx "$3" {0}/created || exit 1; script=$2; shift 3; exec /bin/sh "$script" "$@"; fi
exec "$@"
)",
                                           dir_.path());
    ASSERT_TRUE(host.WriteFile(dir_ / "bin/" + GetParam(), script, {.mode = 0755}).ok());
    config_.container_runtime = GetParam();
    BackendTest::SetUp();
  }
  void TearDown() override { setenv("PATH", old_path_.c_str(), 1); }

  static v1::JobSpec InContainer(v1::JobSpec spec) {
    spec.set_image("busybox:1");
    return spec;
  }
  std::string Words() const { return ReadAll(dir_ / "words"); }
  // Returns whether the tool is told these.
  bool AwaitWords(const std::string& words) const {
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
    while (Words().find(words) == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  pid_t SupervisorOf(const std::string& run_key) const {
    std::string bytes;
    EXPECT_EQ(ReadSmallFile(RunDir(run_key) + "/claim", kMaxRecordBytes, &bytes), 0);
    return Claim::Decode(bytes)->owner.pid;
  }
  pid_t KillSupervisor(const std::string& run_key) const {
    const pid_t pid = SupervisorOf(run_key);
    kill(pid, SIGKILL);
    return pid;
  }
  std::string NameInList(const std::string& run_key) const {
    return fmt::format("muster-{}.{}", run_key, SupervisorOf(run_key));
  }

  std::string old_path_;
};

std::string ToolName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Tools, FakeToolTest,
                         ::testing::Values(kPodman, kDocker, kEnroot, kApptainer), ToolName);

TEST_P(FakeToolTest, ARunIsStartedInAContainerAndKeepsItsCode) {
  v1::JobSpec spec = InContainer(Script("echo \"$TOKEN\"; pwd; echo $MUSTER_NODE_RANK; exit 5"));
  (*spec.mutable_env())["TOKEN"] = "s3cret\nof two lines";
  spec.set_setup("echo setup");
  const std::string run_key = Submit(spec);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.exit->code(), 5);
  EXPECT_EQ(Stdout(run_key),
            fmt::format("setup\ns3cret\nof two lines\n{}/work\n0\n", RunDir(run_key)));
  EXPECT_THAT(Words(), HasSubstr("docker.io"));
  EXPECT_THAT(Words(), Not(HasSubstr("s3cret")));
  EXPECT_THAT(ReadAll(dir_ / "tool-environment"), Not(HasSubstr("s3cret")));
  // Nothing is left that somebody would have to remove.
  EXPECT_FALSE(Exists(RunDir(run_key) + "/containers"));
}

TEST_P(FakeToolTest, AnImageThatCannotBeHadFailsInTheToolsOwnWords) {
  std::ofstream(dir_ / "no-image") << "";
  const agents::Observation end = RunToEnd(InContainer(Script("echo no")));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(end.failure->message(), HasSubstr("manifest unknown"));
  EXPECT_EQ(end.failure->code(), v1::FAILURE_CODE_IMAGE_NOT_FOUND);
}

TEST_P(FakeToolTest, ACancelEndsTheProgram) {
  const std::string run_key = Submit(
      InContainer(Script("trap 'echo took leave; exit 3' TERM; touch \"$MUSTER_RUN_DIR/ready\"; "
                         "while :; do sleep 0.01; done")));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(AwaitFile(RunDir(run_key) + "/ready"));
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  // It comes twice if the tool's signal and the group's come one right after the other: a real
  // tool's program is in no group of the supervisor's.
  EXPECT_THAT(Stdout(run_key), StartsWith("took leave\n"));
}

class GpuToolTest : public FakeToolTest {
 protected:
  GpuToolTest() {
    config_.cpus = 8;
    config_.gpus = {{{"h100", 4}}};
  }
  static v1::JobSpec OnTwoGpus(v1::JobSpec spec) {
    v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
    gpus->set_type("h100");
    gpus->set_count_millis(2000);
    return InContainer(std::move(spec));
  }
};
INSTANTIATE_TEST_SUITE_P(Tools, GpuToolTest,
                         ::testing::Values(kPodman, kDocker, kEnroot, kApptainer), ToolName);

TEST_P(GpuToolTest, AContainerHasTheGpusOfItsRunAndNumbersThemAsItSeesThem) {
  const std::string gate = Gate("gate");
  const std::string first = Submit(OnTwoGpus(Script("cat " + gate)));
  AwaitState(first, v1::RUN_STATE_RUNNING);
  const std::string second = Submit(OnTwoGpus(Script("echo $CUDA_VISIBLE_DEVICES")));
  EXPECT_EQ(AwaitEnd(second).state, v1::RUN_STATE_SUCCEEDED);
  // Only apptainer's containers see the others, too.
  EXPECT_EQ(Stdout(second), GetParam() == std::string(kApptainer) ? "2,3\n" : "0,1\n");
  const std::map<std::string, std::string> told = {
      {kPodman, " --device=nvidia.com/gpu=2 --device=nvidia.com/gpu=3 "},
      {kDocker, " --gpus=\"device=2,3\" "},
      {kEnroot, "\nNVIDIA_VISIBLE_DEVICES=2,3\n"},
      {kApptainer, " --nv "}};
  EXPECT_THAT(Words() + ReadAll(dir_ / "tool-environment"), HasSubstr(told.at(GetParam())));
  Open(gate);
  AwaitEnd(first);
}

using LimitingToolTest = FakeToolTest;
INSTANTIATE_TEST_SUITE_P(Tools, LimitingToolTest, ::testing::Values(kPodman, kDocker), ToolName);

TEST_P(LimitingToolTest, AKillForMemoryIsToldByTheToolsThatKnow) {
  std::ofstream(dir_ / "oom") << "true\n";
  v1::JobSpec spec = InContainer(Script("exit 137"));
  spec.mutable_resources()->set_memory_bytes(64 << 20);
  const agents::Observation end = RunToEnd(spec);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_OOM);
  EXPECT_THAT(end.failure->message(), HasSubstr("memory limit of 64Mi"));
  EXPECT_THAT(Words(), HasSubstr("--memory=67108864"));
}

TEST_P(LimitingToolTest, AKillWithoutALimitIsNotCalledOneAtTheLimit) {
  std::ofstream(dir_ / "oom") << "true\n";
  const agents::Observation end = RunToEnd(InContainer(Script("exit 137")));
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_THAT(end.failure->message(), Not(HasSubstr("limit")));
}

TEST_P(LimitingToolTest, ARunGoesWithoutLimitsThatTheToolCannotSet) {
  std::ofstream(dir_ / "limits") << "[cpuset cpu pids]\nfalse true\n";
  v1::JobSpec spec = InContainer(Script("exit 0"));
  spec.mutable_resources()->set_memory_bytes(64 << 20);
  const agents::Observation end = RunToEnd(spec);
  EXPECT_EQ(end.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(end.evidence.detail(), HasSubstr(fmt::format("it ran without limits: {} can set no "
                                                           "limit of memory",
                                                           GetParam())));
  EXPECT_THAT(Words(), Not(HasSubstr("--memory")));
}

TEST_P(LimitingToolTest, AToolThatHangsAtACancelIsWaitedForNoLongerThanTheGrace) {
  config_.cancel_grace = absl::Milliseconds(300);
  StartBackend();
  const std::string run_key = Submit(InContainer(Script("exec sleep 1000")));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  std::ofstream(dir_ / "hangs") << "";
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(Words(), HasSubstr("kill --signal=TERM"));
  EXPECT_FALSE(Exists(dir_ / "outlived"));
}

using LeavingToolTest = FakeToolTest;
INSTANTIATE_TEST_SUITE_P(Tools, LeavingToolTest, ::testing::Values(kPodman, kDocker, kEnroot),
                         ToolName);

TEST_P(LeavingToolTest, AContainerWhoseSupervisorIsKilledIsRemovedByItsName) {
  const std::string tool = GetParam();
  const std::string run_key = Submit(InContainer(Script("cat " + Gate("gate"))));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  const pid_t supervisor = KillSupervisor(run_key);
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  const std::vector<std::string> words =
      RemovalOf(tool, fmt::format("muster-{}.{}", run_key, supervisor));
  EXPECT_THAT(Words(), HasSubstr(fmt::format("{}", fmt::join(words, " "))));
  EXPECT_FALSE(Exists(RunDir(run_key) + "/containers"));
}

// Tries again after 5 s, so with one tool.
using StuckToolTest = FakeToolTest;
INSTANTIATE_TEST_SUITE_P(Tools, StuckToolTest, ::testing::Values(kDocker), ToolName);

TEST_P(StuckToolTest, ARunIsGivenUpOnlyWhenItsContainerIsGone) {
  v1::JobSpec spec = InContainer(Script("cat " + Gate("gate")));
  const std::string run_key = Submit(spec);
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  std::ofstream(dir_ / "stuck") << "";
  std::ofstream(dir_ / "list") << NameInList(run_key) << "\n";
  KillSupervisor(run_key);
  ASSERT_TRUE(AwaitWords("ps --all"));
  // Others come and go meanwhile.
  EXPECT_EQ(RunToEnd(Script("true")).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitState(run_key, v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
  std::filesystem::remove(dir_ / "list");
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_FALSE(Exists(RunDir(run_key) + "/containers"));
}

TEST_P(StuckToolTest, AnAgentThatComesBackFindsAContainerThatIsStillThere) {
  const std::string run_key = Submit(InContainer(Script("cat " + Gate("gate"))));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  StopBackend();
  KillSupervisor(run_key);
  StartBackend();
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_FALSE(Exists(RunDir(run_key) + "/containers"));
}

using ContainerTest = BackendTest;

TEST_F(ContainerTest, AMachineWithoutARuntimeRefusesAnImageWithTheRemedy) {
  v1::JobSpec spec = Script("true");
  spec.set_image("busybox:1");
  const agents::LaunchOutcome outcome = Launch("k-1-1", spec);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("runs no containers"));
  EXPECT_THAT(outcome.failure.remedy(), HasSubstr("install podman"));
  EXPECT_EQ(backend_->Inventory()->images(), v1::IMAGE_SUPPORT_NONE);
}

TEST(ContainerWords, WhatAToolCannotLimitIsSaid) {
  EXPECT_EQ(WhyNoLimits(kPodman, "WARN x\n[cpuset cpu memory]\n", 1, 1), "");
  EXPECT_EQ(WhyNoLimits(kPodman, "[]\n", 0, 0), "");
  EXPECT_THAT(WhyNoLimits(kPodman, "[cpuset memory]\n", 1, 1), HasSubstr("no limit of cores"));
  EXPECT_THAT(WhyNoLimits(kPodman, "[]\n", 1, 0), HasSubstr("no limit of memory"));
  EXPECT_EQ(WhyNoLimits(kDocker, "true true\n", 1, 1), "");
  EXPECT_THAT(WhyNoLimits(kDocker, "true false\n", 1, 1), HasSubstr("no limit of cores"));
  EXPECT_THAT(WhyNoLimits(kDocker, "false true\n", 1, 1), HasSubstr("no limit of memory"));
  EXPECT_THAT(WhyNoLimits(kDocker, "", 1, 1), HasSubstr("does not say"));
}

// Tests on podman itself, with an image of this machine's busybox.
class PodmanTest : public BackendTest {
 protected:
  void SetUp() override {
    std::ofstream(dir_ / "containers.conf")
        // The limits that a sandbox allows.
        << "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n"
        << (access("/usr/bin/runc", X_OK) == 0 || access("/usr/sbin/runc", X_OK) == 0
                ? "[engine]\nruntime = \"runc\"\n"
                : "");
    setenv("CONTAINERS_CONF", (dir_ / "containers.conf").c_str(), 1);
    const hosts::CommandResult made = Shell(
        fmt::format("cd {} && mkdir -p root/bin root/tmp root/etc root/proc root/sys root/dev && "
                    "cp /bin/busybox root/bin && for p in sh cat echo sleep id pwd env; do "
                    "ln -s busybox root/bin/$p; done && tar -C root -cf root.tar . && "
                    "podman import -q root.tar {} && podman run --rm --pull=never {} /bin/sh -c :",
                    dir_.path(), kLocalImage, kLocalImage));
    ASSERT_TRUE(made.ok()) << "podman and busybox-static are needed (deploy/install-deps test): "
                           << made.stderr_data;
    config_.container_runtime = kPodman;
    BackendTest::SetUp();
  }
  void TearDown() override { unsetenv("CONTAINERS_CONF"); }

  hosts::CommandResult Shell(const std::string& line) {
    hosts::LocalHost host;
    return host.Run({.argv = {"/bin/sh", "-c", line}, .timeout = kPatience}).value();
  }
  static v1::JobSpec InContainer(v1::JobSpec spec) {
    spec.set_image(kLocalImage);
    return spec;
  }
  std::string Left(const std::string& run_key) {
    return Shell("podman ps --all --noheading --format '{{.Names}}' --filter name=" + run_key)
        .stdout_data;
  }

  static constexpr char kLocalImage[] = "localhost/muster-unit-test:1";
};

TEST_F(PodmanTest, ARunHasItsFilesItsVariablesAndItsCode) {
  v1::JobSpec spec = InContainer(
      Script("#!/bin/sh\nbusybox | head -1 | cat - >/dev/null; test ! -e /usr && echo inside; "
             "echo \"$TOKEN\" $MUSTER_NODE_RANK; cat made-by-setup; id -u; exit 4"));
  spec.set_setup("#!/bin/sh\necho setup >made-by-setup\n");
  (*spec.mutable_env())["TOKEN"] = "two\nlines";
  const std::string run_key = Submit(spec);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.exit->code(), 4);
  EXPECT_EQ(Stdout(run_key), "inside\ntwo\nlines 0\nsetup\n0\n")
      << ReadAll(RunDir(run_key) + "/stderr");
  EXPECT_EQ(Left(run_key), "");
}

TEST_F(PodmanTest, ACancelGivesTheGraceAndLeavesNothing) {
  const std::string run_key =
      Submit(InContainer(Script("#!/bin/sh\ntrap 'echo took leave; exit 3' TERM; echo x >ready; "
                                "while :; do sleep 0.1; done\n")));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(AwaitFile(RunDir(run_key) + "/work/ready"));
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(Stdout(run_key), "took leave\n");
  EXPECT_EQ(Left(run_key), "");
}

TEST_F(PodmanTest, WhatIgnoresATermIsKilledWithItsContainer) {
  config_.cancel_grace = absl::Milliseconds(300);
  StartBackend();
  const std::string run_key = Submit(
      InContainer(Script("#!/bin/sh\ntrap '' TERM; echo x >ready; while :; do sleep 0.1; done\n")));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(AwaitFile(RunDir(run_key) + "/work/ready"));
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(Left(run_key), "");
}

TEST_F(PodmanTest, ARunThatUsesMoreMemoryThanItAskedForFailsForThat) {
  v1::JobSpec spec = InContainer(
      Script("#!/bin/sh\nbusybox head -c 300000000 /dev/zero | busybox tail >/dev/null\n"));
  spec.mutable_resources()->set_memory_bytes(64 << 20);
  const agents::Observation end = RunToEnd(spec);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_OOM) << end.failure->message();
}

TEST_F(PodmanTest, AKilledSupervisorLeavesNoContainer) {
  const std::string run_key =
      Submit(InContainer(Script("#!/bin/sh\necho x >ready; while :; do sleep 0.1; done\n")));
  AwaitState(run_key, v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(AwaitFile(RunDir(run_key) + "/work/ready"));
  EXPECT_NE(Left(run_key), "");
  std::string bytes;
  ASSERT_EQ(ReadSmallFile(RunDir(run_key) + "/claim", kMaxRecordBytes, &bytes), 0);
  kill(Claim::Decode(bytes)->owner.pid, SIGKILL);
  EXPECT_EQ(AwaitEnd(run_key).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(Left(run_key), "");
}

}  // namespace
}  // namespace muster::machines
