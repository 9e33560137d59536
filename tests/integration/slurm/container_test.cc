// Tests the container fields of jobs, on a real cluster with stand-ins for Pyxis and enroot.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/image_fixture.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kBash[] = "registry.test/muster/bash:latest";
constexpr char kBashFile[] = "registry.test+muster+bash=latest.sqsh";
constexpr char kSlow[] = "registry.test/muster/slow:1";
constexpr char kSlowName[] = "muster-image-registry.test+muster+slow=1.sqsh";
constexpr char kEnroot[] = "/home/slurmtest/.config/enroot";

class SlurmContainerTest : public ImageFixture {
 protected:
  void SetUp() override {
    fs::remove_all(kEnroot);
    backend_ = cluster_->MakeBackend(Config());
  }
  void TearDown() override { fs::remove_all(kEnroot); }

  static SlurmConfig Config() { return ConfigWith(cluster_->runs() + "/images"); }

  static v1::JobSpec SpecOf(const std::string& image, const std::string& script) {
    v1::JobSpec spec = ScriptSpec("#!/bin/bash\n" + script);
    spec.set_image(image);
    return spec;
  }
  static v1::SlurmContainer& ContainerOf(v1::JobSpec* spec) {
    return *spec->mutable_slurm()->mutable_container();
  }

  TestRun Run(const v1::JobSpec& spec) {
    TestRun run = NewRun(spec);
    Launch(*backend_, &run);
    ObserveToEnd(*backend_, {&run});
    return run;
  }
  // Returns the output of a run that succeeds.
  std::string OutputOf(const v1::JobSpec& spec) {
    const TestRun run = Run(spec);
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED)
        << run.last.evidence.DebugString()
        << (run.last.failure.has_value() ? run.last.failure->DebugString() : "")
        << Output(*backend_, run, 0, v1::LOG_STREAM_STDERR);
    return Output(*backend_, run);
  }

  // Imports of the slow image wait until the file is removed.
  static void HoldImports() {
    fs::create_directories(kEnroot);
    fs::permissions(kEnroot, fs::perms::all);
    fs::remove(fs::path(kEnroot) / "held");
    std::ofstream(fs::path(kEnroot) / "hold").flush();
  }
  static void AwaitHeldImport() {
    WaitFor("an import waits", [] { return fs::exists(fs::path(kEnroot) / "held"); });
  }

  std::unique_ptr<agents::Backend> backend_;
};

TEST_F(SlurmContainerTest, AContainerIsWrittenIntoOnlyIfTheJobSaysSo) {
  v1::JobSpec spec = SpecOf(kBash, "touch /etc/x 2>/dev/null && echo yes || echo no");
  EXPECT_EQ(OutputOf(spec), "no\n");
  ContainerOf(&spec).set_writable(true);
  EXPECT_EQ(OutputOf(spec), "yes\n");
}

TEST_F(SlurmContainerTest, InputsAreShownReadOnlyWhereTheJobWantsThemAndResultsAreKept) {
  const std::string data = cluster_->runs() + "/data";
  const std::string results = cluster_->runs() + "/results/7";
  fs::create_directories(data);
  std::ofstream(data + "/x") << "there\n";
  v1::JobSpec spec = SpecOf(kBash,
                            "read -r line </train/x; echo $line\n"
                            "{ : >/train/y; } 2>/dev/null || echo read-only\n"
                            "echo made >$MUSTER_RESULTS_DIR/out");
  v1::Input* input = spec.add_inputs();
  input->set_uri("lustre://" + data);
  input->set_path("/train");
  spec.set_results_directory("lustre://" + results);
  EXPECT_EQ(OutputOf(spec), "there\nread-only\n");
  std::string made;
  std::ifstream(results + "/out") >> made;
  EXPECT_EQ(made, "made");
}

TEST_F(SlurmContainerTest, ANamedContainerIsKeptFromSetupToCommandAndForTheNextRun) {
  v1::JobSpec spec = SpecOf(kBash, "cat /etc/kept");
  spec.set_setup("#!/bin/bash\necho setup >>/etc/kept\n");
  spec.mutable_slurm()->set_nodelist("n1");
  ContainerOf(&spec).set_writable(true);
  const TestRun without = Run(spec);
  EXPECT_EQ(without.handle.state, v1::RUN_STATE_FAILED);
  ContainerOf(&spec).set_name("kept-1.0");
  EXPECT_EQ(OutputOf(spec), "setup\n");
  EXPECT_EQ(OutputOf(spec), "setup\nsetup\n");
}

TEST_F(SlurmContainerTest, TheHomeIsThereOrNotAsTheJobSays) {
  v1::JobSpec spec = SpecOf(kBash, "grep -c ' /home/slurmtest ' /proc/mounts || true");
  ContainerOf(&spec).set_mount_home(true);
  EXPECT_EQ(OutputOf(spec), "1\n");
  ContainerOf(&spec).set_mount_home(false);
  EXPECT_EQ(OutputOf(spec), "0\n");
}

