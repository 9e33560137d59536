// Tests the way of a job's files from the agent's cache into a pod.
#include "agents/kubernetes/manifest/brought_files.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agent_files/fake_source.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

class BroughtFilesTest : public testing::Test {
 protected:
  BroughtFilesTest() {
    auto cache = uploads::FileCache::Open(dir_ / "cache", {.keep_free_bytes = 0}, &source_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  absl::StatusOr<std::vector<std::string>> Pack(const std::vector<v1::FileTreeEntry>& entries) {
    v1::JobSpec spec;
    uploads::Bring(&source_, uploads::Tree(entries), "", &spec);
    const absl::StatusOr<uploads::LocalFiles> files = uploads::JobFiles(cache_.get()).Fetch(spec);
    EXPECT_TRUE(files.ok()) << files.status();
    return PackFiles(*files, cache_.get());
  }
  v1::FileTreeEntry Sent(const std::string& path, const std::string& content) {
    source_.Add(content);
    return uploads::File(path, content, /*executable=*/true);
  }
  static std::string Slurp(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  hosts::TempDir dir_;
  uploads::FakeSource source_;
  std::unique_ptr<uploads::FileCache> cache_;
};

TEST_F(BroughtFilesTest, ThePodsOwnShellUnpacksThePartsInTheirOrder) {
  std::string large;
  for (size_t i = 0; large.size() < 2 * kMaxPartBytes; ++i) large += std::to_string(i) + "\n";
  const auto parts = Pack({Sent("large", large), Sent("run it.sh", "#!/bin/sh\n")});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 3u);
  std::filesystem::create_directory(dir_ / "parts");
  for (size_t i = 0; i < parts->size(); ++i) {
    EXPECT_LE((*parts)[i].size(), kMaxPartBytes);
    std::ofstream(dir_ / ("parts/000" + std::to_string(i))) << (*parts)[i];
  }
  std::ofstream(dir_ / "storage") << StorageScript();
  for (const std::string shell : {"dash", "bash", "busybox sh"}) {
    const std::string work = dir_ / "work";
    std::filesystem::create_directory(work);
    std::ofstream(dir_ / "storage.words") << "muster_unpack " << dir_ / "parts"
                                          << " " << work;
    ASSERT_EQ(system((shell + " " + (dir_ / "storage")).c_str()), 0) << shell;
    EXPECT_EQ(Slurp(work + "/large"), large);
    EXPECT_EQ(access((work + "/run it.sh").c_str(), X_OK), 0);
    std::filesystem::remove_all(work);
  }
}

TEST_F(BroughtFilesTest, BusyboxUnpacksThemAsWell) {
  const std::string deep = std::string(120, 'd') + "/" + std::string(120, 'f');
  const auto parts = Pack({Sent(deep, "deep"), uploads::Link("link", deep)});
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 1u);
  std::ofstream(dir_ / "archive") << parts->front();
  std::filesystem::create_directory(dir_ / "work");
  const std::string command =
      "busybox tar -xmop -f " + (dir_ / "archive") + " -C " + (dir_ / "work");
  ASSERT_EQ(system(command.c_str()), 0);
  EXPECT_EQ(Slurp(dir_ / "work/link"), "deep");
}

TEST_F(BroughtFilesTest, AnImageWithoutTarIsSaidSo) {
  std::ofstream(dir_ / "storage") << StorageScript();
  std::ofstream(dir_ / "storage.words") << "muster_unpack /nothing /nowhere";
  const std::string command =
      "PATH=/nowhere /bin/sh " + (dir_ / "storage") + " 2>" + (dir_ / "said");
  EXPECT_NE(system(command.c_str()), 0);
  EXPECT_THAT(Slurp(dir_ / "said"), HasSubstr("the image has no tar"));
}

TEST_F(BroughtFilesTest, ADamagedArchiveIsAFailure) {
  std::ofstream(dir_ / "storage") << StorageScript();
  std::filesystem::create_directory(dir_ / "parts");
  std::ofstream(dir_ / "parts/0000") << "no archive";
  std::ofstream(dir_ / "storage.words") << "muster_unpack " << dir_ / "parts"
                                        << " " << dir_.path();
  const std::string command = "sh " + (dir_ / "storage") + " 2>" + (dir_ / "said");
  EXPECT_NE(system(command.c_str()), 0);
  EXPECT_THAT(Slurp(dir_ / "said"), HasSubstr("muster: uploads: the files could not be unpacked"));
}

TEST_F(BroughtFilesTest, MoreThanKubernetesCanHoldIsRefusedWithTheRemedies) {
  const absl::Status status = Pack({Sent("large", std::string(kMaxArchiveBytes, 'l'))}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  const auto bad = contract::GetBadRequest(status);
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->field_violations(0).field(), "uploads");
  for (const char* word : {"8Mi", ".musterignore", "kubernetes.volumes", "image"})
    EXPECT_THAT(bad->field_violations(0).description(), HasSubstr(word));
}

TEST_F(BroughtFilesTest, EachPartIsASecretThatOnlyTheUnpackerSees) {
  agent::v1::Assignment assignment;
  assignment.set_run_key("k7m2-42-1");
  assignment.mutable_spec()->set_nodes(1);
  assignment.mutable_spec()->set_image("python:3");
  assignment.mutable_spec()->mutable_command()->set_script("true");
  const absl::StatusOr<RunObjects> objects =
      MakeObjects(assignment, KubernetesConfig(), "runs", {"part 0", "part 1"});
  ASSERT_TRUE(objects.ok()) << objects.status();
  ASSERT_EQ(objects->file_secrets.size(), 2u);
  EXPECT_EQ(TextAt(objects->file_secrets[1], "metadata/name"), "k7m2-42-1-files-1");
  EXPECT_EQ(TextAt(objects->file_secrets[1], "data/part"), "cGFydCAx");
  const Json pod = At(objects->job, "spec/template/spec");
  const Json& init = pod.at("initContainers").at(0);
  EXPECT_THAT(init.dump(), HasSubstr("muster-files"));
  EXPECT_THAT(pod.at("containers").dump(), Not(HasSubstr("muster-files")));
  EXPECT_THAT(pod.at("volumes").dump(), HasSubstr(R"("name":"k7m2-42-1-files-0")"));
  EXPECT_THAT(TextAt(objects->secret, "data/storage.words"), Not(testing::IsEmpty()));
  const absl::StatusOr<RunObjects> without = MakeObjects(assignment, KubernetesConfig(), "runs");
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(At(without->job, "spec/template/spec").contains("initContainers"));
}

}  // namespace
}  // namespace muster::kubernetes
