// Conversions of container images on a real cluster, with stand-ins for Pyxis and enroot.
#include "contract/image.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agents/hosts/local_host.h"
#include "agents/slurm/command_scheduler.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/image_cache.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/image_fixture.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// One agent's view of the cluster.
struct Agent {
  explicit Agent(SlurmConfig given)
      : config(std::move(given)),
        commands(config, &host, &gate),
        scheduler(&host, &commands),
        cache(config, &host, &scheduler) {}

  ImageCache::Ready Prepare(const std::string& image) {
    absl::StatusOr<ImageCache::Ready> ready = cache.Prepare(*contract::ParseImage(image));
    EXPECT_TRUE(ready.ok()) << ready.status();
    return ready.ok() ? *std::move(ready) : ImageCache::Ready();
  }

  // Waits until no conversion of the image is under way.
  void AwaitConversion(const std::string& image) {
    const std::string name = ConversionName(*contract::ParseImage(image));
    WaitFor(name + " has ended", [&] {
      const absl::StatusOr<std::vector<QueueRow>> rows = scheduler.Queue(name);
      return rows.ok() && std::all_of(rows->begin(), rows->end(), [](const QueueRow& row) {
               return HasEnded(row.state.phase);
             });
    });
  }

  SlurmConfig config;
  hosts::LocalHost host;
  CallGate gate{{}};
  Commands commands;
  CommandScheduler scheduler;
  ImageCache cache;
};

class SlurmImageTest : public ImageFixture {
 protected:
  void SetUp() override {
    static int last = 0;
    images_ = fmt::format("{}/images-{}", cluster_->runs(), ++last);
  }

  Agent MakeAgent() const { return Agent(ConfigWith(images_)); }

  std::unique_ptr<agents::Backend> MakeBackend(bool convert = true) const {
    SlurmConfig config = MakeAgent().config;
    config.convert_images = convert;
    config.container_mounts = {cluster_->runs()};
    return cluster_->MakeBackend(config);
  }

  // Runs the script in the image, and returns the run at its end.
  TestRun RunIn(agents::Backend& backend, const std::string& image, const std::string& script,
                uint32_t nodes = 1) {
    v1::JobSpec spec = ScriptSpec("#!/bin/bash\n" + script);
    spec.set_image(image);
    spec.set_nodes(nodes);
    return RunSpec(backend, std::move(spec));
  }
  static TestRun RunSpec(agents::Backend& backend, v1::JobSpec spec) {
    TestRun run = NewRun(std::move(spec));
    Launch(backend, &run);
    ObserveToEnd(backend, {&run});
    return run;
  }

  // Returns the names of all files but the script: files of images, and why there are none.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(images_)) {
      if (entry.path().filename() != ".convert.sh") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string images_;
};

constexpr char kBash[] = "registry.test/muster/bash:1";
constexpr char kBashFile[] = "registry.test+muster+bash=1.sqsh";

TEST_F(SlurmImageTest, AnImageIsConvertedOnceAndThenFound) {
  Agent agent = MakeAgent();
  const ImageCache::Ready first = agent.Prepare(kBash);
  EXPECT_EQ(first.image, images_ + "/" + kBashFile);
  ASSERT_TRUE(first.conversion.has_value());
  agent.AwaitConversion(kBash);
  EXPECT_THAT(Files(), testing::ElementsAre(kBashFile, std::string(kBashFile) + ".made"));
  EXPECT_TRUE(IsSquashfs(ReadWhole(first.image)));
  const ImageCache::Ready second = agent.Prepare(kBash);
  EXPECT_EQ(second.image, first.image);
  EXPECT_EQ(second.conversion, std::nullopt);
}

