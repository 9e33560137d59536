#include "agents/slurm/image_cache.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

SlurmConfig Config() {
  SlurmConfig config;
  config.image_dir = "/shared/images";
  return config;
}

TEST(ImageCacheTest, AConversionAsksForWhatTheOperatorSet) {
  SlurmConfig config = Config();
  config.conversion_partition = "cpu_long";
  config.conversion_cpus = 2;
  config.conversion_memory_mib = 7200;
  config.conversion_time_limit = absl::Seconds(90);
  const contract::Image image = *contract::ParseImage("nvcr.io/nvidia/tao:5.0");
  EXPECT_THAT(
      SbatchArguments(MakeConversion(config, image, "/shared/images/.convert.sh")),
      ElementsAre("--job-name=muster-image-nvcr.io+nvidia+tao=5.0.sqsh", "--dependency=singleton",
                  "--ntasks=1", "--partition=cpu_long", "--cpus-per-task=2", "--mem=7200M",
                  "--time=2", "--export=ALL", "--chdir=/shared/images", "--output=/dev/null",
                  "/shared/images/.convert.sh", "/shared/images/nvcr.io+nvidia+tao=5.0.sqsh",
                  "docker://nvcr.io#nvidia/tao:5.0"));
}

TEST(ImageCacheTest, WithoutAPartitionSlurmChooses) {
  const contract::Image image = *contract::ParseImage("nvcr.io/nvidia/tao:5.0");
  EXPECT_THAT(MakeConversion(Config(), image, "/s").options,
              Not(Contains(StartsWith("--partition"))));
}

TEST(ImageCacheTest, AConversionIsPaidForByItsOwnAccountOrElseByTheProfiles) {
  const contract::Image image = *contract::ParseImage("nvcr.io/nvidia/tao:5.0");
  SlurmConfig config = Config();
  config.profile.defaults.mutable_slurm()->set_account("vision");
  config.profile.defaults.mutable_slurm()->set_qos("normal");
  EXPECT_THAT(MakeConversion(config, image, "/s").options, Contains("--account=vision"));
  EXPECT_THAT(MakeConversion(config, image, "/s").options, Contains("--qos=normal"));
  config.conversion_account = "images";
  config.conversion_qos = "low";
  EXPECT_THAT(MakeConversion(config, image, "/s").options, Contains("--account=images"));
  EXPECT_THAT(MakeConversion(config, image, "/s").options, Contains("--qos=low"));
}

TEST(ImageCacheTest, OneImageHasOneConversionHoweverItIsWritten) {
  const std::string name = ConversionName(*contract::ParseImage("nvcr.io/nvidia/tao:5.0"));
  EXPECT_EQ(ConversionName(*contract::ParseImage("docker://nvcr.io#nvidia/tao:5.0")), name);
  EXPECT_NE(ConversionName(*contract::ParseImage("nvcr.io/nvidia/tao:5.1")), name);
}

TEST(ImageCacheTest, WhyNodesPullTheImageEndsWithOneFullStop) {
  EXPECT_EQ(PulledBecause("Slurm refused"), "Slurm refused. So each node pulls it itself.");
  EXPECT_EQ(PulledBecause("It said: no."), "It said: no. So each node pulls it itself.");
}

TEST(ImageCacheTest, OnlyTheMagicMakesASquashfs) {
  EXPECT_TRUE(IsSquashfs("hsqs and more"));
  EXPECT_FALSE(IsSquashfs("hsq"));
  EXPECT_FALSE(IsSquashfs(std::string_view("\0\0\0\0", 4)));
  EXPECT_FALSE(IsSquashfs(""));
}

}  // namespace
}  // namespace muster::slurm
