#include "contract/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

namespace muster::contract {
namespace {

using ::testing::HasSubstr;

TEST(ParseDuration, ReadsEveryDocumentedForm) {
  const std::map<std::string, absl::Duration> forms = {
      {"0", absl::ZeroDuration()},
      {"90", absl::Seconds(90)},
      {"90s", absl::Seconds(90)},
      {"15m", absl::Minutes(15)},
      {"4h", absl::Hours(4)},
      {"3.8h", absl::Seconds(13680)},
      {"0.5s", absl::Milliseconds(500)},
      {"2d", absl::Hours(48)},
      {"1h30m", absl::Minutes(90)},
      {"1d2h3m4s", absl::Seconds(93784)},
      {"05:30", absl::Seconds(330)},
      {"90:00", absl::Minutes(90)},
      {"01:02:03", absl::Seconds(3723)},
      {"100:00:00", absl::Hours(100)},
      {"1-00:00:00", absl::Hours(24)},
      {"1-12", absl::Hours(36)},
      {"1-12:30", absl::Minutes(36 * 60 + 30)},
      {"0-00:01", absl::Minutes(1)},
      {"36500d", absl::Hours(36500 * 24)},
  };
  for (const auto& [text, expected] : forms) {
    const auto parsed = ParseDuration(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(ParseDuration, RefusesEverythingElse) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "4 h",
                           "h",
                           "4x",
                           "4hh",
                           "30m1h",
                           "1h1h",
                           "1h30",
                           ".5h",
                           "5.h",
                           "1e3",
                           "+4h",
                           "36501d",
                           "876001h",
                           "1:60",
                           "1:2:60",
                           "1-24",
                           "1-1:60",
                           "1-",
                           ":30",
                           "1:2:3:4",
                           "1-2-3",
                           "5:",
                           "99999999999999999999s",
                           "9999999999:00",
                           "4H",
                           "1:30m",
                           "infinite"}) {
    const auto parsed = ParseDuration(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ParseDuration, SaysWhatWouldWork) {
  const absl::Status status = ParseDuration("soon").status();
  EXPECT_NE(status.message().find("\"soon\""), std::string::npos) << status;
  EXPECT_NE(status.message().find("3.8h"), std::string::npos) << status;
}

TEST(FormatDuration, ShowsAtMostTwoUnitsRoundedDown) {
  const std::map<int64_t, std::string> forms = {
      {0, "0s"},     {45, "45s"},      {60, "1m"},         {90, "1m30s"},
      {3600, "1h"},  {3605, "1h"},     {5400, "1h30m"},    {86399, "23h59m"},
      {86400, "1d"}, {273600, "3d4h"}, {86400 + 59, "1d"},
  };
  for (const auto& [seconds, expected] : forms) {
    EXPECT_EQ(contract::FormatDuration(absl::Seconds(seconds)), expected);
  }
  EXPECT_EQ(contract::FormatDuration(absl::Milliseconds(1999)), "1s");
  EXPECT_EQ(contract::FormatDuration(-absl::Seconds(90)), "-1m30s");
  EXPECT_EQ(contract::FormatDuration(absl::InfiniteDuration()), "forever");
}

RC_GTEST_PROP(FormatDuration, GivesATextThatParsesToNoMore, ()) {
  const auto seconds = *rc::gen::inRange<int64_t>(0, 365 * 86400);
  const auto parsed = ParseDuration(contract::FormatDuration(absl::Seconds(seconds)));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed <= absl::Seconds(seconds));
  RC_ASSERT(*parsed * 25 >= absl::Seconds(seconds) * 24);
}

TEST(ParseBytes, ReadsEveryDocumentedForm) {
  const std::map<std::string, uint64_t> forms = {
      {"0", 0},
      {"512", 512},
      {"512B", 512},
      {"64K", 64'000},
      {"64k", 64'000},
      {"1.5G", 1'500'000'000},
      {"16Gi", uint64_t{16} << 30},
      {"16gi", uint64_t{16} << 30},
      {"32GB", 32'000'000'000},
      {"32GiB", uint64_t{32} << 30},
      {"1T", 1'000'000'000'000},
      {"1024Ti", uint64_t{1} << 50},
      {"0.1Ki", 103},  // a part of a byte counts as one
  };
  for (const auto& [text, expected] : forms) {
    const auto parsed = ParseBytes(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text : {"", "G", "-1", "1 G", "1P", "1.G", ".5G", "1e9", "1GG", "1iG", "1025Ti",
                           "1Bi", "99999999999999999999", "1GBB", "Gi", "16 Gi"}) {
    EXPECT_EQ(ParseBytes(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(FormatBytes, UsesPowersOf1024AndOneDecimal) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(512), "512");
  EXPECT_EQ(FormatBytes(1023), "1023");
  EXPECT_EQ(FormatBytes(1024), "1Ki");
  EXPECT_EQ(FormatBytes(uint64_t{16} << 30), "16Gi");
  EXPECT_EQ(FormatBytes((uint64_t{3} << 30) / 2), "1.5Gi");
  EXPECT_EQ(FormatBytes((uint64_t{1} << 20) - 1), "1023.9Ki");
  EXPECT_EQ(FormatBytes(uint64_t{1} << 50), "1024Ti");
}

RC_GTEST_PROP(FormatBytes, GivesATextThatParsesToAboutTheSame, ()) {
  const auto bytes = *rc::gen::inRange<uint64_t>(0, uint64_t{1} << 50);
  const auto parsed = ParseBytes(FormatBytes(bytes));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed <= bytes + 1);
  RC_ASSERT(*parsed / 9 * 10 + 1024 >= bytes);
}

TEST(ParseCpus, ReadsThousandths) {
  EXPECT_EQ(*ParseCpus("4"), 4000u);
  EXPECT_EQ(*ParseCpus("0.5"), 500u);
  EXPECT_EQ(*ParseCpus("1.25"), 1250u);
  EXPECT_EQ(*ParseCpus("0.001"), 1u);
  EXPECT_EQ(*ParseCpus("10000"), 10'000'000u);
  for (const char* text : {"", "0", "0.0", "-1", "1.0001", "10001", "four", "1 ", "1c"}) {
    EXPECT_EQ(ParseCpus(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

RC_GTEST_PROP(FormatCpus, GivesATextThatParsesToTheSame, ()) {
  const auto millis = *rc::gen::inRange<uint64_t>(1, 10'000'000);
  RC_ASSERT(*ParseCpus(FormatCpus(millis)) == millis);
}

TEST(ParseGpus, ReadsCountTypeOrBoth) {
  const auto check = [](const char* text, const char* type, uint64_t millis) {
    const auto parsed = ParseGpus(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(parsed->type(), type) << text;
    EXPECT_EQ(parsed->count_millis(), millis) << text;
  };
  check("8", "", 8000);
  check("H100", "H100", 1000);
  check("H100:8", "H100", 8000);
  check("H100:0.5", "H100", 500);
  check("0.5", "", 500);
  check("3090:2", "3090", 2000);
  check("0", "", 0);
  check("NVIDIA-H100-80GB_HBM3:1", "NVIDIA-H100-80GB_HBM3", 1000);
}

TEST(ParseGpus, RefusesEverythingElse) {
  for (const char* text : {"", ":", ":8", "H100:", "H100:0", "0:0", "00", "H100:x", "H 100:1",
                           "H100:1:2", "H100:1001", "H100:-1", "a,b:1", "h100;ls"}) {
    EXPECT_EQ(ParseGpus(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ParseGpus, SaysOfMoreThanOneGpuAndAPartWhatWorksAsItIsWritten) {
  for (const char* text : {"H100:1.5", "2.001"}) {
    EXPECT_THAT(std::string(ParseGpus(text).status().message()),
                HasSubstr(std::string("\"") + text +
                          "\" is neither a share of one GPU nor whole GPUs; use 0.001 to 0.999 or "
                          "a whole number"));
  }
}

TEST(ParseGpus, SaysHowManyDecimalsAPartMayHave) {
  EXPECT_TRUE(ParseGpus("H100:0.333").ok());
  EXPECT_THAT(std::string(ParseGpus("H100:0.3333").status().message()),
              testing::HasSubstr("at most three decimals"));
}

TEST(ParseGpus, SaysHowANumberTimesATypeIsWritten) {
  EXPECT_THAT(std::string(ParseGpus("2xH100").status().message()),
              HasSubstr("\"2xH100\" is no type of GPU; use H100:2"));
  EXPECT_TRUE(ParseGpus("a100x2").ok());
}

TEST(ParseGpus, TakesNoOddNumberForAType) {
  EXPECT_THAT(std::string(ParseGpus("Four").status().message()),
              HasSubstr("\"Four\" is no number; write 4"));
  EXPECT_THAT(std::string(ParseGpus("-1").status().message()),
              HasSubstr("\"-1\" is no number of GPUs; use 0 to 1000"));
  EXPECT_TRUE(ParseGpus("fourth").ok());
}

TEST(FormatGpus, GivesATextThatParsesToTheSame) {
  for (const char* text : {"8", "H100:8", "H100:0.5", "3090:1", "0"}) {
    EXPECT_EQ(FormatGpus(*ParseGpus(text)), text);
  }
}

}  // namespace
}  // namespace muster::contract
