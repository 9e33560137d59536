#include "broker/notify/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace muster::notify {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) { return testing::TempDir() + "/" + name; }

TEST(Cursor, IsReadAsItWasWritten) {
  const std::string path = PathOf("written.cursor");
  const Cursor cursor{.after = 18446744073709551615U,
                      .time = absl::FromUnixMicros(1'767'323'045'678'901)};
  ASSERT_TRUE(WriteCursor(path, cursor).ok());
  const auto read = ReadCursor(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, cursor);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(Cursor, IsNothingWithoutAFile) {
  const auto read = ReadCursor(PathOf("missing.cursor"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, std::nullopt);
}

TEST(Cursor, TakesWhatAnOperatorWrites) {
  const auto read = ParseCursor("after: 0");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, (Cursor{.after = 0}));
}

TEST(Cursor, RefusesWhatIsNoCursorAndNamesTheFile) {
  for (const char* const text : {"", "after: -1\n", "after: x\n", "before: 3\n", "time: today\n",
                                 "time: 2026-01-31T12:00:00Z\n", "after: 1 2\n"}) {
    const std::string path = PathOf("bad.cursor");
    std::ofstream(path) << text;
    const auto read = ReadCursor(path);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("remove the file"));
  }
}

}  // namespace
}  // namespace muster::notify
