// Both outputs of a rank, in the order in which their bytes came.
#include "broker/logs/rank_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "archive_fixture.h"
#include "broker/logs/tail_search.h"

namespace muster::logs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr v1::LogStream kOut = v1::LOG_STREAM_STDOUT;
constexpr v1::LogStream kErr = v1::LOG_STREAM_STDERR;
constexpr RankId kRank{.job = 42, .run = 1, .rank = 3};

using Pieces = std::vector<std::pair<v1::LogStream, std::string>>;

class RankReaderTest : public ArchiveTest {
 protected:
  RankReaderTest() { Open(); }

  void Add(v1::LogStream stream, std::string_view text) {
    size_t& size = stream == kOut ? out_ : err_;
    Append(kRank.Log(stream), size, text);
    size += text.size();
  }

  RankReader Reader() { return {archive_.get(), kRank, {kOut, kErr}}; }

  // Reads the present output; pieces of one output that follow each other are one.
  static Pieces ReadAll(RankReader& reader, bool may_tear = true) {
    Pieces pieces;
    while (true) {
      auto piece = reader.Next(1 << 16, may_tear);
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok() || !piece->has_value()) return pieces;
      if (!pieces.empty() && pieces.back().first == (*piece)->stream) {
        pieces.back().second += (*piece)->data;
      } else {
        pieces.emplace_back((*piece)->stream, (*piece)->data);
      }
    }
  }
  Pieces ReadAll() {
    RankReader reader = Reader();
    return ReadAll(reader);
  }

  std::pair<uint64_t, uint64_t> Tail(uint64_t lines) {
    TailSearch search(archive_.get(), kRank, {kOut, kErr}, lines);
    absl::StatusOr<bool> done = false;
    // One read at a time.
    while (done.ok() && !*done) done = search.Continue(1);
    EXPECT_TRUE(done.ok()) << done.status();
    return {search.Begin(kOut), search.Begin(kErr)};
  }

  size_t out_ = 0;
  size_t err_ = 0;
  const std::filesystem::path order_ = directory_ / "logs/0/42/1-3.order";
};

TEST_F(RankReaderTest, GivesTheBytesInTheOrderInWhichTheyCame) {
  Add(kErr, "a\n");
  Add(kOut, "b\n");
  Add(kOut, "c\n");
  Add(kErr, "d\n");
  Add(kOut, "e\n");
  EXPECT_THAT(ReadAll(), ElementsAre(std::pair(kErr, "a\n"), std::pair(kOut, "b\nc\n"),
                                     std::pair(kErr, "d\n"), std::pair(kOut, "e\n")));
}

TEST_F(RankReaderTest, OneOutputAloneHasNoOrderToKeep) {
  for (int i = 0; i < 100; ++i) Add(kOut, "line\n");
  EXPECT_FALSE(std::filesystem::exists(order_));
  Add(kErr, "x\n");
  for (int i = 0; i < 100; ++i) Add(kErr, "line\n");
  EXPECT_EQ(std::filesystem::file_size(order_), kMarkBytes) << "one change, one mark";
}

TEST_F(RankReaderTest, GoesOnWhereItWasToldTo) {
  Add(kOut, "one\n");
  Add(kErr, "two\n");
  Add(kOut, "three\n");
  Add(kErr, "four\n");
  RankReader reader = Reader();
  reader.Seek(kOut, 2);
  reader.Seek(kErr, 4);
  EXPECT_THAT(ReadAll(reader),
              ElementsAre(std::pair(kOut, "e\nthree\n"), std::pair(kErr, "four\n")));
  Add(kErr, "five\n");
  EXPECT_THAT(ReadAll(reader), ElementsAre(std::pair(kErr, "five\n")));
  EXPECT_EQ(reader.Position(kOut), 10u);
  EXPECT_EQ(reader.Position(kErr), 14u);
}

TEST_F(RankReaderTest, ALineIsNotTornByTheOtherOutputIfItsRestIsThere) {
  Add(kOut, "half a ");
  Add(kErr, "oops\n");
  Add(kOut, "line\nnext\n");
  EXPECT_THAT(ReadAll(), ElementsAre(std::pair(kOut, "half a line\n"), std::pair(kErr, "oops\n"),
                                     std::pair(kOut, "next\n")));
}

TEST_F(RankReaderTest, WhoWaitsMayHaveTheOtherOutputWaitForTheRestOfALine) {
  RankReader reader = Reader();
  Add(kOut, "half a ");
  Add(kErr, "oops\n");
  EXPECT_THAT(ReadAll(reader, /*may_tear=*/false), ElementsAre(std::pair(kOut, "half a ")));
  EXPECT_TRUE(reader.holds_back());
  Add(kOut, "line");
  EXPECT_THAT(ReadAll(reader, false), ElementsAre(std::pair(kOut, "line")));
  EXPECT_TRUE(reader.holds_back());
  EXPECT_THAT(ReadAll(reader, true), ElementsAre(std::pair(kErr, "oops\n")));
  EXPECT_FALSE(reader.holds_back());
}

TEST_F(RankReaderTest, ALogThatHasEndedWithinALineHoldsNothingBack) {
  RankReader reader = Reader();
  Add(kOut, "no line end");
  Add(kErr, "oops\n");
  Append(kRank.Log(kOut), out_, "", true);
  EXPECT_THAT(ReadAll(reader, false),
              ElementsAre(std::pair(kOut, "no line end"), std::pair(kErr, "oops\n")));
  EXPECT_EQ(reader.End(kOut), v1::LOG_END_COMPLETE);
  EXPECT_EQ(reader.End(kErr), v1::LOG_END_MORE_LATER);
}

