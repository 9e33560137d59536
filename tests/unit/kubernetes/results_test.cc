#include <gtest/gtest.h>

#include <filesystem>

#include "agents/kubernetes/kubernetes.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

TEST(ResultsTest, ALinkThatLeadsOutOfTheStorageRootIsNotFollowed) {
  const hosts::TempDir dir;
  const std::filesystem::path data = std::filesystem::canonical(dir.path()) / "data";
  std::filesystem::create_directories(data / "7");
  std::filesystem::create_directories(data / "8");
  std::filesystem::create_directories(data.parent_path() / "secret/9");
  std::filesystem::create_directory_symlink("../secret", data / "out");
  std::filesystem::create_directory_symlink("8", data / "within");
  KubernetesConfig config;
  config.storage_roots["data"] = {.claim = "data", .host_path = "", .mount = "/lustre"};
  config.agent_roots["data"] = data;
  EXPECT_EQ(ReadableResults(config, "/lustre/7"), data / "7");
  EXPECT_EQ(ReadableResults(config, "/lustre/within"), data / "8");
  EXPECT_EQ(ReadableResults(config, "/lustre/later"), data / "later") << "it may still be made";
  EXPECT_EQ(ReadableResults(config, "/lustre/out"), "");
  EXPECT_EQ(ReadableResults(config, "/lustre/out/9"), "");
  EXPECT_EQ(ReadableResults(config, "/home/7"), "");
}

}  // namespace
}  // namespace muster::kubernetes