TEST_F(SlurmContainerTest, TheCommandIsRootOrTheUserAsTheJobSays) {
  v1::JobSpec spec = SpecOf(kBash, "id -u");
  ContainerOf(&spec).set_remap_root(true);
  EXPECT_EQ(OutputOf(spec), "0\n");
  ContainerOf(&spec).set_remap_root(false);
  EXPECT_NE(OutputOf(spec), "0\n");
}

TEST_F(SlurmContainerTest, AnEntrypointRunsOnlyIfAskedAndSeesTheJobsVariables) {
  v1::JobSpec spec = SpecOf("registry.test/muster/entrypoint:1",
                            "echo \"${ENTRYPOINT-none}:${SAW-none}:$GREETING:$NODE_RANK\"");
  const std::string greeting = "a 'b' \"c\" $(id) \\ end";
  (*spec.mutable_env())["GREETING"] = greeting;
  // Names that batch.sh has itself.
  (*spec.mutable_env())["container"] = "mine";
  (*spec.mutable_env())["PATH"] = "/nowhere";
  spec.set_nodes(2);
  EXPECT_EQ(OutputOf(spec), fmt::format("none:none:{}:0\n", greeting));
  ContainerOf(&spec).set_entrypoint(true);
  const TestRun run = Run(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(Output(*backend_, run, rank), fmt::format("ran:{0}:{0}:{1}\n", greeting, rank));
  }
}

TEST_F(SlurmContainerTest, AnEntrypointThatRunsNothingFailsTheRunAsItsImage) {
  v1::JobSpec spec = SpecOf("registry.test/muster/stubborn:1", "echo never");
  ContainerOf(&spec).set_entrypoint(true);
  const TestRun run = Run(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("entrypoint"));
  EXPECT_THAT(run.last.failure->remedy(), HasSubstr("slurm.container.entrypoint"));
}

TEST_F(SlurmContainerTest, TheImagesVariablesWinOverTheNodesUnlessNamedAndNeverOverTheJobs) {
  v1::JobSpec spec = SpecOf("registry.test/muster/env:1", "echo $IMAGE_ONLY $SHARED; echo $PATH");
  EXPECT_EQ(OutputOf(spec), "from-image from-image\n/opt/image/bin:/usr/bin:/bin\n");
  (*spec.mutable_env())["SHARED"] = "from-job";
  ContainerOf(&spec).add_env("PATH");
  const std::string output = OutputOf(spec);
  EXPECT_THAT(output, testing::StartsWith("from-image from-job\n"));
  EXPECT_THAT(output, HasSubstr("/usr/sbin"));
  EXPECT_THAT(output, testing::Not(HasSubstr("/opt/image/bin")));
}

TEST_F(SlurmContainerTest, TheWorkingDirectoryIsOneOfTheImageAndOneThatIsNotThereIsNamed) {
  v1::JobSpec spec = SpecOf(kBash, "pwd");
  spec.set_working_directory("/workspace");
  EXPECT_EQ(OutputOf(spec), "/workspace\n");
  spec.set_working_directory("/no where");
  const TestRun run = Run(spec);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("\"/no where\""));
}

TEST_F(SlurmContainerTest, ARefreshReplacesTheFileInOneStepAndOthersReuseIt) {
  v1::JobSpec spec = SpecOf(kBash, ". /etc/os-release; echo $BUILD");
  const std::string first = OutputOf(spec);
  EXPECT_EQ(OutputOf(spec), first);
  const std::string file = Config().image_dir + "/" + kBashFile;
  std::ifstream old(file, std::ios::binary);
  v1::JobSpec refresh = spec;
  ContainerOf(&refresh).set_refresh_image(true);
  const std::string second = OutputOf(refresh);
  EXPECT_NE(second, first);
  EXPECT_EQ(OutputOf(spec), second);
  // Writes the file as a run that began before would.
  std::string magic(4, '\0');
  old.read(magic.data(), 4);
  EXPECT_EQ(magic, "hsqs");
  EXPECT_EQ(ReadWhole(file + ".made"), second);
}

TEST_F(SlurmContainerTest, ARefreshThatFailsFailsTheRunAndTheOldFileStays) {
  const fs::path credentials = fs::path(kEnroot) / ".credentials";
  fs::create_directories(kEnroot);
  std::ofstream(credentials) << "machine private.test login ci password open-sesame\n";
  v1::JobSpec spec = SpecOf("private.test/team/train:1", "echo ran");
  EXPECT_EQ(OutputOf(spec), "ran\n");
  fs::remove(credentials);
  v1::JobSpec refresh = spec;
  ContainerOf(&refresh).set_refresh_image(true);
  const TestRun run = Run(refresh);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(run.last.failure->ShortDebugString(), HasSubstr("401 Unauthorized"));
  EXPECT_EQ(OutputOf(spec), "ran\n");
}