TEST_F(SlurmImageTest, AgentsThatWantOneImageShareItsConversion) {
  const fs::path gate = "/home/slurmtest/.config/enroot";
  fs::create_directories(gate);
  std::ofstream(gate / "hold").flush();
  Agent one = MakeAgent();
  Agent other = MakeAgent();
  constexpr char kSlow[] = "registry.test/muster/slow:1";
  const ImageCache::Ready first = one.Prepare(kSlow);
  ASSERT_TRUE(first.conversion.has_value());
  WaitFor("the import waits", [&] { return fs::exists(gate / "held"); });
  EXPECT_EQ(other.Prepare(kSlow).conversion, first.conversion);
  fs::remove(gate / "hold");
  one.AwaitConversion(kSlow);
  EXPECT_EQ(other.Prepare(kSlow).conversion, std::nullopt);
  fs::remove_all(gate);
}

TEST_F(SlurmImageTest, AConversionThatWasSubmittedTwiceHappensOnce) {
  Agent agent = MakeAgent();
  agent.Prepare(kBash);
  // Submits the conversion as another agent that asked at the same moment would.
  const contract::Image image = *contract::ParseImage(kBash);
  const SubmitOutcome again =
      agent.scheduler.Submit(MakeConversion(agent.config, image, images_ + "/.convert.sh"));
  ASSERT_EQ(again.kind, agents::LaunchOutcome::Kind::kLaunched) << again.words;
  const std::string file = images_ + "/" + kBashFile;
  WaitFor("the file is there", [&] { return fs::exists(file); });
  const fs::file_time_type made = fs::last_write_time(file);
  agent.AwaitConversion(kBash);
  EXPECT_EQ(fs::last_write_time(file), made);
  EXPECT_THAT(Files(), testing::ElementsAre(kBashFile, std::string(kBashFile) + ".made"));
}

TEST_F(SlurmImageTest, AConversionThatFailsLeavesEnrootsWordsAndNoFile) {
  Agent agent = MakeAgent();
  constexpr char kAbsent[] = "registry.test/muster/nosuch:1";
  const ImageCache::Ready ready = agent.Prepare(kAbsent);
  agent.AwaitConversion(kAbsent);
  EXPECT_THAT(Files(), testing::ElementsAre("registry.test+muster+nosuch=1.sqsh.failed"));
  EXPECT_THAT(ReadWhole(ready.image + ".failed"),
              HasSubstr("manifests/1 returned error code: 404 Not Found"));
  // The next run asks again.
  EXPECT_NE(agent.Prepare(kAbsent).conversion, ready.conversion);
  agent.AwaitConversion(kAbsent);
}

TEST_F(SlurmImageTest, AnImportThatIsKilledHalfWayIsNotTakenForAnImage) {
  Agent agent = MakeAgent();
  constexpr char kTorn[] = "registry.test/muster/torn:1";
  const ImageCache::Ready ready = agent.Prepare(kTorn);
  agent.AwaitConversion(kTorn);
  EXPECT_THAT(Files(), testing::ElementsAre("registry.test+muster+torn=1.sqsh.failed"));
  EXPECT_TRUE(agent.Prepare(kTorn).conversion.has_value());
  agent.AwaitConversion(kTorn);
}

TEST_F(SlurmImageTest, AFileWithoutTheMagicIsConvertedAgain) {
  Agent agent = MakeAgent();
  fs::create_directories(images_);
  std::ofstream(images_ + "/" + kBashFile) << "half a file";
  ASSERT_TRUE(agent.Prepare(kBash).conversion.has_value());
  agent.AwaitConversion(kBash);
  EXPECT_TRUE(IsSquashfs(ReadWhole(images_ + "/" + kBashFile)));
}

TEST_F(SlurmImageTest, AConversionThatIsCanceledSaysSo) {
  const fs::path gate = "/home/slurmtest/.config/enroot";
  fs::create_directories(gate);
  std::ofstream(gate / "hold").flush();
  Agent agent = MakeAgent();
  constexpr char kSlow[] = "registry.test/muster/slow:1";
  const ImageCache::Ready ready = agent.Prepare(kSlow);
  WaitFor("the import waits", [&] { return fs::exists(gate / "held"); });
  ASSERT_TRUE(agent.commands.Run({"scancel", std::to_string(*ready.conversion)})->ok());
  agent.AwaitConversion(kSlow);
  EXPECT_THAT(ReadWhole(ready.image + ".failed"), HasSubstr("stopped before it ended"));
  fs::remove_all(gate);
}