TEST_F(RankReaderTest, TheOrderOutlivesTheProcess) {
  Add(kErr, "a\n");
  Add(kOut, "b\n");
  Open();
  Add(kErr, "c\n");
  Append(kRank.Log(kOut), out_, "", true);
  Append(kRank.Log(kErr), err_, "", true);
  Open();
  EXPECT_THAT(ReadAll(),
              ElementsAre(std::pair(kErr, "a\n"), std::pair(kOut, "b\n"), std::pair(kErr, "c\n")));
}

TEST_F(RankReaderTest, WithoutItsFileNoByteIsLostAndOutComesBeforeErr) {
  Add(kErr, "a\n");
  Add(kOut, "b\n");
  Add(kErr, "c\n");
  archive_.reset();
  std::filesystem::remove(order_);
  Open();
  EXPECT_THAT(ReadAll(), ElementsAre(std::pair(kOut, "b\n"), std::pair(kErr, "a\nc\n")));
  Add(kOut, "d\n");
  EXPECT_THAT(ReadAll(), ElementsAre(std::pair(kOut, "b\n"), std::pair(kErr, "a\nc\n"),
                                     std::pair(kOut, "d\n")));
}

TEST_F(RankReaderTest, ATornMarkCostsTheOrderOfItsPartOnly) {
  Add(kErr, "a\n");
  Add(kOut, "b\n");
  Add(kErr, "c\n");
  Add(kOut, "d\n");
  {
    std::fstream file(order_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3);
    file << "torn";
  }
  EXPECT_THAT(ReadAll(), ElementsAre(std::pair(kOut, "b\n"), std::pair(kErr, "a\nc\n"),
                                     std::pair(kOut, "d\n")));
}

TEST_F(RankReaderTest, MarksBeyondWhatACrashLeftOfTheLogsAreGone) {
  Add(kOut, "a\n");
  Add(kErr, "b\n");
  Add(kOut, "c\n");
  Add(kErr, "d\n");
  archive_.reset();
  // The disk has kept the order and lost the rest.
  std::filesystem::resize_file(directory_ / "logs/0/42/1-3-1.open", 0);
  std::filesystem::resize_file(directory_ / "logs/0/42/1-3-2.open", 0);
  Open();
  err_ = out_ = 0;
  Add(kOut, "a\nc\n");
  Add(kErr, "b\nd\n");
  EXPECT_EQ(std::filesystem::file_size(order_), kMarkBytes);
  EXPECT_THAT(ReadAll(), ElementsAre(std::pair(kOut, "a\nc\n"), std::pair(kErr, "b\nd\n")));
}

TEST_F(RankReaderTest, BeyondItsBoundTheOrderIsNotKeptAndTheBytesAre) {
  for (uint64_t i = 0; i < kMaxMarks + 10; ++i) Add(i % 2 == 0 ? kOut : kErr, "x\n");
  EXPECT_EQ(std::filesystem::file_size(order_), kMaxMarks * kMarkBytes);
  size_t bytes = 0;
  for (const auto& [_, data] : ReadAll()) bytes += data.size();
  EXPECT_EQ(bytes, out_ + err_);
}

TEST_F(RankReaderTest, ListsTheLogsOfARunWithTheirSizes) {
  Add(kErr, "abc");
  Append({42, 1, 0, kOut}, 0, "x", true);
  Append({42, 2, 0, kOut}, 0, "another run");
  const auto logs = archive_->List(42, 1);
  ASSERT_TRUE(logs.ok());
  ASSERT_EQ(logs->size(), 2u);
  EXPECT_EQ((*logs)[0].rank, 0u);
  EXPECT_EQ((*logs)[0].facts.size, 1u);
  EXPECT_EQ((*logs)[0].facts.end, v1::LOG_END_COMPLETE);
  EXPECT_EQ((*logs)[1].rank, 3u);
  EXPECT_EQ((*logs)[1].stream, kErr);
  EXPECT_EQ((*logs)[1].facts.size, 3u);
  EXPECT_EQ((*logs)[1].facts.end, v1::LOG_END_MORE_LATER);
  EXPECT_THAT(*archive_->List(42, 3), IsEmpty());
}

TEST_F(RankReaderTest, TheLastLinesAreCountedOverBothOutputs) {
  Add(kOut, "1\n2\n");
  Add(kErr, "3\n");
  Add(kOut, "4\n5");
  Add(kErr, "6\n");
  EXPECT_EQ(Tail(1), std::pair(out_, size_t{2})) << "6";
  EXPECT_EQ(Tail(2), std::pair(size_t{6}, size_t{2})) << "5, 6";
  EXPECT_EQ(Tail(3), std::pair(size_t{4}, size_t{2}));
  EXPECT_EQ(Tail(4), std::pair(size_t{4}, size_t{0}));
  EXPECT_EQ(Tail(5), std::pair(size_t{2}, size_t{0}));
  EXPECT_EQ(Tail(100), std::pair(size_t{0}, size_t{0}));
}

TEST_F(RankReaderTest, ALineThatIsLongerThanAReadIsOneLine) {
  const std::string line(200'000, 'x');
  Add(kOut, "first\n" + line + "\nlast\n");
  EXPECT_EQ(Tail(2).first, 6u);
  EXPECT_EQ(Tail(1).first, 6 + line.size() + 1);
  EXPECT_EQ(Tail(3).first, 0u);
}

TEST_F(RankReaderTest, OneOutputsLastLinesAreItsOwn) {
  Add(kOut, "1\n2\n3\n");
  Add(kErr, "x\ny\n");
  TailSearch search(archive_.get(), kRank, {kOut}, 2);
  while (!*search.Continue(1 << 20)) {
  }
  EXPECT_EQ(search.Begin(kOut), 2u);
}

}  // namespace
}  // namespace muster::logs
