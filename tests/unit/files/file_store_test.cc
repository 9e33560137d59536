#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/unit/files/files_fixture.h"

namespace muster::files {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(FilesTest, WhatWasUploadedIsReadAsItWas) {
  Open();
  const std::string large(300'000, 'x');
  const FileStore::Counts counts = Put({"abc", "", large});
  EXPECT_EQ(counts.stored, 3u);
  EXPECT_EQ(counts.known, 0u);
  EXPECT_EQ(store_->ReadKept(Sha256Of(large), Viewer::All("alice")).value_or(""), large);
  EXPECT_EQ(store_->ReadKept(Sha256Of(""), Viewer::All("alice")).value_or("?"), "");
  EXPECT_EQ(FilesIn("incoming"), 0u);
}

TEST_F(FilesTest, ASecondUploadOfTheSameFileStoresNothing) {
  Open();
  Put({"abc"});
  const uint64_t used = store_->used_bytes();
  const FileStore::Counts counts = Put({"abc", "new", "new"});
  EXPECT_EQ(counts.stored, 1u);
  EXPECT_EQ(counts.known, 2u);
  EXPECT_EQ(store_->used_bytes(), used + kBlockBytes);
  EXPECT_EQ(FilesIn("kept"), 2u);
}

TEST_F(FilesTest, WhatTheDiskHasChangedIsMissingAndHasNoBytes) {
  Open();
  Put({"abc", "def"});
  std::ofstream(Kept("abc")) << "abd";
  EXPECT_EQ(Reason(store_->ReadKept(Sha256Of("abc"), Viewer::All("alice")).status()),
            "FILE_NOT_FOUND");
  EXPECT_FALSE(Has("abc"));
  EXPECT_EQ(store_->used_bytes(), kBlockBytes);
  EXPECT_EQ(Put({"abc"}).stored, 1u);
}

TEST_F(FilesTest, AFileThatCameAfterADamagedOneStays) {
  Open();
  Put({"abc"});
  std::ofstream(Kept("abc")) << "abd";
  const auto damaged = store_->OpenKept(Sha256Of("abc"), Viewer::All("alice"));
  const auto again = store_->OpenKept(Sha256Of("abc"), Viewer::All("alice"));
  ASSERT_TRUE(damaged.ok() && again.ok());
  EXPECT_EQ(Reason(store_->DropDamaged(Sha256Of("abc"), *damaged)), "FILE_NOT_FOUND");
  Put({"abc"});
  EXPECT_EQ(Reason(store_->DropDamaged(Sha256Of("abc"), *again)), "FILE_NOT_FOUND");
  EXPECT_TRUE(Has("abc"));
  EXPECT_EQ(store_->dropped(), 1u);
}

TEST_F(FilesTest, AFileWhoseNameCouldNotBeSyncedIsMissingUntilItComesAgain) {
  Open();
  Upload upload(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(Send(&upload, "abc").ok());
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{0, files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);  // the directory cannot be opened
  const absl::Status status = upload.Finish().status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_TRUE(std::filesystem::exists(Kept("abc"))) << "it has its name";
  EXPECT_FALSE(Has("abc"));
  EXPECT_EQ(Reason(store_->OpenKept(Sha256Of("abc"), Viewer::All("alice")).status()),
            "FILE_NOT_FOUND");
  Put({"abc"});
  EXPECT_TRUE(Has("abc"));
}

TEST_F(FilesTest, WhatCannotBeRemovedKeepsNothingElseFromGoing) {
  Open();
  Put({"a", "b"});
  std::filesystem::remove(Kept("a"));
  std::filesystem::create_directory(Kept("a"));  // that the disk has made of it
  now_ += options_.retention + absl::Hours(1);
  FileStore::Expiry expiry(store_.get(), store_->Cutoff());
  while (true) {
    const auto more = expiry.Step(10);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
  }
  EXPECT_EQ(expiry.removed(), 1u);
  EXPECT_EQ(expiry.skipped().count, 1u);
  EXPECT_THAT(std::string(expiry.skipped().first.message()), HasSubstr(Sha256Of("a")));
}

TEST_F(FilesTest, MoreFilesThanOneBatchAreAllKept) {
  Open();
  std::vector<std::string> contents;
  contents.reserve(200);
  for (int i = 0; i < 200; ++i) contents.push_back("file " + std::to_string(i));
  EXPECT_EQ(Put(contents).stored, 200u);
  for (const std::string& content : contents) EXPECT_TRUE(Has(content)) << content;
}

TEST_F(FilesTest, AFileIsMissingUntilItIsOnDisk) {
  Open();
  Upload upload(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(Send(&upload, "abc").ok());
  EXPECT_FALSE(Has("abc"));
  ASSERT_TRUE(upload.Finish().ok());
  EXPECT_TRUE(Has("abc"));
}

TEST_F(FilesTest, WhatWasKeptIsThereAfterARestartAndCountsAsUsedBytes) {
  Open();
  Put({"abc", std::string(5000, 'y')});
  const uint64_t used = store_->used_bytes();
  EXPECT_EQ(used, 3 * kBlockBytes);
  Open();
  EXPECT_TRUE(Has("abc"));
  EXPECT_EQ(store_->used_bytes(), used);
}

TEST_F(FilesTest, AnUploadThatEndsEarlyLeavesNothing) {
  Open();
  {
    Upload upload(store_.get(), Viewer::All("alice"));
    ASSERT_TRUE(Send(&upload, "whole").ok());
    ASSERT_TRUE(upload.Begin(Sha256Of("half"), 4).ok());
    ASSERT_TRUE(upload.Append("ha").ok());
    EXPECT_EQ(FilesIn("incoming"), 2u);
  }
  EXPECT_EQ(FilesIn("incoming"), 0u);
  EXPECT_EQ(FilesIn("kept"), 0u);
  EXPECT_EQ(store_->used_bytes(), 0u);
}

TEST_F(FilesTest, WhatACrashLeftHalfWrittenIsGoneAtTheNextStart) {
  Open();
  Put({"abc"});
  std::ofstream(directory_ / "files/incoming/7") << "half";
  Open();
  EXPECT_EQ(FilesIn("incoming"), 0u);
  EXPECT_EQ(store_->used_bytes(), kBlockBytes);
  EXPECT_TRUE(Has("abc"));
}

TEST_F(FilesTest, ContentOfAnotherDigestIsRefusedAndNotKept) {
  Open();
  Upload upload(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(upload.Begin(Sha256Of("abc"), 3).ok());
  ASSERT_TRUE(upload.Append("abd").ok());
  const absl::Status status = upload.Finish().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reason(status), "WRONG_DIGEST");
  EXPECT_THAT(std::string(status.message()), HasSubstr(Sha256Of("abc")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Sha256Of("abd")));
  EXPECT_FALSE(Has("abc"));
}

TEST_F(FilesTest, ContentOfAnotherDigestIsRefusedAlsoIfTheFileIsThere) {
  Open();
  Put({"abc"});
  Upload upload(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(upload.Begin(Sha256Of("abc"), 3).ok());
  ASSERT_TRUE(upload.Append("abd").ok());
  EXPECT_EQ(Reason(upload.Finish().status()), "WRONG_DIGEST");
  EXPECT_EQ(store_->ReadKept(Sha256Of("abc"), Viewer::All("alice")).value_or(""), "abc");
}

TEST_F(FilesTest, ContentOfAnotherLengthIsRefused) {
  Open();
  Upload shorter(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(shorter.Begin(Sha256Of("abc"), 4).ok());
  ASSERT_TRUE(shorter.Append("abc").ok());
  EXPECT_EQ(Reason(shorter.Begin(Sha256Of("d"), 1)), "WRONG_SIZE");
  Upload longer(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(longer.Begin(Sha256Of("abc"), 2).ok());
  EXPECT_EQ(Reason(longer.Append("abc")), "WRONG_SIZE");
}

TEST_F(FilesTest, ANameThatIsNoDigestIsRefused) {
  Open();
  for (const std::string name : {"", "../../../etc/passwd", "ABC"}) {
    Upload upload(store_.get(), Viewer::All("alice"));
    EXPECT_EQ(upload.Begin(name, 1).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  Upload upload(store_.get(), Viewer::All("alice"));
  EXPECT_EQ(upload.Append("x").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, AFileOverTheCapOfAJobIsRefusedWithTheSetting) {
  options_.max_job_bytes = 20 << 20;
  Open();
  Upload upload(store_.get(), Viewer::All("alice"));
  const absl::Status status = upload.Begin(Sha256Of("?"), (20 << 20) + 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Reason(status), "FILE_TOO_LARGE");
  EXPECT_THAT(std::string(status.message()), HasSubstr("files.max_job_bytes"));
}

TEST_F(FilesTest, AFullStoreRefusesAtTheHeadAndTakesAgainWhenThereIsRoom) {
  options_.max_total_bytes = 2 * kBlockBytes;
  Open();
  Put({"one"});
  Upload upload(store_.get(), Viewer::All("alice"));
  const absl::Status status = upload.Begin(Sha256Of("?"), kBlockBytes + 1);
  EXPECT_EQ(Reason(status), "FILES_FULL");
  EXPECT_THAT(std::string(status.message()), HasSubstr("files.max_total_bytes"));
  EXPECT_EQ(Put({"two"}).stored, 1u);
  Upload third(store_.get(), Viewer::All("alice"));
  EXPECT_EQ(Reason(third.Begin(Sha256Of("three"), 5)), "FILES_FULL");
  EXPECT_THAT(std::string(status.message()), HasSubstr("4Ki of files already, of 8Ki"));
  Upload member(store_.get(), Viewer::Of("bob", {"vision"}));
  const absl::Status told = member.Begin(Sha256Of("three"), 5);
  EXPECT_EQ(Reason(told), "FILES_FULL");
  for (const char* in_use : {"Ki", "8192"})
    EXPECT_THAT(std::string(told.message()), Not(HasSubstr(in_use))) << "the size of others' files";
  // Nearly full, files go after an hour without use.
  now_ += absl::Minutes(61);
  EXPECT_TRUE(store_->IsExpiryDue());
  EXPECT_EQ(Expire(), 2);
  EXPECT_EQ(Put({"three"}).stored, 1u);
}

TEST_F(FilesTest, AFileThatAnotherUploadHasBroughtMeanwhileStaysAsItIs) {
  Open();
  Upload later(store_.get(), Viewer::All("alice"));
  ASSERT_TRUE(Send(&later, "abc").ok());
  Put({"abc"});
  struct stat before {};
  ASSERT_EQ(stat(Kept("abc").c_str(), &before), 0);
  const auto counts = later.Finish();
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->stored, 0u);
  EXPECT_EQ(counts->known, 1u);
  struct stat after {};
  ASSERT_EQ(stat(Kept("abc").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino) << "a file that was there is missing at no time";
  EXPECT_EQ(FilesIn("incoming"), 0u);
  EXPECT_EQ(store_->used_bytes(), kBlockBytes);
}

TEST_F(FilesTest, ManyUploadsOfTheSameFilesAtOnceKeepEachOnce) {
  Open();
  std::vector<std::string> contents;
  for (int i = 0; i < 40; ++i) contents.push_back(std::string(10'000, 'a') + std::to_string(i));
  std::vector<FileStore::Counts> counts(8);
  std::vector<std::thread> threads;
  threads.reserve(counts.size());
  for (auto& count : counts) threads.emplace_back([&] { count = Put(contents); });
  for (std::thread& thread : threads) thread.join();
  uint32_t stored = 0;
  for (const auto& count : counts) {
    stored += count.stored;
    EXPECT_EQ(count.stored + count.known, contents.size());
  }
  EXPECT_EQ(stored, contents.size());
  EXPECT_EQ(FilesIn("kept"), contents.size());
  EXPECT_EQ(FilesIn("incoming"), 0u);
  EXPECT_EQ(store_->used_bytes(), contents.size() * 3 * kBlockBytes);
  for (const std::string& content : contents)
    EXPECT_EQ(store_->ReadKept(Sha256Of(content), Viewer::All("alice")).value_or(""), content);
}

TEST_F(FilesTest, AFileGoesWhenNobodyHasUsedItForTheRetention) {
  Open();
  Put({"old", "used"});
  EXPECT_FALSE(store_->IsExpiryDue());
  now_ += options_.retention - absl::Hours(1);
  EXPECT_TRUE(Has("used"));
  now_ += absl::Hours(2);
  EXPECT_TRUE(store_->IsExpiryDue());
  EXPECT_EQ(Expire(), 1);
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("used"));
  EXPECT_EQ(store_->used_bytes(), kBlockBytes);
  EXPECT_FALSE(store_->IsExpiryDue());
}

TEST_F(FilesTest, UsesAreRememberedOverARestart) {
  Open();
  Put({"old", "used"});
  now_ += options_.retention - absl::Hours(1);
  EXPECT_TRUE(Has("used"));
  now_ += absl::Hours(2);
  Open();
  EXPECT_TRUE(store_->IsExpiryDue());
  EXPECT_EQ(Expire(), 1);
  EXPECT_TRUE(Has("used"));
}

TEST_F(FilesTest, AUseBeforeTheClockWasSetBackEndsAllTheSame) {
  Open();
  Put({"abc"});
  now_ -= absl::Hours(24 * 365);
  EXPECT_EQ(Expire(), 0);
  now_ += options_.retention + absl::Hours(1);
  EXPECT_EQ(Expire(), 1);
}

TEST_F(FilesTest, AReaderReadsOnWhenTheFileIsRemoved) {
  Open();
  Put({"abc"});
  const auto kept = store_->OpenKept(Sha256Of("abc"), Viewer::All("alice"));
  ASSERT_TRUE(kept.ok());
  now_ += options_.retention + absl::Hours(1);
  EXPECT_EQ(Expire(), 1);
  EXPECT_EQ(disk::ReadAt(kept->file.get(), 0, 10, "it").value_or(""), "abc");
  EXPECT_EQ(Reason(store_->OpenKept(Sha256Of("abc"), Viewer::All("alice")).status()),
            "FILE_NOT_FOUND");
}

TEST_F(FilesTest, WhatTheDiskHasChangedIsMissingAndCanComeAgain) {
  Open();
  Put({"abc"});
  std::ofstream(Kept("abc")) << "abd";
  EXPECT_EQ(Reason(store_->ReadKept(Sha256Of("abc"), Viewer::All("alice")).status()),
            "FILE_NOT_FOUND");
  EXPECT_FALSE(Has("abc"));
  EXPECT_EQ(Put({"abc"}).stored, 1u);
  EXPECT_EQ(store_->ReadKept(Sha256Of("abc"), Viewer::All("alice")).value_or(""), "abc");
}

}  // namespace
}  // namespace muster::files
