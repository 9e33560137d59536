#include "agents/core/job_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agents/core/run_program.h"
#include "agents/hosts/local_host.h"
#include "contract/errors.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;

JobStorage Lab() {
  JobStorage storage;
  storage.cluster.cluster = "lab";
  storage.cluster.roots = {{"lustre", "/lustre"}};
  storage.results_root = "/lustre/results";
  storage.container_mounts = {"/lustre/shown"};
  return storage;
}

agent::v1::Assignment Job() {
  agent::v1::Assignment assignment;
  assignment.set_job_id(42);
  assignment.mutable_spec()->mutable_command()->mutable_argv()->add_args("train");
  return assignment;
}

std::string FieldOf(const absl::Status& status) {
  const auto bad = contract::GetBadRequest(status);
  return bad.has_value() ? bad->field_violations(0).field() : "";
}

TEST(OnClusterTest, WholeUrisBecomePathsAndNothingElseChanges) {
  agent::v1::Assignment job = Job();
  v1::JobSpec& spec = *job.mutable_spec();
  spec.add_inputs()->set_uri("slurm://lustre/train");
  auto* args = spec.mutable_command()->mutable_argv();
  for (const char* word :
       {"LUSTRE:///lustre/a", "--data=lustre:///lustre/a", "s3://b/c", "file:///x"})
    args->add_args(word);
  (*spec.mutable_env())["DATA"] = "slurm://None/lustre/b";
  (*spec.mutable_env())["TEXT"] = "see lustre:///lustre/a";
  const auto resolved = OnCluster(job, Lab());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->spec().inputs(0).uri(), "/lustre/train");
  EXPECT_THAT(resolved->spec().command().argv().args(),
              testing::ElementsAre("train", "/lustre/a", "--data=lustre:///lustre/a", "s3://b/c",
                                   "file:///x"));
  EXPECT_EQ(resolved->spec().env().at("DATA"), "/lustre/b");
  EXPECT_EQ(resolved->spec().env().at("TEXT"), "see lustre:///lustre/a");
  EXPECT_EQ(resolved->spec().results_directory(), "/lustre/results/42");
  EXPECT_EQ(resolved->spec().mounts_size(), 0);
}

TEST(OnClusterTest, WhatTheClusterCannotHaveIsRefusedByItsField) {
  for (const char* uri : {"file:///home/me/x", "/home/me/x", "lustre:///elsewhere", "data"}) {
    agent::v1::Assignment job = Job();
    job.mutable_spec()->add_inputs()->set_uri("/lustre/x");
    job.mutable_spec()->add_inputs()->set_uri(uri);
    EXPECT_EQ(FieldOf(OnCluster(job, Lab()).status()), "inputs[1].uri") << uri;
  }
  agent::v1::Assignment job = Job();
  (*job.mutable_spec()->mutable_env())["A"] = "lustre:///elsewhere";
  EXPECT_EQ(FieldOf(OnCluster(job, Lab()).status()), "env[\"A\"]");
}

TEST(OnClusterTest, StatusJsonNeedsAPlaceForResults) {
  agent::v1::Assignment job = Job();
  job.mutable_spec()->set_status_json(true);
  JobStorage storage = Lab();
  EXPECT_TRUE(OnCluster(job, storage).ok());
  storage.results_root.clear();
  EXPECT_EQ(FieldOf(OnCluster(job, storage).status()), "status_json");
  job.mutable_spec()->set_results_directory("lustre:///lustre/mine");
  EXPECT_EQ(OnCluster(job, storage)->spec().results_directory(), "/lustre/mine");
}

