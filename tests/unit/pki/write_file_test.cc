// Small files are written whole.
#include "daemon/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "daemon/read_file.h"

namespace muster {
namespace {

TEST(WriteFileWhole, ReplacesAFileAndLeavesNothingBeside) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "write_file_whole";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const std::string path = directory / "key.pem";
  ASSERT_TRUE(WriteFileWhole(path, "old", 0644).ok());
  ASSERT_TRUE(WriteFileWhole(path, "new", 0600).ok());
  EXPECT_EQ(ReadFile(path, 100).value_or(""), "new");
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

TEST(WriteFileWhole, NamesThePathThatItCannotWrite) {
  const absl::Status status = WriteFileWhole("/nonexistent/key.pem", "new", 0600);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/nonexistent/key.pem"));
}

}  // namespace
}  // namespace muster
