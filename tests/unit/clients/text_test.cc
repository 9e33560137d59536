#include "clients/cli/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "contract/characters.h"

namespace muster::cli {
namespace {

TEST(Harmless, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(Harmless("plain text 123 ~"), "plain text 123 ~");
  EXPECT_EQ(Harmless("Grüße 日本語 🚀"), "Grüße 日本語 🚀");
  EXPECT_EQ(Harmless(""), "");
}

TEST(Harmless, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Harmless("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Harmless("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(Harmless(std::string("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(Harmless("\xc2\x9b"
                     "31m"),
            "\\u009b31m");  // CSI as one character
  EXPECT_EQ(Harmless("\x9b"
                     "31m"),
            "\\x9b31m");  // CSI as one byte
  EXPECT_EQ(Harmless("a\xe2\x80\xae"
                     "b"),
            "a\\u202eb");  // reverses what follows
  EXPECT_EQ(Harmless("\xff\xfe"), "\\xff\\xfe");
}

TEST(Harmless, KeepsLayoutOnlyInLogs) {
  EXPECT_EQ(Harmless("a\nb\tc\rd"), "a\\nb\\tc\\x0dd");
  EXPECT_EQ(Harmless("a\nb\tc\rd\b", Keep::kLayout), "a\nb\tc\rd\\x08");
}

bool IsHarmless(const std::string& text) {
  if (!contract::IsUtf8(text)) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f) return false;
    if (byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) return false;
  }
  return true;
}

std::string RandomBytes(std::mt19937* random) {
  static constexpr std::string_view kPieces[] = {
      "\x1b[", "\x1b]0;",      "\x07",     "\xc2\x9b", "\x9b", "é",   "日",
      "🚀",     "\xe2\x80\xae", "\xf0\x9f", "\xe2",     "\n",   "abc", "\x80"};
  std::string bytes;
  for (unsigned i = 0; i < (*random)() % 20; ++i) {
    if ((*random)() % 2 == 0)
      bytes += kPieces[(*random)() % std::size(kPieces)];
    else
      bytes += static_cast<char>((*random)());
  }
  return bytes;
}

TEST(Harmless, MakesAnyBytesHarmless) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = RandomBytes(&random);
    EXPECT_TRUE(IsHarmless(Harmless(bytes)));
    EXPECT_TRUE(IsHarmless(Harmless(bytes, Keep::kLayout)));
  }
}

TEST(HarmlessStream, GivesTheSameHoweverTheBytesAreCut) {
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = RandomBytes(&random);
    HarmlessStream stream;
    std::string shown;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 4;
      const std::string piece = stream.Next(std::string_view(bytes).substr(at, size));
      EXPECT_TRUE(IsHarmless(piece));
      shown += piece;
      at += size;
    }
    shown += stream.Finish();
    EXPECT_EQ(shown, Harmless(bytes, Keep::kLayout));
  }
}

TEST(HarmlessStream, HoldsBackNoMoreThanACutCharacter) {
  HarmlessStream stream;
  EXPECT_EQ(stream.Next("ab\xe6"), "ab");
  EXPECT_EQ(stream.Next("\x97\xa5"
                        "c"),
            "日c");
  EXPECT_EQ(stream.Next("\xe6"), "");
  EXPECT_EQ(stream.Finish(), "\\xe6");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Width, CountsColumns) {
  EXPECT_EQ(Width("abc"), 3u);
  EXPECT_EQ(Width("é"), 1u);
  EXPECT_EQ(Width("日本"), 4u);
  EXPECT_EQ(Width("e\xcc\x81"), 1u);  // a combining accent
  EXPECT_EQ(Width("🚀"), 2u);
}

TEST(CutToWords, KeepsWholeWordsAndSaysThatThereIsMore) {
  EXPECT_EQ(CutToWords("ask https://host:6443/x", 23), "ask https://host:6443/x");
  EXPECT_EQ(CutToWords("ask https://host:6443/x", 22), "ask…");
  EXPECT_EQ(CutToWords("ask https://host:6443/x now", 24), "ask https://host:6443/x…");
  EXPECT_EQ(CutToWords("ask https://host:6443/x now", 23), "ask…");
  EXPECT_EQ(CutToWords("日本 日本語", 8), "日本…");
  EXPECT_EQ(Width(CutToWords("日本 日本語 日本語", 14)), 12u);
}

TEST(CutToWords, TheFirstWordIsThereWhateverItsWidthUpToABound) {
  EXPECT_EQ(CutToWords("https://host:6443/x is away", 8), "https://host:6443/x…");
  EXPECT_EQ(CutToWords("https://host:6443/x", 8), "https://host:6443/x");
  EXPECT_EQ(CutToWords(std::string(1000, 'x'), 8), std::string(kMaxWordWidth, 'x') + "…");
}

TEST(Ago, UsesOneUnit) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000'000);
  const auto ago = [&](int64_t seconds) {
    google::protobuf::Timestamp timestamp;
    timestamp.set_seconds(1'000'000'000 - seconds);
    return Ago(timestamp, now);
  };
  EXPECT_EQ(ago(0), "now");
  EXPECT_EQ(ago(59), "59s ago");
  EXPECT_EQ(ago(190), "3m ago");
  EXPECT_EQ(ago(3 * 3600 + 5), "3h ago");
  EXPECT_EQ(ago(50 * 3600), "2d ago");
  EXPECT_EQ(ago(-90), "in 1m");  // the broker's clock is ahead
  EXPECT_EQ(Ago(google::protobuf::Timestamp(), now), "-");
}

TEST(Rfc3339, IsInUtc) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(1'772'366'400);
  EXPECT_EQ(Rfc3339(timestamp), "2026-03-01T12:00:00Z");
  EXPECT_EQ(Rfc3339(google::protobuf::Timestamp()), "-");
}

}  // namespace
}  // namespace muster::cli
