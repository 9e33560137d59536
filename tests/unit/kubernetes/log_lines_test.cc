#include "agents/kubernetes/logs/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Returns "2026-11-21T14:53:20.000000007Z " for 7.
std::string Stamp(int nanos, int second = 20) {
  return fmt::format("2026-11-21T14:53:{:02}.{:09}Z ", second, nanos);
}

struct Read {
  std::string news;
  LogPosition position;
  bool has_found = false;
  bool has_gap = false;
  bool has_news = false;
  std::string words;
};

// Reads the answer in pieces of that size.
Read ReadAll(const std::string& answer, const LogPosition& known = {}, bool is_split = false,
             size_t piece = 1 << 20, bool is_cut = false) {
  LogLines lines(known, is_split);
  Read read;
  for (size_t begin = 0; begin < answer.size(); begin += piece)
    lines.Take(std::string_view(answer).substr(begin, piece), &read.news);
  if (!is_cut) lines.End(&read.news);
  read.position = lines.position();
  read.has_found = lines.has_found();
  read.has_gap = lines.has_gap();
  read.has_news = lines.has_news();
  read.words = lines.words();
  return read;
}

TEST(ReadStampTest, ATimeIsReadWithAnyOffsetAndOnlyIfItIsWhole) {
  int64_t time = 0;
  bool may_become = false;
  EXPECT_EQ(ReadStamp("1970-01-01T00:00:01.000000002Z x", &time, &may_become), 31u);
  EXPECT_EQ(time, 1'000'000'002);
  EXPECT_EQ(ReadStamp("1970-01-01T01:00:01.000000002+01:00 ", &time, &may_become), 36u);
  EXPECT_EQ(time, 1'000'000'002);
  const std::string whole = "1970-01-01T00:00:01.000000002-01:30 ";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(ReadStamp(whole.substr(0, size), &time, &may_become), 0u);
    EXPECT_TRUE(may_become) << size;
  }
  for (const char* text : {"1970-01-01 00:00", "1970-01-01T00:00:01.0000Z ", "failed",
                           "1970-01-01T00:00:01.000000002Zx", "1970-01-01T00:00:01.000000002x"}) {
    EXPECT_EQ(ReadStamp(text, &time, &may_become), 0u) << text;
    EXPECT_FALSE(may_become) << text;
  }
}

TEST(LogLinesTest, TimesAreLeftOutAndAllOtherBytesAreKeptWhateverTheyAreAndHoweverTheyCome) {
  const std::string binary("\xff\xfe\0\r\x80", 5);
  const std::string answer = Stamp(1) + "one\n" + Stamp(1) + "\n" + Stamp(2) + binary + "\n" +
                             Stamp(3) + Stamp(9) + "said by the program\n" + Stamp(4) + "no end";
  const std::string text = "one\n\n" + binary + "\n" + Stamp(9) + "said by the program\nno end";
  for (size_t piece = 1; piece < answer.size(); ++piece) {
    const Read read = ReadAll(answer, {}, false, piece);
    ASSERT_EQ(read.news, text) << "in pieces of " << piece;
    EXPECT_EQ(read.position.count, 1u);
    EXPECT_EQ(read.position.bytes, 6u);
    EXPECT_EQ(read.words, "");
  }
}

TEST(LogLinesTest, AnAnswerThatWasCutAnywhereIsGoneOnWithWithoutLossOrRepetition) {
  // Equal times, lines out of order by a little, a long line, none at all.
  std::string answer;
  std::string text;
  std::mt19937 random(7);
  for (int line = 0; line < 60; ++line) {
    const std::string words = std::string(random() % 40, 'x') + fmt::format("{}", line);
    answer += Stamp(line / 3 * 10 + (line % 5 == 0 ? -3 : 0) + 5) + words + "\n";
    text += words + "\n";
  }
  answer += Stamp(999) + "no newline";
  text += "no newline";
  for (const bool is_split : {false, true}) {
    for (size_t cut = 0; cut <= answer.size(); ++cut) {
      const Read first = ReadAll(answer.substr(0, cut), {}, is_split, 7, /*is_cut=*/true);
      const Read second = ReadAll(answer, first.position, is_split, 11);
      ASSERT_EQ(first.news + second.news, text) << "cut at " << cut;
      ASSERT_TRUE(second.has_found);
    }
  }
}

TEST(LogLinesTest, AnAnswerThatBringsNothingNewSaysSo) {
  const std::string answer = Stamp(1) + "one\n" + Stamp(2) + "two\n";
  const Read first = ReadAll(answer);
  const Read second = ReadAll(answer, first.position);
  EXPECT_EQ(second.news, "");
  EXPECT_FALSE(second.has_news);
  EXPECT_TRUE(second.has_found);
  EXPECT_EQ(second.position, first.position);
  const Read cut = ReadAll(Stamp(1) + "one\n", first.position);
  EXPECT_FALSE(cut.has_found) << "what was known is not in it";
  EXPECT_EQ(cut.position, first.position);
}

TEST(LogLinesTest, WhatIsLaterThanAllThatIsKnownAndComesWithoutItIsBehindAGap) {
  const Read first = ReadAll(Stamp(1) + "one\n" + Stamp(2) + "two\n");
  const Read second = ReadAll(Stamp(5) + "five\n" + Stamp(6) + "six\n", first.position);
  EXPECT_TRUE(second.has_gap);
  EXPECT_EQ(second.news, "five\nsix\n");
}

TEST(LogLinesTest, TheEndOfAnOlderLineAtTheBeginningIsNotNew) {
  const Read first = ReadAll(Stamp(1, 21) + "one\n" + Stamp(2, 21) + "two\n");
  const std::string answer =
      "rest of an older line\n" + Stamp(1, 21) + "one\n" + Stamp(2, 21) + "two\nthree";
  for (const bool is_split : {false, true}) {
    const Read second = ReadAll(Stamp(0, 20) + "x\n", first.position, is_split);
    EXPECT_EQ(second.news, "");
    const Read third = ReadAll("rest of an older line\n" + Stamp(1, 21) + "one\n" + Stamp(2, 21) +
                                   "two\n" + Stamp(3, 21) + "three\n",
                               first.position, is_split);
    EXPECT_EQ(third.news, "three\n");
    EXPECT_EQ(third.words, "");
    EXPECT_TRUE(third.has_found);
  }
}

TEST(LogLinesTest, WhatTheNodeSaysInsteadOfALogIsNoOutput) {
  const std::string words = "failed to create fsnotify watcher: too many open files";
  for (const bool is_split : {false, true}) {
    for (const size_t piece : {1, 5, 1000}) {
      const Read alone = ReadAll(words, {}, is_split, piece);
      EXPECT_EQ(alone.news, "");
      EXPECT_EQ(alone.words, words);
      const Read after = ReadAll(Stamp(1) + "failed to find it\n" + words, {}, is_split, piece);
      EXPECT_EQ(after.news, "failed to find it\n");
      EXPECT_EQ(after.words, words);
    }
  }
}

// A kubelet ends a log with these words, by the sources of Kubernetes 1.36, containerd and CRI-O.
constexpr const char* kEndsOfLogs[] = {
    "failed to try resolving symlinks in path \"/var/log/a\": lstat: no such file or directory",
    "failed to open log file \"/var/log/pods/a\": no such file or directory",
    "failed to read log file \"/var/log/pods/a\": input/output error",
    "failed to reset seek in log file \"/var/log/pods/a\": invalid argument",
    "failed to create fsnotify watcher: too many open files",
    "failed to watch directory \"/var/log/pods\": no space left on device",
    "failed to get parse function: unsupported log format: \"x\"",
    "unable to retrieve container logs for containerd://0a1b",
    "container status is nil",
    "container \"a_b_0\" not found",
    "context cancelled",
    "rpc error: code = NotFound desc = an error occurred when try to find container \"0a\": gone",
    "rpc error: code = NotFound desc = could not find container \"0a\": ID does not exist",
    "fsnotify: queue or buffer overflow",
};

TEST(LogLinesTest, NoSentenceOfANodeIsOutputAndAskedAgainTheLogGoesOnWhereItWas) {
  for (const std::string words : kEndsOfLogs) {
    for (const bool is_split : {false, true}) {
      for (const size_t piece : {1, 7, 1000}) {
        const Read read = ReadAll(Stamp(1) + "one\n" + words, {}, is_split, piece);
        EXPECT_EQ(read.news, "one\n") << words;
        EXPECT_EQ(read.words, words);
        const Read more = ReadAll(Stamp(1) + "one\n" + Stamp(2) + "two", read.position, is_split);
        EXPECT_EQ(more.news, "two") << words;
        EXPECT_EQ(more.words, "");
      }
    }
  }
}

TEST(LogLinesTest, AProgramThatPrintsANodesSentenceKeepsIt) {
  for (const std::string words : kEndsOfLogs) {
    for (const bool is_split : {false, true}) {
      const Read ended = ReadAll(Stamp(1) + words + "\n" + Stamp(2) + words, {}, is_split, 5);
      EXPECT_EQ(ended.news, words + "\n" + words);
      EXPECT_EQ(ended.words, "");
    }
    // A line of one stream may have lost its time, but not its end; a node's words have none.
    for (const size_t piece : {1, 7, 1000}) {
      const Read line = ReadAll(Stamp(1) + "one\n" + words + "\n" + Stamp(2) + "two\n", {},
                                /*is_split=*/true, piece);
      EXPECT_EQ(line.news, "one\n" + words + "\ntwo\n") << piece;
      EXPECT_EQ(line.words, "");
    }
    const std::string long_line = words + std::string(20 << 10, 'x') + "\n";
    EXPECT_EQ(ReadAll(Stamp(1) + "one\n" + long_line, {}, true, 100).news, "one\n" + long_line);
  }
}

TEST(LogLinesTest, OfOneStreamALineMayHaveNoTimeOrOneAfterSixteenKibibytes) {
  const std::string half(16 << 10, 'x');
  const std::string answer =
      "head\n" + Stamp(1) + "one\n" + "no time\n" + Stamp(2) + half + Stamp(3) + half + "rest\n";
  const std::string text = "head\none\nno time\n" + half + half + "rest\n";
  for (const size_t piece : {1, 4096, 1 << 20}) {
    EXPECT_EQ(ReadAll(answer, {}, true, piece).news, text) << piece;
    for (const size_t cut : {size_t{3}, size_t{5}, size_t{40}, answer.size() - 3}) {
      const Read first = ReadAll(answer.substr(0, cut), {}, true, piece, true);
      const Read second = ReadAll(answer, first.position, true, piece);
      EXPECT_EQ(first.news + second.news, text) << cut;
    }
  }
}

TEST(LogLinesTest, ALineOfAMebibyteIsOneWithoutBeingHeldInMemory) {
  const std::string text(1 << 20, 'y');
  LogLines lines({}, false);
  std::string news;
  lines.Take(Stamp(1) + text.substr(0, 1000), &news);
  EXPECT_EQ(news.size(), 1000u);
  lines.Take(text.substr(1000), &news);
  EXPECT_EQ(news, text);
  EXPECT_EQ(lines.position().bytes, text.size());
}

}  // namespace
}  // namespace muster::kubernetes
