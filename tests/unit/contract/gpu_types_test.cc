#include "contract/gpu_types.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHbm[] = "NVIDIA-H100-80GB-HBM3";
constexpr char kPcie[] = "NVIDIA-H100-PCIe";

TEST(GpuTypesTest, ATypeIsFoundByPartsOfItsLabelInAnyCase) {
  for (const char* wanted : {"H100", "h100", "NVIDIA-H100", "h100-80gb", "H100_HBM3", "nvidia h100",
                             "nvidia-h100-80gb-hbm3"})
    EXPECT_THAT(FindGpuTypes(wanted, {kHbm, "Tesla-T4"}), ElementsAre(kHbm)) << wanted;
  EXPECT_THAT(FindGpuTypes("A100-80GB", {"NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"}),
              ElementsAre("NVIDIA-A100-SXM4-80GB"));
  EXPECT_THAT(FindGpuTypes("rtx_a6000", {"NVIDIA RTX A6000"}), ElementsAre("NVIDIA RTX A6000"));
}

TEST(GpuTypesTest, HalfOfAWordAnotherOrderAndNothingAreNoParts) {
  for (const char* wanted : {"H10", "100", "HBM3-H100", "H100-H100", "H200", "-", "", "80"})
    EXPECT_THAT(FindGpuTypes(wanted, {kHbm}), IsEmpty()) << wanted;
}

TEST(GpuTypesTest, TheSameNameWinsOverThoseThatHaveItAsAPart) {
  EXPECT_THAT(FindGpuTypes("h100", {"H100", kHbm}), ElementsAre("H100"));
  EXPECT_THAT(FindGpuTypes("H100", {kHbm, kPcie}), ElementsAre(kHbm, kPcie));
}

TEST(GpuTypesTest, PartsOfAGpuAndSharedOnesAreGivenOnlyIfAskedFor) {
  constexpr char kMig[] = "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb";
  constexpr char kShared[] = "NVIDIA-H100-80GB-HBM3-SHARED";
  EXPECT_THAT(FindGpuTypes("H100", {kHbm, kMig, kShared}), ElementsAre(kHbm));
  EXPECT_THAT(FindGpuTypes("H100", {kMig, kShared}), IsEmpty());
  EXPECT_THAT(FindGpuTypes("H100-MIG-1g.10gb", {kHbm, kMig}), ElementsAre(kMig));
  EXPECT_THAT(FindGpuTypes("h100-shared", {kHbm, kShared}), ElementsAre(kShared));
}

TEST(GpuTypesTest, OfSeveralThatItMayBeEachIsNamedWithWhatToWrite) {
  EXPECT_EQ(WhichGpuType("H100", {kHbm, kPcie}, 2),
            "GPUs of type \"H100\" may be NVIDIA-H100-80GB-HBM3 or NVIDIA-H100-PCIe; ask for one "
            "of these by its whole name: NVIDIA-H100-80GB-HBM3:2 (resources.gpus, --gpus or a "
            "SkyPilot task's accelerators; with sbatch --gres=gpu:NVIDIA-H100-80GB-HBM3:2)");
}

}  // namespace
}  // namespace muster::contract
