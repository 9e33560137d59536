// Full disks and failing writes: an error with the system's words, nothing lost, and it goes on
// when there is room.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <string>

#include "archive_fixture.h"
#include "contract/errors.h"

namespace muster::logs {
namespace {

const LogId kOut{.job = 42, .run = 1, .rank = 0, .stream = v1::LOG_STREAM_STDOUT};
constexpr size_t kChunk = 64 << 10;

// Appends chunks of one text until an error comes; returns the error.
absl::Status FillUp(Archive* archive, const std::string& text) {
  for (size_t offset = 0; offset < text.size(); offset += kChunk) {
    const auto result =
        archive->Append(kOut, offset, std::string_view(text).substr(offset, kChunk), false);
    if (!result.ok()) return result.status();
  }
  return absl::OkStatus();
}

std::string SomeText(size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  return text;
}

void ExpectGoesOn(Archive* archive, const std::string& text) {
  const auto probe = archive->Append(kOut, 0, "", false);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto rest = archive->Append(kOut, probe->next_offset,
                                    std::string_view(text).substr(probe->next_offset), true);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_TRUE(rest->complete);
  const auto read = archive->Read(kOut, 0, text.size() + 1);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->data == text);
}

TEST_F(ArchiveTest, ReportsAFullDiskAndGoesOnWhenThereIsRoom) {
  const auto mount_point = directory_ / "logs";
  std::filesystem::create_directory(mount_point);
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=1m") != 0) {
    FAIL() << "mounting a small file system takes root";
  }
  Open();
  const std::string text = SomeText(1200 << 10);
  const absl::Status full = FillUp(archive_.get(), text);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  ASSERT_TRUE(contract::GetErrorInfo(full));
  EXPECT_EQ(contract::GetErrorInfo(full)->reason(), "DISK_FULL");
  EXPECT_EQ(mount("tmpfs", mount_point.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  ExpectGoesOn(archive_.get(), text);
  archive_.reset();
  EXPECT_EQ(umount(mount_point.c_str()), 0);
}

TEST_F(ArchiveTest, ReportsAFailingWriteWithTheSystemsWordsAndGoesOn) {
  Open();
  const std::string text = SomeText(500'000);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status failed = FillUp(archive_.get(), text);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal) << failed;
  EXPECT_NE(failed.message().find("File too large"), absl::string_view::npos) << failed;
  ExpectGoesOn(archive_.get(), text);
}

TEST_F(ArchiveTest, ReportsADirectoryThatCannotBeMade) {
  std::filesystem::create_directories(directory_ / "logs");
  Open();
  // A file where the job's bucket belongs.
  archive_.reset();
  FILE* const file = fopen((directory_ / "logs/0").c_str(), "w");
  ASSERT_NE(file, nullptr);
  fclose(file);
  Open();
  EXPECT_FALSE(archive_->Append(kOut, 0, "abc", false).ok());
}

}  // namespace
}  // namespace muster::logs
