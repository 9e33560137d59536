#include "agents/core/log_tail.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {
namespace {

class LogTailTest : public testing::Test {
 protected:
  std::string path() const { return dir_.path() + "/out"; }
  void Write(std::string_view bytes) { std::ofstream(path(), std::ios::app) << bytes; }
  LogTail Tail() const { return LogTail("k7m2-1-1", {0, v1::LOG_STREAM_STDOUT, path()}); }

  // Returns the chunk that is sent next, if there is one.
  static std::optional<agent::v1::LogChunk> Send(LogTail& tail) {
    absl::StatusOr<std::optional<agent::v1::LogChunk>> chunk = tail.Next();
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    if (!chunk.ok() || !*chunk) return std::nullopt;
    tail.Sent(**chunk);
    return **chunk;
  }
  static void Answer(LogTail& tail, uint64_t next_offset, bool complete = false,
                     bool discarding = false) {
    agent::v1::PushResponse answer;
    answer.set_next_offset(next_offset);
    answer.set_complete(complete);
    answer.set_discarding(discarding);
    tail.OnAnswer(answer);
  }
  // Makes a tail that the archive has answered.
  LogTail Begun(uint64_t next_offset = 0) {
    LogTail tail = Tail();
    Send(tail);
    Answer(tail, next_offset);
    return tail;
  }

  hosts::TempDir dir_;
};

TEST_F(LogTailTest, BeginsWithAnEmptyChunkAndGoesOnWhereTheArchiveSays) {
  Write("0123456789");
  LogTail tail = Tail();
  const auto ask = Send(tail);
  EXPECT_EQ(ask->data(), "");
  EXPECT_FALSE(ask->end());
  EXPECT_FALSE(Send(tail)) << "the answer comes first";
  Answer(tail, 4);
  const auto chunk = Send(tail);
  EXPECT_EQ(chunk->offset(), 4);
  EXPECT_EQ(chunk->data(), "456789");
}

TEST_F(LogTailTest, AFileThatDoesNotExistYetIsEmpty) {
  LogTail tail = Begun();
  EXPECT_FALSE(Send(tail));
  Write("late");
  EXPECT_EQ(Send(tail)->data(), "late");
}

TEST_F(LogTailTest, AMissingFileAtTheEndIsAnEmptyLog) {
  LogTail tail = Begun();
  tail.SetEnded();
  const auto end = Send(tail);
  EXPECT_TRUE(end->end());
  EXPECT_EQ(end->data(), "");
  Answer(tail, 0, /*complete=*/true);
  EXPECT_TRUE(tail.complete());
}

TEST_F(LogTailTest, ChunksAreBoundedAndTheLastOneCarriesTheEnd) {
  Write(std::string(kMaxChunkBytes + 10, 'x'));
  LogTail tail = Begun();
  tail.SetEnded();
  const auto first = Send(tail);
  EXPECT_EQ(first->data().size(), kMaxChunkBytes);
  EXPECT_FALSE(first->end());
  const auto last = Send(tail);
  EXPECT_EQ(last->data().size(), 10);
  EXPECT_TRUE(last->end());
}

TEST_F(LogTailTest, AFileOfWholeChunksEndsWithAnEmptyOne) {
  Write(std::string(kMaxChunkBytes, 'x'));
  LogTail tail = Begun();
  tail.SetEnded();
  EXPECT_FALSE(Send(tail)->end());
  const auto last = Send(tail);
  EXPECT_EQ(last->offset(), kMaxChunkBytes);
  EXPECT_TRUE(last->end());
}

TEST_F(LogTailTest, WhatTheArchiveDidNotTakeIsSentAgainOnceAllAnswersAreThere) {
  Write(std::string(3 * kMaxChunkBytes, 'x'));
  LogTail tail = Begun();
  Send(tail);
  Send(tail);
  Send(tail);
  Answer(tail, 100);  // the first was cut short
  EXPECT_FALSE(Send(tail));
  Answer(tail, 100);
  Answer(tail, 100);
  EXPECT_EQ(Send(tail)->offset(), 100);
}

TEST_F(LogTailTest, AnEndThatTheArchiveDidNotTakeIsSentAgain) {
  Write("abc");
  LogTail tail = Begun();
  tail.SetEnded();
  EXPECT_TRUE(Send(tail)->end());
  Answer(tail, 1);
  const auto again = Send(tail);
  EXPECT_EQ(again->data(), "bc");
  EXPECT_TRUE(again->end());
}

TEST_F(LogTailTest, WhatIsInFlightIsBounded) {
  Write(std::string(6 << 20, 'x'));
  LogTail tail = Begun();
  while (Send(tail)) {
  }
  EXPECT_EQ(tail.bytes_in_flight(), 4 << 20);
  EXPECT_TRUE(tail.awaits_answer());
  Answer(tail, kMaxChunkBytes);
  EXPECT_TRUE(Send(tail));
}

TEST_F(LogTailTest, ADiscardingArchiveGetsTheEndAloneAtTheTrueSize) {
  Write(std::string(5000, 'x'));
  LogTail tail = Begun();
  Send(tail);
  Answer(tail, 1000, /*complete=*/false, /*discarding=*/true);
  EXPECT_FALSE(Send(tail)) << "the run goes on";
  Write("more");
  tail.SetEnded();
  const auto end = Send(tail);
  EXPECT_EQ(end->offset(), 5004);
  EXPECT_EQ(end->data(), "");
  EXPECT_TRUE(end->end());
}

TEST_F(LogTailTest, ANewStreamAsksAgainAndACompleteLogDoesNot) {
  Write("abc");
  LogTail tail = Begun();
  Send(tail);
  tail.Restart();
  EXPECT_EQ(tail.bytes_in_flight(), 0);
  EXPECT_EQ(Send(tail)->data(), "");
  Answer(tail, 3);
  tail.SetEnded();
  Send(tail);
  Answer(tail, 3, /*complete=*/true);
  tail.Restart();
  EXPECT_TRUE(tail.complete());
  EXPECT_FALSE(Send(tail));
}

TEST_F(LogTailTest, AnArchiveThatHasItAllSaysSoAtOnce) {
  LogTail tail = Tail();
  Send(tail);
  Answer(tail, 10, /*complete=*/true);
  EXPECT_TRUE(tail.complete());
}

TEST_F(LogTailTest, ALinkOrAPipeInPlaceOfTheLogIsNotRead) {
  std::ofstream(dir_.path() + "/secret") << "secret";
  std::filesystem::create_symlink(dir_.path() + "/secret", path());
  LogTail tail = Begun();
  EXPECT_FALSE(tail.Next().ok());
  std::filesystem::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(tail.Next().ok());
}

TEST_F(LogTailTest, AnUnreadableFileIsAnErrorThatNamesItAndHeals) {
  std::filesystem::create_directory(path());
  LogTail tail = Begun();
  tail.SetEnded();
  const absl::Status status = tail.Next().status();
  EXPECT_NE(std::string(status.message()).find(path()), std::string::npos);
  std::filesystem::remove(path());
  Write("there");
  EXPECT_EQ(Send(tail)->data(), "there");
}

}  // namespace
}  // namespace muster::agents