TEST_F(SlurmImageTest, APartitionThatSlurmDoesNotKnowIsTheOperatorsToCorrect) {
  Agent agent = MakeAgent();
  SlurmConfig config = agent.config;
  config.conversion_partition = "nosuch";
  ImageCache cache(config, &agent.host, &agent.scheduler);
  const absl::StatusOr<ImageCache::Ready> ready = cache.Prepare(*contract::ParseImage(kBash));
  ASSERT_TRUE(ready.ok()) << ready.status();
  ASSERT_TRUE(ready->refused.has_value());
  EXPECT_EQ(ready->refused->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(ready->refused->message(), HasSubstr("Invalid partition name specified"));
  EXPECT_THAT(ready->refused->remedy(), HasSubstr("conversion_"));
}

TEST_F(SlurmImageTest, AFileAndAClusterThatPullsNeedNoConversion) {
  Agent agent = MakeAgent();
  EXPECT_EQ(agent.Prepare("/images/x.sqsh").image, "/images/x.sqsh");
  SlurmConfig config = agent.config;
  config.convert_images = false;
  ImageCache cache(config, &agent.host, &agent.scheduler);
  const absl::StatusOr<ImageCache::Ready> ready = cache.Prepare(*contract::ParseImage(kBash));
  ASSERT_TRUE(ready.ok());
  EXPECT_EQ(ready->image, "registry.test#muster/bash:1");
  EXPECT_EQ(ready->conversion, std::nullopt);
}

TEST_F(SlurmImageTest, ARunHasItsImageAndWhatTheJobSaysInIt) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  v1::JobSpec spec = ScriptSpec(
      "#!/bin/bash\n. /etc/os-release; echo $ID; echo \"$HOSTILE\"; echo $NODE_RANK $WORLD_SIZE "
      "$MASTER_ADDR; pwd");
  spec.set_image(kBash);
  const std::string hostile = "a'b\"c $(id) `id` \n#SBATCH --exclusive \\";
  (*spec.mutable_env())["HOSTILE"] = hostile;
  const TestRun run = RunSpec(*backend, std::move(spec));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend, run), fmt::format("muster-test\n{}\n0 1 127.0.0.1\n{}/{}/work\n",
                                               hostile, cluster_->runs(), run.handle.run_key));
}

TEST_F(SlurmImageTest, AnExitCodeAndASignalAreTheCommandsOwnInAContainerToo) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  const TestRun code = RunIn(*backend, kBash, "exit 7");
  ASSERT_TRUE(code.last.exit.has_value());
  EXPECT_EQ(code.last.exit->code(), 7);
  EXPECT_EQ(code.last.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  const TestRun killed = RunIn(*backend, kBash, "kill -KILL $$");
  ASSERT_TRUE(killed.last.exit.has_value());
  EXPECT_EQ(killed.last.exit->signal(), 9);
}

TEST_F(SlurmImageTest, EachNodeHasAContainerAndARank) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  // The hook for images with PyTorch would set these names otherwise.
  const TestRun run = RunIn(*backend, "registry.test/muster/torch:1",
                            "echo $NODE_RANK $WORLD_SIZE $MASTER_ADDR $PYTORCH_VERSION", 2);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend, run, 0), "0 2 n1 2.0\n");
  EXPECT_EQ(Output(*backend, run, 1), "1 2 n1 2.0\n");
}

TEST_F(SlurmImageTest, AnImageThatCannotBeHadFailsTheRunInEnrootsWords) {
  for (const bool convert : {true, false}) {
    const std::unique_ptr<agents::Backend> backend = MakeBackend(convert);
    const TestRun run = RunIn(*backend, "registry.test/muster/nosuch:1", "echo never");
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
    ASSERT_TRUE(run.last.failure.has_value());
    EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
    EXPECT_THAT(run.last.failure->message(), HasSubstr("There is no such image"));
    EXPECT_THAT(run.last.failure->ShortDebugString(),
                HasSubstr("returned error code: 404 Not Found"));
    EXPECT_FALSE(run.last.exit.has_value());
  }
}

