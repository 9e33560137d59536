// A run's files on this machine, and who takes what is sent of them.
#ifndef MUSTER_TESTS_UNIT_AGENTS_RUN_FILES_RUN_FILES_FIXTURE_H_
#define MUSTER_TESTS_UNIT_AGENTS_RUN_FILES_RUN_FILES_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/core/file_sender.h"
#include "contract/errors.h"

namespace muster::agents {

// Takes what is sent, as "KIND PATH", "+BYTES" of content, or "! PATH CODE" of what is left out.
class TakingLink final : public FilesLink {
 public:
  explicit TakingLink(size_t room) : room_(room) {}
  bool Send(const agent::v1::SendFilesRequest& message) override {
    if (taken_.size() == room_) return false;
    messages_.push_back(message.SerializeAsString());
    if (message.has_entry()) {
      taken_.push_back(std::string("-fdl").substr(message.entry().kind(), 1) + " " +
                       message.entry().path());
    } else if (message.has_left_out()) {
      taken_.push_back("! " + message.left_out().path() + " " +
                       v1::FileLeftOutCode_Name(message.left_out().code()));
    } else {
      taken_.push_back("+" + message.chunk());
    }
    return true;
  }
  absl::Status Finish() override { return absl::OkStatus(); }
  void Cancel() override {}

  const size_t room_;
  std::vector<std::string> taken_;
  std::vector<std::string> messages_;  // the same, whole
};

// A run's working directory on this machine, `run/work` below a directory that others have, too.
class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-sender-XXXXXX").string();
    root_ = mkdtemp(name.data());
    work_ = root_ / "run/work";
    std::filesystem::create_directories(work_);
  }
  ~RunFilesTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories((work_ / path).parent_path());
    std::ofstream(work_ / path, std::ios::binary) << content;
  }
  std::unique_ptr<RunFiles> OpenLocal() {
    auto files = OpenLocalRunFiles(root_, "run/work");
    EXPECT_TRUE(files.ok()) << files.status();
    return *std::move(files);
  }
  static std::string ReasonOf(const absl::Status& status) {
    const auto info = contract::GetErrorInfo(status);
    return info ? info->reason() : std::string(status.message());
  }
  static std::vector<std::string> Sent(RunFiles* files, const std::string& path) {
    TakingLink link(10'000);
    const auto sent = SendFiles(files, path, &link);
    EXPECT_TRUE(sent.ok()) << sent.status();
    return link.taken_;
  }

  std::filesystem::path root_;
  std::filesystem::path work_;
};

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_RUN_FILES_RUN_FILES_FIXTURE_H_
