#include "agents/slurm/container.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using testing::Contains;
using testing::HasSubstr;

const RunPaths kPaths("/shared/runs", "k7m2-42-1");

absl::StatusOr<std::vector<std::string>> OptionsOf(const v1::JobSpec& spec,
                                                   const std::string& image = "r#i:1",
                                                   const std::vector<std::string>& mounts = {},
                                                   const RunPaths& paths = kPaths) {
  agent::v1::Assignment assignment;
  *assignment.mutable_spec() = spec;
  return ContainerOptions(assignment, "lab", image, paths, mounts);
}

TEST(ContainerTest, TheRunsDirectoryTheClustersAndTheJobsMountsAreShown) {
  v1::JobSpec spec;
  v1::Mount* data = spec.add_mounts();
  data->set_source("/data/set");
  data->set_target("/data");
  data->set_read_only(true);
  v1::Mount* results = spec.add_mounts();
  results->set_source("/results");
  results->set_target("/results");
  const auto options = OptionsOf(spec, "/images/x.sqsh", {"/lustre"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->front(), "--container-image=/images/x.sqsh");
  EXPECT_THAT(*options, Contains("--container-mounts=/shared/runs/k7m2-42-1:/shared/runs/k7m2-42-1,"
                                 "/lustre:/lustre,/data/set:/data:ro,/results:/results"));
}

TEST(ContainerTest, ARunWithALeaseSeesItsDirectoryWhoseFileIsRenewed) {
  v1::JobSpec spec;
  spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
  const auto options = OptionsOf(spec);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(*options, Contains("--container-mounts=/shared/runs/k7m2-42-1:/shared/runs/k7m2-42-1,"
                                 "/shared/runs/lease:/shared/runs/lease"));
}

TEST(ContainerTest, TheMastersAddressIsTheJobsAndNotTheImages) {
  const auto options = OptionsOf({});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(*options, Contains("--container-env=MASTER_ADDR,SKYPILOT_NODE_IPS"));
}

TEST(ContainerTest, WhatTheJobLeavesOpenIsTheClusters) {
  const auto options = OptionsOf({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->size(), 4u);
  EXPECT_EQ(options->back(), "--no-container-entrypoint");
}

TEST(ContainerTest, EveryOptionOfTheJobIsPyxisOwn) {
  v1::JobSpec spec;
  v1::SlurmContainer& container = *spec.mutable_slurm()->mutable_container();
  container.set_name("keep");
  container.add_env("PATH");
  container.set_mount_home(true);
  container.set_remap_root(false);
  container.set_writable(true);
  auto options = OptionsOf(spec);
  ASSERT_TRUE(options.ok());
  for (const char* option :
       {"--container-name=keep", "--container-env=MASTER_ADDR,PATH,SKYPILOT_NODE_IPS",
        "--container-mount-home", "--no-container-remap-root", "--container-writable"}) {
    EXPECT_THAT(*options, Contains(option));
  }
  container.set_mount_home(false);
  container.set_remap_root(true);
  options = OptionsOf(spec);
  EXPECT_THAT(*options, Contains("--no-container-mount-home"));
  EXPECT_THAT(*options, Contains("--container-remap-root"));
}

TEST(ContainerTest, OptionsOfABatchScriptsContainerGoAlongBeforeTheEntrypoint) {
  v1::JobSpec spec;
  spec.mutable_slurm()->mutable_batch_script();
  for (const char* option :
       {"--container-workdir=/w", "--hint=compute_bound", "--container-readonly"})
    spec.mutable_slurm()->add_extra_options(option);
  const auto options = OptionsOf(spec);
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(*options, Contains("--container-workdir=/w"));
  EXPECT_THAT(*options, Contains("--container-readonly"));
  EXPECT_THAT(*options, testing::Not(Contains("--hint=compute_bound")));
  EXPECT_EQ(options->back(), "--no-container-entrypoint");
}

TEST(ContainerTest, AnEntrypointIsGivenTheJobsVariables) {
  v1::JobSpec spec;
  spec.mutable_slurm()->mutable_container()->set_entrypoint(true);
  (*spec.mutable_env())["GREETING"] = "hello, there";
  const auto options = OptionsOf(spec);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->back(), "--container-entrypoint");
  EXPECT_THAT(*options, Contains(testing::AllOf(testing::StartsWith("--container-env="),
                                                HasSubstr(",WORLD_SIZE"), HasSubstr("GREETING,"),
                                                testing::Not(HasSubstr("hello")))));
}

TEST(ContainerTest, MoreVariablesThanAnEntrypointCanBeGivenAreRefusedByName) {
  v1::JobSpec spec;
  spec.mutable_slurm()->mutable_container()->set_entrypoint(true);
  (*spec.mutable_env())[std::string(131'000, 'A')] = "";
  EXPECT_THAT(OptionsOf(spec).status().ToString(), HasSubstr("env"));
}

TEST(ContainerTest, APathThatPyxisWouldTakeApartOrAShellWouldReadIsRefused) {
  for (const char* path : {"/a,b", "/a:b", "/a b", "/$(reboot)", "/`x`", "/a\"b", "/a\\b", "/a\nb",
                           "relative", "", "/a;b", "/a#b"}) {
    v1::JobSpec spec;
    spec.add_mounts()->set_source("/ok");
    spec.mutable_mounts(0)->set_target(path);
    const auto options = OptionsOf(spec);
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(options.status().ToString(), HasSubstr("mounts[0].target")) << path;
  }
}

TEST(ContainerTest, APathOfAnInputOrTheResultsIsRefusedByTheNameThatTheJobHasForIt) {
  const auto refused = [](const v1::JobSpec& spec) { return OptionsOf(spec).status().ToString(); };
  v1::JobSpec spec;
  const auto mount = [&spec](const std::string& source, const std::string& target) {
    spec.clear_mounts();
    spec.add_mounts()->set_source(source);
    spec.mutable_mounts(0)->set_target(target);
  };
  spec.add_inputs()->set_uri("/data/a b");
  mount("/data/a b", "/data/a b");
  EXPECT_THAT(refused(spec), HasSubstr("inputs[0].uri"));
  spec.mutable_inputs(0)->set_uri("/data");
  spec.mutable_inputs(0)->set_path("/a:b");
  mount("/data", "/a:b");
  EXPECT_THAT(refused(spec), HasSubstr("inputs[0].path"));
  spec.set_results_directory("/my results");
  mount("/my results", "/my results");
  EXPECT_THAT(refused(spec), HasSubstr("results_directory"));
}

TEST(ContainerTest, ARunDirectoryThatCannotBeMountedIsTheOperatorsToMove) {
  const auto options = OptionsOf({}, "r#i:1", {}, RunPaths("/a b", "k"));
  EXPECT_THAT(options.status().ToString(), HasSubstr("run_dir"));
}

TEST(ContainerTest, OnlyAFileIsToBeLookedAtOnTheNode) {
  EXPECT_EQ(ContainerFile({"/x.sqsh", {}, ""}, {"-a", "-b"}),
            std::string("/x.sqsh\0\0\0-a\0-b\0", 16));
  EXPECT_EQ(ContainerFile({"r#i:1", {}, ""}, {"-a"}), std::string("\0\0\0-a\0", 6));
  EXPECT_EQ(ContainerFile({"/x.sqsh", 7, "r#i:1"}, {"-a"}), std::string("/x.sqsh\0"
                                                                        "7\0r#i:1\0-a\0",
                                                                        19));
}

}  // namespace
}  // namespace muster::slurm