TEST_F(SlurmImageTest, ARunWhoseConversionWasKilledSaysSoWithTheNodesWords) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  const TestRun run = RunIn(*backend, "registry.test/muster/torn:1", "echo never");
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  const v1::Failure& failure = *run.last.failure;
  EXPECT_EQ(failure.code(), v1::FAILURE_CODE_IMAGE_NOT_CONVERTED);
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(failure.retriable());
  EXPECT_THAT(failure.message(), HasSubstr("its conversion was killed"));
  EXPECT_THAT(failure.ShortDebugString(), HasSubstr("the conversion was killed by signal 9"));
}

TEST_F(SlurmImageTest, ARunWhoseConversionWasCanceledNamesItsSlurmJob) {
  const fs::path gate = "/home/slurmtest/.config/enroot";
  fs::create_directories(gate);
  std::ofstream(gate / "hold").flush();
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  v1::JobSpec spec = ScriptSpec("true");
  spec.set_image("registry.test/muster/slow:1");
  TestRun run = NewRun(std::move(spec));
  Launch(*backend, &run);
  WaitFor("the import waits", [&] { return fs::exists(gate / "held"); });
  cluster_->AsRoot("scancel --name=" +
                   ConversionName(*contract::ParseImage("registry.test/muster/slow:1")));
  ObserveToEnd(*backend, {&run});
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_THAT(run.last.failure->message(), HasSubstr("its conversion was canceled"));
  EXPECT_THAT(run.last.failure->ShortDebugString(), HasSubstr("the conversion, Slurm job "));
  fs::remove_all(gate);
}

TEST_F(SlurmImageTest, APrivateImageWithoutCredentialsSaysWhereTheyGo) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  const TestRun run = RunIn(*backend, "nvcr.io/nvidia/tao:1", "echo never");
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(run.last.failure->ShortDebugString(),
              HasSubstr("[ERROR] Could not process JSON input"));
  EXPECT_THAT(run.last.failure->remedy(), HasSubstr("install-credentials"));
}

TEST_F(SlurmImageTest, AFileThatIsNotThereOrNoSquashfsFailsTheRun) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  const TestRun missing = RunIn(*backend, "/nonexistent/x.sqsh", "echo never");
  ASSERT_TRUE(missing.last.failure.has_value());
  EXPECT_EQ(missing.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(missing.last.failure->ShortDebugString(),
              HasSubstr("/nonexistent/x.sqsh is not there"));
  const std::string junk = cluster_->runs() + "/junk.sqsh";
  std::ofstream(junk) << "junk";
  const TestRun broken = RunIn(*backend, junk, "echo never");
  ASSERT_TRUE(broken.last.failure.has_value());
  EXPECT_THAT(broken.last.failure->ShortDebugString(), HasSubstr("is no squashfs file"));
}

TEST_F(SlurmImageTest, AnImageWithoutBashIsNamed) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  const TestRun run = RunIn(*backend, "registry.test/muster/shell:1", "echo never");
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("no /bin/bash"));
}

TEST_F(SlurmImageTest, MountsAreShownAndOneThatIsNotThereIsNamed) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  const std::string data = cluster_->runs() + "/data";
  fs::create_directories(data);
  std::ofstream(data + "/file") << "content";
  v1::JobSpec spec = ScriptSpec("#!/bin/bash\ncat /in/file; : >/in/new || echo refused");
  spec.set_image(kBash);
  spec.add_mounts()->set_source(data);
  spec.mutable_mounts(0)->set_target("/in");
  spec.mutable_mounts(0)->set_read_only(true);
  const TestRun run = RunSpec(*backend, spec);
  EXPECT_EQ(Output(*backend, run), "contentrefused\n");
  spec.mutable_mounts(0)->set_source("/nonexistent");
  const TestRun missing = RunSpec(*backend, spec);
  ASSERT_TRUE(missing.last.failure.has_value());
  EXPECT_EQ(missing.last.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(missing.last.failure->ShortDebugString(), HasSubstr("does not exist: /nonexistent"));
}