TEST(OnClusterTest, AContainerShowsInputsReadOnlyAndResultsBehindThem) {
  agent::v1::Assignment job = Job();
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_image("registry/x:1");
  spec.add_inputs()->set_uri("/lustre/shown/a");
  v1::Input* moved = spec.add_inputs();
  moved->set_uri("/lustre/b");
  moved->set_path("/data");
  spec.add_inputs()->set_uri("/lustre/results");
  const auto resolved = OnCluster(job, Lab());
  ASSERT_TRUE(resolved.ok());
  const auto& mounts = resolved->spec().mounts();
  ASSERT_EQ(mounts.size(), 3);
  EXPECT_EQ(mounts[0].source() + ":" + mounts[0].target(), "/lustre/b:/data");
  EXPECT_TRUE(mounts[0].read_only() && mounts[1].read_only());
  EXPECT_EQ(mounts[2].target(), "/lustre/results/42");
  EXPECT_FALSE(mounts[2].read_only());
}

TEST(RunVariablesTest, TellWhereResultsGoInMustersAndTaosWords) {
  agent::v1::Assignment job = Job();
  EXPECT_FALSE(RunVariables(job, "lab", "/r").contains("MUSTER_RESULTS_DIR"));
  job.mutable_spec()->set_results_directory("/lustre/results/42");
  auto variables = RunVariables(job, "lab", "/r");
  EXPECT_EQ(variables["MUSTER_RESULTS_DIR"], "/lustre/results/42");
  EXPECT_EQ(variables["TAO_API_RESULTS_DIR"], "/lustre/results");
  EXPECT_EQ(variables["TAO_RESULTS_ROOT"], "/lustre/results");
  EXPECT_EQ(variables["TAO_JOB_ID"], "42");
  EXPECT_EQ(variables["MUSTER_JOB_ID"], "42");
}

class InputsTest : public testing::Test {
 protected:
  absl::Status Check(std::initializer_list<const char*> names) {
    v1::JobSpec spec;
    for (const char* name : names) spec.add_inputs()->set_uri(dir_.path() + "/" + name);
    return CheckInputs(spec, &host_);
  }

  hosts::TempDir dir_;
  hosts::LocalHost host_;
};

TEST_F(InputsTest, AllThatIsMissingIsNamedAndNothingElse) {
  std::ofstream(dir_.path() + "/file") << "x";
  std::filesystem::create_directory(dir_.path() + "/directory");
  std::filesystem::create_symlink("file", dir_.path() + "/link");
  std::filesystem::create_symlink("directory", dir_.path() + "/link2");
  std::filesystem::create_symlink("nowhere", dir_.path() + "/dangling");
  EXPECT_TRUE(Check({"file", "directory", "link", "link2"}).ok());
  const absl::Status status = Check({"file", "nosuch", "dangling", "file/below"});
  ASSERT_TRUE(absl::IsInvalidArgument(status)) << status;
  const std::string words = status.ToString();
  for (const char* field : {"inputs[1].uri", "inputs[2].uri", "inputs[3].uri"})
    EXPECT_THAT(words, HasSubstr(field));
  EXPECT_THAT(words, testing::Not(HasSubstr("inputs[0].uri")));
}

class AwayHost : public hosts::LocalHost {
 public:
  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override {
    return std::vector<absl::StatusOr<hosts::FileInfo>>(paths.size(),
                                                        absl::UnavailableError("no route"));
  }
};

TEST_F(InputsTest, WhatCouldNotBeLookedAtIsNotMissing) {
  AwayHost host;
  v1::JobSpec spec;
  spec.add_inputs()->set_uri("/x");
  EXPECT_TRUE(absl::IsUnavailable(CheckInputs(spec, &host)));
}

TEST_F(InputsTest, AResultsDirectoryIsMadeWithItsParents) {
  v1::JobSpec spec;
  spec.set_results_directory(dir_.path() + "/a/b");
  EXPECT_TRUE(MakeResultsDirectory(spec, &host_).ok());
  EXPECT_TRUE(std::filesystem::is_directory(dir_.path() + "/a/b"));
  std::ofstream(dir_.path() + "/file") << "x";
  spec.set_results_directory(dir_.path() + "/file/b");
  EXPECT_TRUE(absl::IsInvalidArgument(MakeResultsDirectory(spec, &host_)));
}

}  // namespace
}  // namespace muster::agents
