// Sets up a fake broker that keeps files, and a directory of the test's own that is the command's.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_UPLOAD_FIXTURE_H_
#define MUSTER_TESTS_UNIT_CLIENTS_UPLOAD_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "contract/file_tree.h"
#include "digest/sha256.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {

class UploadTest : public CommandTest {
 protected:
  UploadTest() {
    broker_.find_missing_files = [this](const v1::FindMissingFilesRequest& request)
        -> absl::StatusOr<v1::FindMissingFilesResponse> {
      const std::lock_guard lock(mutex_);
      v1::FindMissingFilesResponse response;
      response.set_max_job_bytes(max_job_bytes_);
      for (const std::string& sha256 : request.sha256()) {
        if (!kept_.contains(sha256)) response.add_missing_sha256(sha256);
      }
      return response;
    };
    broker_.upload_files = [this](const std::function<bool(v1::UploadFilesRequest*)>& read) {
      return Take(read);
    };
    directory_ = std::filesystem::path(broker_.address().substr(5)).parent_path() / "home";
    std::filesystem::create_directory(directory_);
  }

  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = directory_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  // Its "~" is the directory.
  Outcome RunAtHome(std::vector<std::string> arguments) {
    Command command(broker_.address(), std::move(arguments), /*on_terminal=*/false,
                    {"HOME=" + directory_.string()});
    return command.Finish();
  }
  // Returns "PATH=CONTENT " of the files of an upload of the last job.
  std::string TreeOf(int upload) {
    const std::lock_guard lock(mutex_);
    const v1::Upload& named = submitted_.back().spec().uploads(upload);
    const auto tree = contract::ParseFileTree(kept_[named.tree_sha256()]);
    EXPECT_TRUE(tree.ok()) << tree.status();
    std::string text = named.path().empty() ? "" : named.path() + ": ";
    if (!tree.ok()) return text;
    for (const auto& entry : tree->entries()) {
      text += entry.path();
      text += "=" + kept_[entry.sha256()] + " ";
    }
    return text;
  }

  std::map<std::string, std::string> kept_;
  int uploads_ = 0;  // that brought more than lists of files
  uint64_t max_job_bytes_ = 1 << 30;
  absl::Status upload_error_;  // of the next of those
  std::filesystem::path directory_;

 private:
  static bool IsTree(const std::string& content) {
    v1::FileTree tree;
    return tree.ParseFromString(content) && tree.entries_size() > 0;
  }
  absl::StatusOr<v1::UploadFilesResponse> Take(
      const std::function<bool(v1::UploadFilesRequest*)>& read) {
    v1::UploadFilesRequest request;
    std::string sha256;
    std::map<std::string, std::string> files;
    while (read(&request)) {
      if (request.has_head()) files[sha256 = request.head().sha256()];
      if (!request.has_head()) files[sha256] += request.chunk();
    }
    const std::lock_guard lock(mutex_);
    const bool brings_files = !std::all_of(files.begin(), files.end(),
                                           [](const auto& file) { return IsTree(file.second); });
    if (brings_files) ++uploads_;
    if (brings_files && !upload_error_.ok()) return std::exchange(upload_error_, absl::OkStatus());
    for (const auto& [digest, content] : files) {
      EXPECT_EQ(Sha256Of(content), digest);
      kept_[digest] = content;
    }
    v1::UploadFilesResponse response;
    response.set_stored_files(static_cast<uint32_t>(files.size()));
    return response;
  }
};

}  // namespace muster::cli

#endif  // MUSTER_TESTS_UNIT_CLIENTS_UPLOAD_FIXTURE_H_
