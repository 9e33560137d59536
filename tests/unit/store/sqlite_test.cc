// What only a database on a disk can get wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "contract/errors.h"
#include "contract/filter.h"
#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/version_1.h"

namespace muster::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SqliteTest : public ::testing::Test {
 protected:
  SqliteTest() { options_.directory = directory_.path(); }

  absl::StatusOr<std::unique_ptr<SqliteStore>> Open() { return SqliteStore::Open(options_); }

  std::unique_ptr<SqliteStore> MustOpen() {
    auto store = Open();
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // A closed database with so many jobs.
  void Fill(uint64_t jobs) {
    auto store = MustOpen();
    std::vector<core::Change> changes;
    for (uint64_t id = 1; id <= jobs; ++id) changes.push_back(Insert(id));
    EXPECT_OK(store->Commit(changes));
  }

  std::string path(const std::string& name = "broker.db") const {
    return directory_.path() + "/" + name;
  }

  void Execute(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }

  void Overwrite(std::streamoff offset, size_t bytes) {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file << std::string(bytes, '\xa5');
  }

  TemporaryDirectory directory_;
  SqliteOptions options_;
};

std::string ReasonOf(const absl::Status& status) {
  auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

TEST_F(SqliteTest, EachDatabaseHasItsOwnInstance) {
  std::vector<std::string> instances;
  for (int i = 0; i < 4; ++i) {
    TemporaryDirectory directory;
    options_.directory = directory.path();
    instances.push_back(MustOpen()->Restore(kStart)->instance);
  }
  std::sort(instances.begin(), instances.end());
  EXPECT_NE(instances.front(), instances.back());
}

TEST_F(SqliteTest, ASecondBrokerIsKeptOutAndToldWhoHasTheDirectory) {
  auto first = MustOpen();
  auto second = Open();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(second.status()), "STATE_DIRECTORY_IN_USE");
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(getpid())));
  first.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(SqliteTest, AMissingDirectoryIsNamed) {
  options_.directory = path("nowhere");
  const absl::Status status = Open().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path("nowhere")));
}

TEST_F(SqliteTest, AFileOfANewerReleaseIsRefused) {
  Fill(1);
  Execute("PRAGMA user_version = 7");
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "DATABASE_TOO_NEW");
  EXPECT_THAT(std::string(status.message()), HasSubstr("schema 7"));
}

TEST_F(SqliteTest, AFileOfVersion1KeepsEverythingAndTakesHoldsAndRetries) {
  std::ofstream(path()).close();
  Execute(std::string(kVersion1Dump));
  auto store = MustOpen();
  ASSERT_NE(store, nullptr);
  auto restored = store->Restore(kStart);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->instance, "k7m2");
  EXPECT_EQ(restored->broker_epoch, 4u);
  ASSERT_THAT(restored->jobs, SizeIs(3));
  for (const core::LiveJob& job : restored->jobs) {
    EXPECT_EQ(job.hold, core::HoldState::kNone);
    EXPECT_EQ(job.retry_time, std::nullopt);
  }
  EXPECT_EQ(restored->jobs[0].priority, 5);
  EXPECT_TRUE(restored->jobs[2].cancel_requested);
  EXPECT_THAT(restored->runs, SizeIs(2));
  EXPECT_THAT(restored->requests, SizeIs(1));
  auto waiting = store->GetJob(1);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_EQ(waiting->name(), "waits");
  EXPECT_EQ(waiting->labels().at("team"), "vision");
  EXPECT_FALSE(waiting->held());
  EXPECT_EQ(store->GetJob(3)->state(), v1::JOB_STATE_SUCCEEDED);

  core::Change held = Update(1, v1::JOB_STATE_QUEUED, 2);
  std::get<core::UpdateJob>(held).hold = core::HoldState::kHeld;
  std::get<core::UpdateJob>(held).retry_time = kStart;
  EXPECT_OK(store->Commit({held, Step(1, 7, 2), Insert(5), Step(5, 8, 1)}));
  store.reset();
  store = MustOpen();
  EXPECT_TRUE(store->GetJob(1)->held());
  EXPECT_TRUE(store->GetJob(1)->has_retry_time());
  EXPECT_EQ(store->GetJob(1)->labels().at("team"), "vision");
  EXPECT_FALSE(store->GetJob(5)->held());
}

TEST_F(SqliteTest, AFileOfAnotherProgramIsRefused) {
  Execute("CREATE TABLE theirs (a); PRAGMA user_version = 1");
  EXPECT_EQ(ReasonOf(Open().status()), "NOT_A_BROKER_DATABASE");
}

TEST_F(SqliteTest, AFileOfAnotherProgramWithoutAVersionIsRefused) {
  Execute("CREATE TABLE theirs (a)");
  EXPECT_EQ(ReasonOf(Open().status()), "NOT_A_BROKER_DATABASE");
}

TEST_F(SqliteTest, AnEmptyFileIsDamageAndStaysAsItIs) {
  std::ofstream(path()).close();
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
  EXPECT_EQ(fs::file_size(path()), 0u);
}

TEST_F(SqliteTest, AMissingFileWithAWriteAheadLogIsDamage) {
  std::ofstream(path("broker.db-wal")) << "x";
  EXPECT_EQ(ReasonOf(Open().status()), "DATABASE_DAMAGED");
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(SqliteTest, AnUnfinishedFirstStartIsBegunAgain) {
  std::ofstream(path("broker.db.new")) << "half";
  EXPECT_TRUE(Open().ok());
  EXPECT_FALSE(fs::exists(path("broker.db.new")));
}

TEST_F(SqliteTest, ADamagedHeaderIsNamedWithTheRemedy) {
  Fill(1);
  Overwrite(0, 100);
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("backup"));
}

