#include "agents/slurm/container.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using testing::Contains;
using testing::HasSubstr;

const RunPaths kPaths("/shared/runs", "k7m2-42-1");

TEST(ContainerTest, TheRunsDirectoryTheClustersAndTheJobsMountsAreShown) {
  v1::JobSpec spec;
  v1::Mount* data = spec.add_mounts();
  data->set_source("/data/set");
  data->set_target("/data");
  data->set_read_only(true);
  v1::Mount* results = spec.add_mounts();
  results->set_source("/results");
  results->set_target("/results");
  const auto options = ContainerOptions(spec, "/images/x.sqsh", kPaths, {"/lustre"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(*options, Contains("--container-image=/images/x.sqsh"));
  EXPECT_THAT(*options, Contains("--container-mounts=/shared/runs/k7m2-42-1:/shared/runs/k7m2-42-1,"
                                 "/lustre:/lustre,/data/set:/data:ro,/results:/results"));
}

TEST(ContainerTest, TheMastersAddressIsTheJobsAndNotTheImages) {
  const auto options = ContainerOptions({}, "r#i:1", kPaths, {});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(*options, Contains("--container-env=MASTER_ADDR,SKYPILOT_NODE_IPS"));
}

TEST(ContainerTest, APathThatPyxisWouldTakeApartOrAShellWouldReadIsRefused) {
  for (const char* path : {"/a,b", "/a:b", "/a b", "/$(reboot)", "/`x`", "/a\"b", "/a\\b", "/a\nb",
                           "relative", "", "/a;b", "/a#b"}) {
    v1::JobSpec spec;
    spec.add_mounts()->set_source("/ok");
    spec.mutable_mounts(0)->set_target(path);
    const auto options = ContainerOptions(spec, "r#i:1", kPaths, {});
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(options.status().ToString(), HasSubstr("mounts[0].target")) << path;
  }
}

TEST(ContainerTest, ARunDirectoryThatCannotBeMountedIsTheOperatorsToMove) {
  const auto options = ContainerOptions({}, "r#i:1", RunPaths("/a b", "k"), {});
  EXPECT_THAT(options.status().ToString(), HasSubstr("run_dir"));
}

TEST(ContainerTest, OnlyAFileIsToBeLookedAtOnTheNode) {
  EXPECT_EQ(ContainerFile("/x.sqsh", {"-a", "-b"}), std::string("/x.sqsh\0-a\0-b\0", 14));
  EXPECT_EQ(ContainerFile("r#i:1", {"-a"}), std::string("\0-a\0", 4));
}

}  // namespace
}  // namespace muster::slurm
