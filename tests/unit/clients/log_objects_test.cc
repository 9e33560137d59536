#include "clients/cli/log_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr v1::LogStream kOut = v1::LOG_STREAM_STDOUT;
constexpr v1::LogStream kErr = v1::LOG_STREAM_STDERR;

std::vector<Json> Objects(const std::string& text) {
  std::vector<Json> objects;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) objects.push_back(Json::parse(line));
  return objects;
}

std::string DataOf(const Json& object) {
  if (object.contains("data")) return object["data"];
  std::string data;
  if (object.contains("data_base64"))
    absl::Base64Unescape(object["data_base64"].get<std::string>(), &data);
  return data;
}

TEST(LogObjectsTest, AreOneForEachLineWhateverThePiecesAre) {
  LogObjects objects(3);
  EXPECT_EQ(objects.Next(0, kErr, 10, "epo"), "");
  EXPECT_EQ(
      objects.Next(0, kErr, 13, "ch \"1\"\n\nepoch"),
      "{\"run\":3,\"rank\":0,\"stream\":\"LOG_STREAM_STDERR\",\"offset\":\"10\",\"data\":\"epoch "
      "\\\"1\\\"\\n\"}\n"
      "{\"run\":3,\"rank\":0,\"stream\":\"LOG_STREAM_STDERR\",\"offset\":\"20\",\"data\":\"\\n\"}"
      "\n");
  EXPECT_EQ(
      objects.End(0, kErr, v1::LOG_END_COMPLETE),
      "{\"run\":3,\"rank\":0,\"stream\":\"LOG_STREAM_STDERR\",\"offset\":\"21\",\"data\":\"epoch\"}"
      "\n"
      "{\"run\":3,\"rank\":0,\"stream\":\"LOG_STREAM_STDERR\",\"offset\":\"26\",\"end\":\"LOG_END_"
      "COMPLETE\"}\n");
}

TEST(LogObjectsTest, KeepStreamsAndRanksApart) {
  LogObjects objects(3);
  EXPECT_EQ(objects.Next(0, kOut, 0, "a"), "");
  EXPECT_EQ(objects.Next(0, kErr, 0, "b"), "");
  EXPECT_EQ(objects.Next(1, kOut, 0, "c"), "");
  const auto line = Objects(objects.Next(0, kOut, 1, "\n"));
  ASSERT_EQ(line.size(), 1u);
  EXPECT_EQ(line[0]["data"], "a\n");
  const auto rest = Objects(objects.Flush());
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0]["stream"], "LOG_STREAM_STDERR");
  EXPECT_EQ(rest[1]["rank"], 1);
  EXPECT_EQ(objects.Flush(), "");
}

TEST(LogObjectsTest, HaveBytesThatAreNoTextInBase64) {
  LogObjects objects(3);
  const auto line = Objects(objects.Next(0, kOut, 0, "\xff\n"));
  ASSERT_EQ(line.size(), 1u);
  EXPECT_FALSE(line[0].contains("data"));
  EXPECT_EQ(line[0]["data_base64"], "/wo=");
}

TEST(LogObjectsTest, BeginAnewBehindBytesThatAreNotKept) {
  LogObjects objects(3);
  objects.Next(0, kOut, 0, "cut");
  const auto line = Objects(objects.Next(0, kOut, 100, "on\n"));
  ASSERT_EQ(line.size(), 2u);
  EXPECT_EQ(line[0]["data"], "cut");
  EXPECT_EQ(line[1]["offset"], "100");
}

TEST(LogObjectsTest, CutLongLinesBetweenCharacters) {
  std::string text(kMaxLogObjectBytes - 1, 'x');
  text += "\xc3\xa4" + std::string(kMaxLogObjectBytes * 2, 'y') + "\n";
  LogObjects objects(3);
  std::string all;
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += 1000) {
    for (const Json& object : Objects(objects.Next(0, kOut, at, text.substr(at, 1000)))) {
      EXPECT_EQ(object["offset"], std::to_string(all.size()));
      EXPECT_TRUE(object.contains("data"));
      all += DataOf(object);
      ++count;
    }
  }
  EXPECT_EQ(all, text);
  EXPECT_EQ(count, 4u);
}

TEST(LogObjectsTest, TogetherAreTheLogThoughItIsNoText) {
  const std::string text(kMaxLogObjectBytes * 2 + 5, '\x80');
  LogObjects objects(3);
  std::string all;
  std::string lines = objects.Next(0, kOut, 0, text);
  lines += objects.End(0, kOut, v1::LOG_END_MORE_LATER);
  for (const Json& object : Objects(lines)) all += DataOf(object);
  EXPECT_EQ(all, text);
}

}  // namespace
}  // namespace muster::cli
