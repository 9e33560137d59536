// A disk that is full before or during an upload. Needs the right to mount a small tmpfs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>

#include "tests/unit/files/files_fixture.h"

namespace muster::files {
namespace {

using ::testing::HasSubstr;

class FullDiskTest : public FilesTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(disk_);
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=1m") != 0)
      FAIL() << "mounting a small file system takes root";
    Open();
  }
  void TearDown() override {
    store_.reset();
    EXPECT_EQ(umount(disk_.c_str()), 0);
  }

  // Takes what is left.
  void Fill() {
    std::ofstream ballast(disk_ / "ballast");
    const std::string block(4096, 'b');
    while (ballast << block << std::flush) {
    }
  }
  void ExpectNothingIsLeft() {
    EXPECT_EQ(FilesIn("incoming"), 0u);
    EXPECT_EQ(store_->used_bytes(), 0u);
  }

  const std::filesystem::path disk_ = directory_ / "files";
};

TEST_F(FullDiskTest, AFileThatDoesNotFitIsRefusedAtItsHead) {
  {
    Upload upload(store_.get(), Viewer::All("alice"));
    const absl::Status status = upload.Begin(Sha256Of("?"), 2 << 20);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Reason(status), "DISK_FULL");
    EXPECT_THAT(std::string(status.message()), HasSubstr(disk_.native()));
  }
  ExpectNothingIsLeft();
}

TEST_F(FullDiskTest, WhatTheBrokerNeedsItselfIsLeftFree) {
  options_.keep_free_bytes = 900 << 10;
  Open();
  Upload upload(store_.get(), Viewer::All("alice"));
  EXPECT_EQ(Reason(upload.Begin(Sha256Of("?"), 200 << 10)), "DISK_FULL");
  EXPECT_EQ(Put({"small"}).stored, 1u);
}

TEST_F(FullDiskTest, UploadsOnTheirWayCountBeforeTheyAreWritten) {
  Upload first(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(first.Begin(Sha256Of("1"), 600 << 10).ok());
  Upload second(store_.get(), Viewer::All("alice"));
  EXPECT_EQ(Reason(second.Begin(Sha256Of("2"), 600 << 10)), "DISK_FULL");
}

TEST_F(FullDiskTest, ADiskThatFillsUpDuringTheUploadLeavesNothingHalf) {
  const std::string content(600 << 10, 'c');
  {
    Upload upload(store_.get(), Viewer::All("alice"));
    ASSERT_TRUE(upload.Begin(Sha256Of(content), content.size()).ok());
    Fill();
    const absl::Status status = upload.Append(content);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Reason(status), "DISK_FULL") << status;
  }
  ExpectNothingIsLeft();
  EXPECT_FALSE(Has(content));
  std::filesystem::remove(disk_ / "ballast");
  EXPECT_EQ(Put({content}).stored, 1u);
}

}  // namespace
}  // namespace muster::files
