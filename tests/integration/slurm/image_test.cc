// Conversions of container images on a real cluster, with stand-ins for Pyxis and enroot.
#include "contract/image.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agents/hosts/local_host.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/image_cache.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// One agent's view of the cluster.
struct Agent {
  explicit Agent(SlurmConfig given)
      : config(std::move(given)), commands(config, &host), cache(config, &host, &commands) {}

  ImageCache::Ready Prepare(const std::string& image) {
    absl::StatusOr<ImageCache::Ready> ready = cache.Prepare(*contract::ParseImage(image));
    EXPECT_TRUE(ready.ok()) << ready.status();
    return ready.ok() ? *std::move(ready) : ImageCache::Ready();
  }

  // Until no conversion of the image is under way.
  void AwaitConversion(const std::string& image) {
    const std::string name = ConversionName(*contract::ParseImage(image));
    WaitFor(name + " has ended", [&] {
      const absl::StatusOr<std::vector<QueueRow>> rows = commands.Queue(name);
      return rows.ok() && std::all_of(rows->begin(), rows->end(), [](const QueueRow& row) {
               return HasEnded(row.state.phase);
             });
    });
  }

  SlurmConfig config;
  hosts::LocalHost host;
  Commands commands;
  ImageCache cache;
};

class SlurmImageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (fs::exists(MUSTER_PYXIS))
      cluster_ = new TestCluster("--nodes 2 --no-dbd --pyxis " MUSTER_PYXIS);
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  void SetUp() override {
    if (cluster_ == nullptr) GTEST_SKIP() << MUSTER_PYXIS << " is not built: it needs libslurm-dev";
    static int last = 0;
    images_ = fmt::format("{}/images-{}", cluster_->runs(), ++last);
  }

  Agent MakeAgent() const {
    SlurmConfig config = cluster_->Config();
    config.image_dir = images_;
    config.conversion_partition = "short";
    config.conversion_memory_mib = 1024;
    config.conversion_time_limit = absl::Minutes(1);
    return Agent(std::move(config));
  }

  // What there is but the script: files of images, and why there are none.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(images_)) {
      if (entry.path().filename() != ".convert.sh") names.push_back(entry.path().filename());
    }
    return names;
  }

  static TestCluster* cluster_;
  std::string images_;
};

TestCluster* SlurmImageTest::cluster_ = nullptr;

constexpr char kBash[] = "registry.test/muster/bash:1";
constexpr char kBashFile[] = "registry.test+muster+bash=1.sqsh";

TEST_F(SlurmImageTest, AnImageIsConvertedOnceAndThenFound) {
  Agent agent = MakeAgent();
  const ImageCache::Ready first = agent.Prepare(kBash);
  EXPECT_EQ(first.image, images_ + "/" + kBashFile);
  ASSERT_TRUE(first.conversion.has_value());
  agent.AwaitConversion(kBash);
  EXPECT_THAT(Files(), testing::ElementsAre(kBashFile));
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
  // As another agent that asked at the same moment would.
  const contract::Image image = *contract::ParseImage(kBash);
  const auto again =
      agent.commands.RunSbatch(ConversionArguments(agent.config, image, images_ + "/.convert.sh"));
  ASSERT_TRUE(again.ok() && again->ok());
  const std::string file = images_ + "/" + kBashFile;
  WaitFor("the file is there", [&] { return fs::exists(file); });
  const fs::file_time_type made = fs::last_write_time(file);
  agent.AwaitConversion(kBash);
  EXPECT_EQ(fs::last_write_time(file), made);
  EXPECT_THAT(Files(), testing::ElementsAre(kBashFile));
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
  ImageCache cache(config, &agent.host, &agent.commands);
  const absl::StatusOr<ImageCache::Ready> ready = cache.Prepare(*contract::ParseImage(kBash));
  ASSERT_TRUE(ready.ok()) << ready.status();
  ASSERT_TRUE(ready->refused.has_value());
  EXPECT_EQ(ready->refused->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(ready->refused->message(), HasSubstr("Invalid partition name specified"));
  EXPECT_THAT(ready->refused->suggestion(), HasSubstr("conversion_"));
}

TEST_F(SlurmImageTest, AFileAndAClusterThatPullsNeedNoConversion) {
  Agent agent = MakeAgent();
  EXPECT_EQ(agent.Prepare("/images/x.sqsh").image, "/images/x.sqsh");
  SlurmConfig config = agent.config;
  config.convert_images = false;
  ImageCache cache(config, &agent.host, &agent.commands);
  const absl::StatusOr<ImageCache::Ready> ready = cache.Prepare(*contract::ParseImage(kBash));
  ASSERT_TRUE(ready.ok());
  EXPECT_EQ(ready->image, "registry.test#muster/bash:1");
  EXPECT_EQ(ready->conversion, std::nullopt);
}

}  // namespace
}  // namespace muster::slurm