TEST_F(SlurmContainerTest, RefreshesShareAConversionThatWaitsAndNoneThatHasBegun) {
  HoldImports();
  v1::JobSpec spec = SpecOf(kSlow, ". /etc/os-release; echo $BUILD");
  ContainerOf(&spec).set_refresh_image(true);
  std::vector<TestRun> runs;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(NewRun(spec));
    Launch(*backend_, &runs.back());
    AwaitHeldImport();
  }
  fs::remove(fs::path(kEnroot) / "hold");
  ObserveToEnd(*backend_, {&runs[0], &runs[1], &runs[2]});
  EXPECT_NE(Output(*backend_, runs[1]), "");
  EXPECT_EQ(Output(*backend_, runs[1]), Output(*backend_, runs[2]));
  EXPECT_EQ(Output(*backend_, runs[1]),
            ReadWhole(Config().image_dir + "/registry.test+muster+slow=1.sqsh.made"));
}

TEST_F(SlurmContainerTest, NodesPullAnImageThatCouldNotBeConvertedOnlyIfTheClusterSaysSo) {
  SlurmConfig config = Config();
  config.image_dir += "-pulled";
  for (const bool pull : {false, true}) {
    config.pull_if_conversion_fails = pull;
    backend_ = cluster_->MakeBackend(config);
    HoldImports();
    TestRun run = NewRun(SpecOf(kSlow, "echo ran"));
    Launch(*backend_, &run);
    AwaitHeldImport();
    cluster_->AsRoot(fmt::format("scancel --name={}", kSlowName));
    fs::remove(fs::path(kEnroot) / "hold");
    ObserveToEnd(*backend_, {&run});
    const std::string error = Output(*backend_, run, 0, v1::LOG_STREAM_STDERR);
    if (!pull) {
      EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
      EXPECT_THAT(run.last.failure->ShortDebugString(), HasSubstr("stopped before it ended"));
      EXPECT_EQ(error, "");
      continue;
    }
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
    EXPECT_EQ(Output(*backend_, run), "ran\n");
    EXPECT_THAT(error, HasSubstr("each node pulls registry.test#muster/slow:1 itself"));
    EXPECT_THAT(error, HasSubstr("stopped before it ended"));
    EXPECT_THAT(run.last.evidence.detail(), HasSubstr("each node pulled it"));
  }
}

TEST_F(SlurmContainerTest, NodesPullAnImageWhoseConversionSlurmRefusesIfTheClusterSaysSo) {
  SlurmConfig config = Config();
  config.image_dir += "-refused";
  config.conversion_partition = "nosuch";
  config.pull_if_conversion_fails = true;
  backend_ = cluster_->MakeBackend(config);
  TestRun run = NewRun(SpecOf(kBash, "echo ran"));
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, *run.handle.assignment);
  ASSERT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.failure.message();
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("Invalid partition name specified"));
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("each node pulls it itself"));
  run.handle.external_id = outcome.external_id;
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(Output(*backend_, run), "ran\n");
}

// scancel sends the signal in the way of slurmctld, which itself looks at time limits every 30 s
// only.
TEST_F(SlurmContainerTest, ASignalBeforeTheTimeLimitReachesTheCommandInEveryKindOfRun) {
  // The child ends by the signal, or else when the command of its own node has got it; the command
  // waits for its signal, also if the child has ended first, and for that of the other node,
  // because the first that fails ends all.
  const std::string script =
      "trap 'echo command; got=1; [ $ALL ] || : >done.$NODE_RANK' USR1\n"
      "bash -c 'trap \"echo child; exit\" USR1; echo up; until [ -e done.$NODE_RANK ]; do sleep "
      "0.1; "
      "done' &\n"
      "until [ \"$got\" ]; do sleep 0.1; done; wait $!\n"
      "[ $ALL ] || until [ $(ls done.* | wc -l) -ge $NNODES ]; do sleep 0.1; done; exit 3";
  for (const auto& [signal, image, nodes] : {std::tuple("USR1@30", "", 1),
                                             {"B:10@30", "", 1},
                                             {"B:USR1@30", "", 2},
                                             {"B:USR1@30", kBash, 1}}) {
    const bool is_alone = std::string_view(signal).starts_with("B:");
    v1::JobSpec spec = SpecOf(image, script);
    spec.mutable_time_limit()->set_seconds(600);
    (*spec.mutable_env())["ALL"] = is_alone ? "" : "1";
    spec.set_nodes(static_cast<uint32_t>(nodes));
    spec.mutable_slurm()->set_signal(signal);
    TestRun run = NewRun(spec);
    Launch(*backend_, &run);
    for (uint32_t rank = 0; rank < spec.nodes(); ++rank) {
      WaitFor("it runs", [&] { return Output(*backend_, run, rank) == "up\n"; });
    }
    cluster_->AsRoot(fmt::format("scancel {} --signal=USR1 {}", is_alone ? "--batch" : "",
                                 run.handle.external_id));
    ObserveToEnd(*backend_, {&run});
    ASSERT_TRUE(run.last.exit.has_value()) << run.last.evidence.DebugString();
    EXPECT_EQ(run.last.exit->code(), 3) << signal;
    for (uint32_t rank = 0; rank < spec.nodes(); ++rank) {
      const std::string output = Output(*backend_, run, rank);
      EXPECT_THAT(output, HasSubstr("command\n")) << signal;
      EXPECT_EQ(output.find("child\n") != std::string::npos, !is_alone) << signal;
    }
  }
}

}  // namespace
}  // namespace muster::slurm
