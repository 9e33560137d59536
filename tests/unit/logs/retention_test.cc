#include <gtest/gtest.h>

#include <filesystem>

#include "archive_fixture.h"

namespace muster::logs {
namespace {

LogId LogOf(uint64_t job, uint32_t run = 1) {
  return {.job = job, .run = run, .rank = 0, .stream = v1::LOG_STREAM_STDOUT};
}

TEST_F(ArchiveTest, RemovesLogsThatEndedLongAgoAndLeavesAMark) {
  Open({.retention = absl::Hours(1)});
  Append(LogOf(1), 0, "old", true);
  now_ += absl::Minutes(30);
  Append(LogOf(2), 0, "young", true);
  now_ += absl::Minutes(31);
  EXPECT_EQ(Expire(), 1);
  EXPECT_EQ(Read(LogOf(1)).end, v1::LOG_END_EXPIRED);
  EXPECT_EQ(Read(LogOf(1)).data, "");
  EXPECT_EQ(Read(LogOf(2)).data, "young");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "logs/0/1"));
  EXPECT_EQ(archive_->usage().bytes, 5u);
  EXPECT_EQ(archive_->usage().jobs, 1u);
  Open({.retention = absl::Hours(1)});
  EXPECT_EQ(Read(LogOf(1)).end, v1::LOG_END_EXPIRED) << "the mark survives";
}

TEST_F(ArchiveTest, TakesNoBytesForAnExpiredJobButItsEnd) {
  Open({.retention = absl::Hours(1)});
  Append(LogOf(1), 0, "old", true);
  now_ += absl::Hours(2);
  EXPECT_EQ(Expire(), 1);
  const AppendResult more = Append(LogOf(1, 2), 0, "late");
  EXPECT_TRUE(more.discarding);
  EXPECT_FALSE(more.complete);
  EXPECT_TRUE(Append(LogOf(1, 2), 4, "", true).complete);
  EXPECT_EQ(Read(LogOf(1, 2)).end, v1::LOG_END_EXPIRED);
}

TEST_F(ArchiveTest, RemovesTheLogsOfADeletedJobWhetherOrNotTheyHaveEnded) {
  Open({});
  Append(LogOf(1), 0, "ended", true);
  Append(LogOf(1, 2), 0, "never ended");
  Append(LogOf(2), 0, "other");
  EXPECT_TRUE(archive_->Remove(1).ok());
  EXPECT_TRUE(archive_->Remove(1).ok()) << "again, after a crash";
  EXPECT_TRUE(archive_->Remove(3).ok()) << "it had none";
  EXPECT_EQ(Read(LogOf(1)).end, v1::LOG_END_EXPIRED);
  EXPECT_EQ(Read(LogOf(2)).data, "other");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "logs/0/1"));
  EXPECT_EQ(archive_->usage().bytes, 5u);
  EXPECT_EQ(archive_->usage().jobs, 1u);
}

TEST_F(ArchiveTest, KeepsLogsThatHaveNotEnded) {
  Open({.retention = absl::Hours(1), .max_total_bytes = 1});
  Append(LogOf(1), 0, "running");
  Append(LogOf(2), 0, "first run", true);
  Append(LogOf(2, 2), 0, "second run");
  now_ += absl::Hours(1000);
  EXPECT_EQ(Expire(), 0);
  EXPECT_EQ(Read(LogOf(2)).data, "first run");
}

TEST_F(ArchiveTest, RemovesTheOldestUntilTheRestFits) {
  Open({.max_total_bytes = 10});
  for (const uint64_t job : {3, 1, 2}) {
    Append(LogOf(job), 0, "12345", true);
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(Expire(), 1);
  EXPECT_EQ(Read(LogOf(3)).end, v1::LOG_END_EXPIRED);
  EXPECT_EQ(Read(LogOf(1)).data, "12345");
  EXPECT_EQ(Read(LogOf(2)).data, "12345");
}

TEST_F(ArchiveTest, CountsAndExpiresWhatWasThereBefore) {
  const Options options{.retention = absl::Hours(1)};
  Open(options);
  for (const uint64_t job : {1, 999, 1000, 2500}) Append(LogOf(job), 0, "12345", true);
  Append(LogOf(7), 0, "open");
  Open(options);
  Append(LogOf(1000, 2), 0, "new run", true);
  Append(LogOf(5000), 0, "new job");
  EXPECT_EQ(Expire(), 0);
  EXPECT_EQ(archive_->usage().bytes, 4 * 5u + 4 + 7 + 7);
  EXPECT_EQ(archive_->usage().jobs, 6u);
  now_ += absl::Hours(2);
  EXPECT_EQ(Expire(), 4);
  EXPECT_EQ(archive_->usage().bytes, 4u + 7);
  EXPECT_EQ(archive_->usage().jobs, 2u);
}

TEST_F(ArchiveTest, FinishesARemovalThatACrashInterrupted) {
  const Options options{.retention = absl::Hours(1)};
  Open(options);
  Append(LogOf(1), 0, "old", true);
  std::filesystem::copy(directory_ / "logs/0/1", directory_ / "saved");
  now_ += absl::Hours(2);
  EXPECT_EQ(Expire(), 1);
  archive_.reset();
  // The mark is written before the files go.
  std::filesystem::copy(directory_ / "saved", directory_ / "logs/0/1");
  Open(options);
  EXPECT_EQ(Read(LogOf(1)).end, v1::LOG_END_EXPIRED);
  EXPECT_EQ(Expire(), 1);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "logs/0/1"));
  EXPECT_EQ(archive_->usage().bytes, 0u);
}

TEST_F(ArchiveTest, WakesAFollowerWhoseLogExpires) {
  Open({.retention = absl::Hours(1)});
  Append(LogOf(1), 0, "old", true);
  v1::LogEnd seen = v1::LOG_END_UNSPECIFIED;
  auto follow = archive_->StartFollow(LogOf(1), [&] { seen = Read(LogOf(1)).end; });
  now_ += absl::Hours(2);
  Expire();
  EXPECT_EQ(seen, v1::LOG_END_EXPIRED);
}

TEST_F(ArchiveTest, RemovesAtMostAsManyAsAsked) {
  Open({.retention = absl::Hours(1)});
  for (uint64_t job = 1; job <= 10; ++job) Append(LogOf(job), 0, "x", true);
  now_ += absl::Hours(2);
  EXPECT_EQ(*archive_->Expire(3), 3);
  EXPECT_EQ(*archive_->Expire(100), 7);
}

}  // namespace
}  // namespace muster::logs
