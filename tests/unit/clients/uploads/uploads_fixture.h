// A directory of the test's own, with the files that it makes.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_UPLOADS_UPLOADS_FIXTURE_H_
#define MUSTER_TESTS_UNIT_CLIENTS_UPLOADS_UPLOADS_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "clients/cpp/uploads/local_tree.h"

namespace muster::client {

class UploadsTest : public testing::Test {
 protected:
  UploadsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-uploads-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~UploadsTest() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& path, const std::string& content = "x") {
    const std::filesystem::path file = directory_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  // Returns the paths of the tree's entries, in its order.
  std::vector<std::string> Paths(const std::string& below = "",
                                 RulesAbove above = RulesAbove::kCount) {
    const auto local = ReadLocalTree(directory_ / below, kPlenty, above);
    EXPECT_TRUE(local.ok()) << local.status();
    std::vector<std::string> paths;
    if (!local.ok()) return paths;
    for (const auto& entry : local->tree.entries()) paths.push_back(entry.path());
    return paths;
  }
  std::string Error(uint64_t max_bytes = kPlenty) {
    return std::string(ReadLocalTree(directory_, max_bytes, RulesAbove::kCount).status().message());
  }

  static constexpr uint64_t kPlenty = 1 << 30;
  std::filesystem::path directory_;
};

}  // namespace muster::client

#endif  // MUSTER_TESTS_UNIT_CLIENTS_UPLOADS_UPLOADS_FIXTURE_H_