TEST_F(SlurmImageTest, ARunInAContainerCanBeCanceled) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  v1::JobSpec spec = ScriptSpec("#!/bin/bash\necho started; exec sleep 1000");
  spec.set_image(kBash);
  TestRun run = NewRun(std::move(spec));
  Launch(*backend, &run);
  ObserveUntil(*backend, {&run}, v1::RUN_STATE_RUNNING);
  WaitFor("the command runs", [&] { return Output(*backend, run) == "started\n"; });
  EXPECT_TRUE(EndOne(*backend, run.handle).ok());
  ObserveToEnd(*backend, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED) << run.last.evidence.DebugString();
}

TEST_F(SlurmImageTest, ARunThatWaitsForItsImageSaysSoAndWhyThatWaits) {
  SlurmConfig config = MakeAgent().config;
  // Longer than the partition lets any job be, which Slurm tells only as a reason to wait.
  config.conversion_time_limit = absl::Hours(1);
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  v1::JobSpec spec = ScriptSpec("true");
  spec.set_image(kBash);
  TestRun run = NewRun(std::move(spec));
  Launch(*backend, &run);
  WaitFor("the reason is the conversion's", [&] {
    return ObserveOnce(*backend, {&run}).ok() &&
           run.last.reason.message().find("PartitionTimeLimit") != std::string::npos;
  });
  EXPECT_THAT(run.last.reason.message(), HasSubstr("waiting for its image to be converted"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(*backend, run.handle).ok());
  cluster_->AsRoot("scancel --name=" + ConversionName(*contract::ParseImage(kBash)));
}

TEST_F(SlurmImageTest, AConversionOutlivesTheAgentAndSlurmsController) {
  const fs::path gate = "/home/slurmtest/.config/enroot";
  fs::create_directories(gate);
  std::ofstream(gate / "hold").flush();
  v1::JobSpec spec = ScriptSpec("#!/bin/bash\n. /etc/os-release; echo $IMAGE");
  spec.set_image("registry.test/muster/slow:1");
  TestRun run = NewRun(std::move(spec));
  {
    const std::unique_ptr<agents::Backend> backend = MakeBackend();
    Launch(*backend, &run);
    WaitFor("the import waits", [&] { return fs::exists(gate / "held"); });
  }
  // slurmctld stops with its last word, because a killed one forgets jobs of the last seconds.
  cluster_->Control("stop", "slurmctld");
  cluster_->Control("start", "slurmctld");
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  ObserveUntil(*backend, {&run}, v1::RUN_STATE_PENDING);
  fs::remove(gate / "hold");
  ObserveToEnd(*backend, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend, run), "registry.test#muster/slow:1\n");
  fs::remove_all(gate);
}

TEST_F(SlurmImageTest, APlanShowsTheContainersOptionsAndConvertsNothing) {
  const std::unique_ptr<agents::Backend> backend = MakeBackend();
  v1::JobSpec spec = ScriptSpec("true");
  spec.set_image(kBash);
  const absl::StatusOr<v1::JobPlan> plan = backend->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->submission(),
              HasSubstr("# srun '--container-image=" + images_ + "/" + kBashFile));
  EXPECT_FALSE(fs::exists(images_));
}

TEST_F(SlurmImageTest, APreflightFindsPyxisAndLooksAtCredentials) {
  const v1::ClusterChecks checks = MakeBackend()->Check();
  int found = 0;
  for (const v1::ClusterCheck& check : checks.checks()) {
    const bool is_pyxis = check.subject() == "Pyxis";
    const bool is_credentials = check.subject().find("/.config/enroot/") != std::string::npos;
    found += is_pyxis || is_credentials;
    EXPECT_TRUE(!(is_pyxis || is_credentials) || check.result() == v1::CHECK_RESULT_OK)
        << check.DebugString();
  }
  EXPECT_EQ(found, 2) << checks.DebugString();
}

}  // namespace
}  // namespace muster::slurm
