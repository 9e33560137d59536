#include "broker/logs/archive.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "archive_fixture.h"
#include "contract/errors.h"

namespace muster::logs {
namespace {

const LogId kOut{.job = 42, .run = 1, .rank = 0, .stream = v1::LOG_STREAM_STDOUT};
const LogId kErr{.job = 42, .run = 1, .rank = 0, .stream = v1::LOG_STREAM_STDERR};

TEST_F(ArchiveTest, GivesBackWhatWasAppended) {
  Open();
  EXPECT_EQ(Append(kOut, 0, "hello ").next_offset, 6u);
  EXPECT_EQ(Append(kOut, 6, "world").next_offset, 11u);
  EXPECT_EQ(Read(kOut).data, "hello world");
  EXPECT_EQ(Read(kOut, 6).data, "world");
  EXPECT_EQ(Read(kOut, 6).offset, 6u);
  EXPECT_EQ(Read(kErr).data, "");
}

TEST_F(ArchiveTest, SaysHowALogEnds) {
  Open();
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_MORE_LATER) << "nothing has come yet";
  Append(kOut, 0, "abc");
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_MORE_LATER);
  EXPECT_EQ(Read(kOut, 0, 2).end, v1::LOG_END_UNSPECIFIED) << "there is more to read";
  const AppendResult ended = Append(kOut, 3, "def", true);
  EXPECT_TRUE(ended.complete);
  EXPECT_EQ(ended.next_offset, 6u);
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_COMPLETE);
  EXPECT_EQ(Read(kOut).data, "abcdef");
  EXPECT_EQ(Read(kOut, 100).end, v1::LOG_END_COMPLETE);
}

TEST_F(ArchiveTest, SkipsAnOverlapAndAnswersAGapWithTheTrueOffset) {
  Open();
  Append(kOut, 0, "abcdef");
  EXPECT_EQ(Append(kOut, 2, "cdefgh").next_offset, 8u);
  EXPECT_EQ(Append(kOut, 0, "abc").next_offset, 8u);
  EXPECT_EQ(Append(kOut, 100, "zzz").next_offset, 8u);
  EXPECT_FALSE(Append(kOut, 100, "zzz", true).complete) << "an end beyond a gap is not the end";
  EXPECT_FALSE(Append(kOut, 3, "", true).complete) << "an end before what is there is not the end";
  EXPECT_EQ(Read(kOut).data, "abcdefgh");
  EXPECT_EQ(Append(kOut, 0, "").next_offset, 8u) << "an empty chunk asks";
}

TEST_F(ArchiveTest, AnswersARepeatedEndAsTheFirst) {
  Open();
  Append(kOut, 0, "abc", true);
  const AppendResult repeat = Append(kOut, 0, "abc", true);
  EXPECT_TRUE(repeat.complete);
  EXPECT_EQ(repeat.next_offset, 3u);
  EXPECT_FALSE(repeat.discarding);
  EXPECT_EQ(Read(kOut).data, "abc");
}

TEST_F(ArchiveTest, KeepsAnEmptyLogAsComplete) {
  Open();
  EXPECT_TRUE(Append(kErr, 0, "", true).complete);
  Open();
  EXPECT_EQ(Read(kErr).end, v1::LOG_END_COMPLETE);
}

TEST_F(ArchiveTest, GoesOnAfterAReopening) {
  Open();
  Append(kOut, 0, "abc");
  Append(kErr, 0, "xyz", true);
  Open();
  EXPECT_EQ(Append(kOut, 0, "").next_offset, 3u);
  EXPECT_EQ(Append(kOut, 3, "def").next_offset, 6u);
  EXPECT_EQ(Read(kOut).data, "abcdef");
  EXPECT_EQ(Read(kErr).end, v1::LOG_END_COMPLETE);
}

TEST_F(ArchiveTest, AnswersAnEndThatTheProcessBeforeHasTaken) {
  Open();
  Append(kOut, 0, "abc", true);
  Open();
  const AppendResult repeat = Append(kOut, 0, "abc", true);
  EXPECT_TRUE(repeat.complete);
  EXPECT_EQ(repeat.next_offset, 3u);
  EXPECT_EQ(Read(kOut).data, "abc");
}

TEST_F(ArchiveTest, LeavesForeignFilesAlone) {
  Open();
  Append(kOut, 0, "abc");
  std::ofstream(directory_ / "logs/0/42/notes.txt") << "mine";
  std::ofstream(directory_ / "logs/0/42/1-0-1.bak") << "mine";
  std::ofstream(directory_ / "logs/readme") << "mine";
  Open();
  EXPECT_EQ(Read(kOut).data, "abc");
  EXPECT_EQ(Expire(), 0);
}

TEST_F(ArchiveTest, CutsALogAtTheCapOfItsJobAndSaysSo) {
  Open({.max_job_bytes = 10});
  EXPECT_FALSE(Append(kOut, 0, "12345").discarding);
  const AppendResult at_cap = Append(kErr, 0, "abcdefgh");
  EXPECT_TRUE(at_cap.discarding);
  EXPECT_EQ(at_cap.next_offset, 8u) << "what is discarded is not asked for again";
  EXPECT_EQ(Read(kErr).data, "abcde");
  EXPECT_EQ(Read(kErr).end, v1::LOG_END_TRUNCATED);
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_MORE_LATER) << "the other has lost nothing yet";
  EXPECT_TRUE(Append(kOut, 5, "", true).complete);
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_COMPLETE);
  const AppendResult end = Append(kErr, 1000, "", true);
  EXPECT_TRUE(end.complete);
  Open({.max_job_bytes = 10});
  EXPECT_EQ(Read(kErr).data, "abcde");
  EXPECT_EQ(Read(kErr).end, v1::LOG_END_TRUNCATED);
}