TEST_F(SqliteTest, ADamagedPageIsFoundWhereverItLies) {
  Fill(5000);
  const auto pages = fs::file_size(path()) / 4096;
  ASSERT_GT(pages, 50u);
  // Every page but the first, from a copy each time: it is found by the open, the restore or the
  // list, or it holds nothing that they read. Nothing crashes, and nothing is taken for an empty
  // store.
  fs::copy_file(path(), path("good"));
  int found = 0;
  for (uint64_t page = 1; page < pages; page += 7) {
    fs::copy_file(path("good"), path(), fs::copy_options::overwrite_existing);
    Overwrite(static_cast<std::streamoff>(page * 4096), 4096);
    auto store = Open();
    absl::Status status = store.status();
    if (status.ok()) {
      auto restored = (*store)->Restore(kStart);
      status = restored.status();
      if (status.ok()) {
        EXPECT_THAT(restored->jobs, SizeIs(5000));
      }
    }
    if (status.ok()) status = (*store)->ListJobs({}, 1000, "", true).status();
    if (status.ok()) continue;
    ++found;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
  EXPECT_GT(found, 5);
}

TEST_F(SqliteTest, WhatWasCommittedIsThereAfterTheProcessIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = SqliteStore::Open(options_);
    for (uint64_t id = 1; store.ok(); ++id) {
      if (!(*store)->Commit({Insert(id), Step(id, id, 1)}).ok()) _exit(1);
      if (write(ready[1], &id, sizeof(id)) != sizeof(id)) _exit(1);
    }
    _exit(1);
  }
  uint64_t acknowledged = 0;
  while (acknowledged < 200) {
    ASSERT_EQ(read(ready[0], &acknowledged, sizeof(acknowledged)),
              static_cast<ssize_t>(sizeof(acknowledged)));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(ready[1]);
  for (uint64_t id; read(ready[0], &id, sizeof(id)) == sizeof(id);) acknowledged = id;
  close(ready[0]);

  auto store = MustOpen();
  ASSERT_NE(store, nullptr);
  auto restored = store->Restore(kStart);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_GE(restored->jobs.size(), acknowledged);
  EXPECT_LE(restored->jobs.size(), acknowledged + 1);
  EXPECT_EQ(restored->next_sequence, restored->next_job_id);
}

TEST_F(SqliteTest, ACommitThatCannotBeWrittenChangesNothingAndEndsTheStore) {
  auto store = MustOpen();
  EXPECT_OK(store->Commit({Insert(1)}));
  // The second insert of a number breaks a rule of the table.
  EXPECT_FALSE(store->Commit({Insert(2), Insert(1)}).ok());
  EXPECT_EQ(store->GetJob(2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->GetJob(1).ok());
  EXPECT_FALSE(store->Commit({Insert(3)}).ok());
  EXPECT_FALSE(store->Idle().ok());
  store.reset();
  store = MustOpen();
  EXPECT_THAT(store->Restore(kStart)->jobs, SizeIs(1));
  EXPECT_OK(store->Commit({Insert(3)}));
}

TEST_F(SqliteTest, CheckpointsKeepTheLogShort) {
  options_.checkpoint_wal_bytes = 256 << 10;
  options_.idle_checkpoint_bytes = 0;
  auto store = MustOpen();
  for (uint64_t id = 1; id <= 500; ++id) {
    EXPECT_OK(store->Commit({Insert(id, {.script_bytes = 5000})}));
  }
  EXPECT_LT(fs::file_size(path("broker.db-wal")), 1u << 20);
  EXPECT_OK(store->Idle());
  EXPECT_GT(fs::file_size(path()), 2u << 20);
  EXPECT_THAT(store->Restore(kStart)->jobs, SizeIs(500));
}

TEST_F(SqliteTest, AReaderThatStaysDoesNotHoldUpEachCommit) {
  options_.checkpoint_wal_bytes = 256 << 10;
  options_.restart_wal_bytes = 1 << 20;
  auto store = MustOpen();
  EXPECT_OK(store->Commit({Insert(1)}));
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM job", nullptr, nullptr, nullptr),
            SQLITE_OK);
  const absl::Time begin = absl::Now();
  for (uint64_t id = 2; id <= 500; ++id) {
    EXPECT_OK(store->Commit({Insert(id, {.script_bytes = 5000})}));
  }
  // Were each commit beyond the bound to wait for the reader, a minute would be the least.
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
  EXPECT_GT(fs::file_size(path("broker.db-wal")), 2u << 20) << "the bound was passed";
  sqlite3_close(reader);
  EXPECT_OK(store->Commit({Insert(501)}));
  EXPECT_OK(store->Commit({Insert(502)}));
  const auto size = fs::file_size(path("broker.db-wal"));
  for (uint64_t id = 503; id <= 520; ++id) EXPECT_OK(store->Commit({Insert(id)}));
  EXPECT_EQ(fs::file_size(path("broker.db-wal")), size) << "the log begins anew";
}

TEST_F(SqliteTest, ItsFilesAreForTheirOwnerOnly) {
  auto store = MustOpen();
  EXPECT_OK(store->Commit({Insert(1)}));
  int files = 0;
  for (const auto& entry : fs::directory_iterator(directory_.path())) {
    ++files;
    EXPECT_EQ(entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << entry.path();
  }
  EXPECT_GE(files, 4);
}

TEST_F(SqliteTest, ACleanEndLeavesOneFile) {
  Fill(10);
  EXPECT_FALSE(fs::exists(path("broker.db-wal")));
}

}  // namespace
}  // namespace muster::store
