#include "agents/core/status_reader.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agents/hosts/local_host.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

constexpr char kResults[] = "/@ada/home/ada/results";

// A host on which the user says what find prints.
class UsersWords : public hosts::LocalHost {
 public:
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command&) override {
    hosts::CommandResult result;
    result.stdout_data = "9e9 10 " + path + std::string(1, '\0');
    return result;
  }
  absl::StatusOr<std::string> ReadFileRange(std::string_view from, uint64_t, size_t) override {
    read.emplace_back(from);
    return R"({"status": "RUNNING", "message": "hi"})";
  }

  std::string path;
  std::vector<std::string> read;
};

absl::StatusOr<std::optional<FoundStatus>> FindOn(UsersWords* host) {
  RunOutput output;
  output.readable_results = kResults;
  return StatusReader(host).Find(output, std::nullopt);
}

TEST(StatusReaderTest, AUsersFindNamesNoFileOfAnotherUsers) {
  for (const std::string& path :
       {std::string("/@bob/home/bob/status.json"), std::string("/runs/bob/k7m2-1-1/status.json"),
        std::string("/home/ada/results/status.json"), std::string(kResults) + "-2/status.json",
        std::string(kResults) + "/../../../@bob/home/bob/status.json"}) {
    UsersWords host;
    host.path = path;
    const auto found = FindOn(&host);
    EXPECT_TRUE(absl::IsPermissionDenied(found.status())) << path << found.status();
    EXPECT_TRUE(host.read.empty()) << path;
  }
}

TEST(StatusReaderTest, WhatIsBelowTheResultsIsRead) {
  UsersWords host;
  host.path = std::string(kResults) + "/deep/status.json";
  const auto found = FindOn(&host);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ(host.read, std::vector<std::string>{host.path});
}

}  // namespace
}  // namespace muster::agents