TEST_F(ArchiveTest, CutsALogAgainAfterAReopening) {
  Open({.max_job_bytes = 4});
  Append(kOut, 0, "123456");
  Open({.max_job_bytes = 4});
  const AppendResult probe = Append(kOut, 0, "");
  EXPECT_TRUE(probe.discarding);
  EXPECT_TRUE(Append(kOut, 6, "", true).complete);
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_TRUNCATED);
}

TEST_F(ArchiveTest, CountsTheCapPerJob) {
  Open({.max_job_bytes = 4});
  Append(kOut, 0, "123456");
  const LogId other{.job = 43, .run = 1, .rank = 0, .stream = v1::LOG_STREAM_STDOUT};
  EXPECT_FALSE(Append(other, 0, "123").discarding);
}

TEST_F(ArchiveTest, RefusesToBeOpenedTwice) {
  Open();
  const auto second = Archive::Open(directory_ / "logs", {}, [this] { return now_; });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(contract::GetErrorInfo(second.status())->reason(), "ARCHIVE_IN_USE");
}

TEST_F(ArchiveTest, RefusesALogWithoutAStream) {
  Open();
  LogId log = kOut;
  log.stream = v1::LOG_STREAM_UNSPECIFIED;
  EXPECT_EQ(archive_->Append(log, 0, "x", false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ArchiveTest, BoundsItsOpenFiles) {
  Open({.max_open_files = 3});
  for (uint64_t job = 1; job <= 20; ++job) {
    LogId log = kOut;
    log.job = job;
    Append(log, 0, "abc");
  }
  EXPECT_LE(archive_->usage().open_files, 3u);
  for (uint64_t job = 1; job <= 20; ++job) {
    LogId log = kOut;
    log.job = job;
    Append(log, 3, "def");
    EXPECT_EQ(Read(log).data, "abcdef");
  }
  EXPECT_LE(archive_->usage().open_files, 3u);
}

TEST_F(ArchiveTest, ServesMoreJobsThanItRemembers) {
  Open({.max_cached_jobs = 64});
  constexpr uint64_t kJobs = 500;
  for (uint64_t job = 1; job <= kJobs; ++job) {
    LogId log = kOut;
    log.job = job;
    Append(log, 0, std::to_string(job));
  }
  for (uint64_t job = 1; job <= kJobs; ++job) {
    LogId log = kOut;
    log.job = job;
    EXPECT_EQ(Read(log).data, std::to_string(job));
  }
  EXPECT_EQ(archive_->usage().jobs, kJobs);
}

TEST_F(ArchiveTest, WakesFollowersAfterEachChange) {
  Open();
  int wakes = 0;
  std::string seen;
  auto follow = archive_->StartFollow(kOut, [&] {
    ++wakes;
    seen += Read(kOut, seen.size()).data;
  });
  Append(kOut, 0, "abc");
  EXPECT_EQ(seen, "abc");
  Append(kOut, 0, "abc");
  EXPECT_EQ(wakes, 1) << "nothing changed";
  Append(kErr, 0, "abc");
  EXPECT_EQ(wakes, 1) << "another log changed";
  Append(kOut, 3, "d", true);
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(seen, "abcd");
  follow.reset();
  EXPECT_EQ(archive_->usage().followers, 0u);
}

TEST_F(ArchiveTest, LetsAFollowerReadEverythingWhileItIsWritten) {
  Open();
  constexpr int kChunks = 2000;
  const std::string chunk(1000, 'x');
  std::atomic<int> wakes = 0;
  auto follow = archive_->StartFollow(kOut, [&] {
    ++wakes;
    wakes.notify_one();
  });
  std::string seen;
  std::thread reader([&] {
    while (true) {
      const int before = wakes;
      const auto result = archive_->Read(kOut, seen.size(), 64 << 10);
      ASSERT_TRUE(result.ok()) << result.status();
      seen += result->data;
      if (result->end == v1::LOG_END_COMPLETE) return;
      if (result->end == v1::LOG_END_MORE_LATER) wakes.wait(before);
    }
  });
  for (int i = 0; i < kChunks; ++i) Append(kOut, i * chunk.size(), chunk, i + 1 == kChunks);
  reader.join();
  EXPECT_EQ(seen.size(), kChunks * chunk.size());
}

TEST_F(ArchiveTest, TakesLogsFromManyThreads) {
  Open();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    threads.emplace_back([this, rank] {
      LogId log = kOut;
      log.rank = rank;
      for (int i = 0; i < 200; ++i) Append(log, i * 2, "ab", i == 199);
    });
  }
  for (auto& thread : threads) thread.join();
  for (uint32_t rank = 0; rank < 8; ++rank) {
    LogId log = kOut;
    log.rank = rank;
    EXPECT_EQ(Read(log).data.size(), 400u);
  }
  EXPECT_EQ(archive_->usage().bytes, 8u * 400);
}

}  // namespace
}  // namespace muster::logs
