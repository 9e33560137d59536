#include "contract/gpu_share.h"

#include "contract/namespace_limits.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

constexpr uint64_t kGi = uint64_t{1} << 30;

TEST(GpuShareTest, TheSmallestNodeThatHasEnoughGpusCounts) {
  GpuShare share(2);
  share.AddNode(64'000, 512 * kGi, 8);
  share.AddNode(32'000, 128 * kGi, 4);
  share.AddNode(2'000, 4 * kGi, 1);  // too few
  share.AddNode(2'000, 4 * kGi, 0);
  EXPECT_EQ(share.CpuMillis(1000), 14'000u) << "of 64 cores, without a tenth, two eighths";
  EXPECT_EQ(share.MemoryBytes(kGi), 57 * kGi) << "of 128 GiB, without a tenth, two fourths";
}

TEST(GpuShareTest, APodWithAllGpusOfANodeLeavesRoomForWhatRunsThereBesides) {
  GpuShare share(8);
  share.AddNode(64'000, 512 * kGi, 8);
  EXPECT_LT(share.CpuMillis(1000), 60'000u);
  EXPECT_LT(share.MemoryBytes(kGi), 470 * kGi);
}

TEST(GpuShareTest, TheDefaultIsTheLeast) {
  GpuShare share(1);
  EXPECT_EQ(share.CpuMillis(1000), 1000u) << "no node is known";
  EXPECT_EQ(share.MemoryBytes(kGi), kGi);
  share.AddNode(4000, 4 * kGi, 8);
  EXPECT_EQ(share.CpuMillis(1000), 1000u);
  EXPECT_EQ(share.MemoryBytes(kGi), kGi);
}

TEST(GpuShareTest, TheShareAloneBreaksNoLimitOfTheNamespace) {
  GpuShare share(1);
  share.AddNode(64'000, 512 * kGi, 8);
  share.AddLimit("requests.cpu", 4'000);
  share.AddLimit("limits.memory", static_cast<int64_t>(16 * kGi * 1000));
  share.AddLimit("memory", static_cast<int64_t>(32 * kGi * 1000));
  share.AddLimit("limits.cpu", 1'000);  // pods have none
  share.AddLimit("pods", 1'000);
  EXPECT_EQ(share.CpuMillis(1000), 4'000u);
  EXPECT_EQ(share.MemoryBytes(kGi), 16 * kGi);
}

TEST(GpuShareTest, WhatAJobWithGpusGetsIsNamedIfItLeavesItOpen) {
  const auto told = [](const PodAmounts& asked, uint64_t gpus, const PodAmounts& got) {
    const auto check = TellDefaults(asked, gpus, got, {1000, kGi});
    return check.has_value() ? check->subject() + " " + check->seen() : "";
  };
  EXPECT_EQ(told({}, 2, {14'000, 57 * kGi}),
            "resources.memory and resources.cpus are left open: the job gets 57Gi of memory and 14 "
            "cores on each node, the share of 2 GPUs of a node");
  EXPECT_EQ(told({8000, 0}, 1, {8000, kGi}),
            "resources.memory is left open: the job gets 1Gi of memory on each node, the cluster's "
            "default");
  EXPECT_EQ(told({0, 8 * kGi}, 1, {7000, 8 * kGi}),
            "resources.cpus is left open: the job gets 7 cores on each node, the share of 1 GPU of "
            "a node");
  EXPECT_EQ(told({8000, kGi}, 1, {8000, kGi}), "");
  EXPECT_EQ(told({}, 0, {1000, kGi}), "");
  EXPECT_EQ(told({}, 1, {}), "") << "an agent that does not tell";
}

TEST(NamespaceLimitsTest, WhatARunAsksForEndsAtTheLargestNumber) {
  const PodsAsk ask = {.pods = 10'000, .memory_bytes = int64_t{1} << 50};
  EXPECT_EQ(AskedByRun(ask, "requests.memory"), INT64_MAX);
  EXPECT_EQ(AskedByPod(ask, "memory"), (int64_t{1} << 50) * 1000);
  EXPECT_EQ(AskedByRun(ask, "requests.nvidia.com/gpu"), std::nullopt);
}

}  // namespace
}  // namespace muster::contract
