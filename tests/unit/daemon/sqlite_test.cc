#include "daemon/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/unit/hosts/temp_dir.h"

namespace muster {
namespace {

using testing::EndsWith;
using testing::StartsWith;

constexpr int kCreate = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;

class DatabaseTest : public testing::Test {
 protected:
  std::unique_ptr<Database> Open(int flags = kCreate) {
    auto database = Database::Open(path_, flags, options_);
    EXPECT_TRUE(database.ok()) << database.status();
    return database.ok() ? *std::move(database) : nullptr;
  }

  const hosts::TempDir dir_;
  const std::string path_ = dir_.path() + "/x.db";
  Database::Options options_;
};

TEST_F(DatabaseTest, AFileThatItMakesOrFindsIsForItsOwnerOnly) {
  std::ofstream(path_).close();
  std::filesystem::permissions(path_, std::filesystem::perms(0644));
  auto database = Open();
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
  database.reset();
  std::filesystem::remove(path_);
  database = Open();
  ASSERT_TRUE(database->Execute("CREATE TABLE t (a)").ok());
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
}

TEST_F(DatabaseTest, AnErrorNamesTheFileAndEndsWithTheRemedyOfItsKind) {
  options_.remedies.damaged = "mend it";
  std::ofstream(path_) << std::string(8192, 'z');
  const absl::Status damaged = Open()->Execute("CREATE TABLE t (a)");
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), StartsWith(path_ + ": could not "));
  EXPECT_THAT(std::string(damaged.message()), EndsWith("(SQLite code 26); mend it"));
}

TEST_F(DatabaseTest, AnInputOutputErrorForWantOfSpaceIsAFullDisk) {
  // The system's file layer, on a disk that has no room for the file of shared memory.
  sqlite3_vfs layer = *sqlite3_vfs_find(nullptr);
  layer.zName = "no-room";
  layer.xOpen = [](sqlite3_vfs*, const char*, sqlite3_file* file, int, int*) {
    file->pMethods = nullptr;
    return SQLITE_IOERR_SHMSIZE;
  };
  layer.xGetLastError = [](sqlite3_vfs*, int, char*) { return ENOSPC; };
  ASSERT_EQ(sqlite3_vfs_register(&layer, /*makeDflt=*/0), SQLITE_OK);
  options_.vfs = layer.zName;
  options_.remedies = {
      .full = "make room", .damaged = "", .disk_error = "look at the disk", .not_writable = ""};
  const absl::Status status = Database::Open(path_, kCreate, options_).status();
  sqlite3_vfs_unregister(&layer);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), EndsWith("; make room"));
}

TEST_F(DatabaseTest, WithoutARemedyAnErrorEndsWithWhatHappened) {
  std::ofstream(path_) << std::string(8192, 'z');
  EXPECT_THAT(std::string(Open()->Execute("CREATE TABLE t (a)").message()),
              EndsWith("(SQLite code 26)"));
}

TEST_F(DatabaseTest, AnEmptyTextIsNotNull) {
  auto database = Open();
  ASSERT_TRUE(database->Execute("CREATE TABLE t (a TEXT NOT NULL)").ok());
  auto insert = database->Prepare("INSERT INTO t VALUES (?)");
  EXPECT_TRUE(insert->Start().Bind(std::string_view()).Run().ok());
  EXPECT_EQ(database->changes(), 1);
  EXPECT_EQ(database->QueryText("SELECT a || '.' FROM t").value(), ".");
}

TEST_F(DatabaseTest, AQueryWithoutARowIsAnError) {
  EXPECT_EQ(Open()->QueryInt("SELECT 1 WHERE 0").status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace muster
