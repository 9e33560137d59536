// Sets up a store of files in a directory of its own, with a clock that the test moves.
#ifndef MUSTER_TESTS_UNIT_FILES_FILES_FIXTURE_H_
#define MUSTER_TESTS_UNIT_FILES_FILES_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/files/file_store.h"
#include "broker/files/upload.h"
#include "contract/errors.h"
#include "digest/sha256.h"

namespace muster::files {

inline std::string Reason(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-files-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    options_.keep_free_bytes = 0;
  }
  ~FilesTest() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open() {
    store_.reset();
    auto store = FileStore::Open(directory_ / "files", options_, [this] { return now_; });
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  absl::Status Send(Upload* upload, const std::string& content) {
    if (auto status = upload->Begin(Sha256Of(content), content.size()); !status.ok()) return status;
    return upload->Append(content);
  }
  FileStore::Counts Put(const std::vector<std::string>& contents) {
    Upload upload(store_.get(), Viewer::All("alice"));
    for (const std::string& content : contents) {
      const absl::Status status = Send(&upload, content);
      EXPECT_TRUE(status.ok()) << status;
    }
    const auto counts = upload.Finish();
    EXPECT_TRUE(counts.ok()) << counts.status();
    return counts.value_or(FileStore::Counts{});
  }
  bool Has(const std::string& content) {
    const auto size = store_->Use(Sha256Of(content), Viewer::All("alice"));
    EXPECT_TRUE(size.ok()) << size.status();
    return size.ok() && size->has_value();
  }
  // Makes one whole pass.
  int Expire() {
    FileStore::Expiry expiry(store_.get(), store_->Cutoff());
    for (;;) {
      const auto more = expiry.Step(2);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.value_or(false)) return static_cast<int>(expiry.removed());
    }
  }
  size_t FilesIn(const std::string& name) const {
    const std::filesystem::directory_iterator entries(directory_ / "files" / name);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
  std::filesystem::path Kept(const std::string& content) const {
    return directory_ / "files/kept" / Sha256Of(content);
  }

  std::filesystem::path directory_;
  Options options_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<FileStore> store_;
};

}  // namespace muster::files

#endif  // MUSTER_TESTS_UNIT_FILES_FILES_FIXTURE_H_
