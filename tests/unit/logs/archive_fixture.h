// An archive in a directory of its own, with a clock that the test moves.
#ifndef MUSTER_TESTS_UNIT_LOGS_ARCHIVE_FIXTURE_H_
#define MUSTER_TESTS_UNIT_LOGS_ARCHIVE_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "broker/logs/archive.h"

namespace muster::logs {

class ArchiveTest : public testing::Test {
 protected:
  ArchiveTest() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-logs-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~ArchiveTest() override {
    archive_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open(Options options = {}) {
    archive_.reset();
    auto archive = Archive::Open(directory_ / "logs", options, [this] { return now_; });
    ASSERT_TRUE(archive.ok()) << archive.status();
    archive_ = *std::move(archive);
  }

  AppendResult Append(const LogId& log, uint64_t offset, std::string_view data, bool end = false) {
    const auto result = archive_->Append(log, offset, data, end);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(AppendResult{});
  }
  ReadResult Read(const LogId& log, uint64_t offset = 0, size_t max_bytes = 1 << 20) {
    const auto result = archive_->Read(log, offset, max_bytes);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(ReadResult{});
  }
  int Expire() {
    const auto removed = archive_->Expire(1000);
    EXPECT_TRUE(removed.ok()) << removed.status();
    return removed.value_or(-1);
  }

  std::filesystem::path directory_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<Archive> archive_;
};

}  // namespace muster::logs

#endif  // MUSTER_TESTS_UNIT_LOGS_ARCHIVE_FIXTURE_H_
