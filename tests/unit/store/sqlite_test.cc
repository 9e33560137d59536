// Tests the faults that only a database on a disk can have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "contract/errors.h"
#include "contract/filter.h"
#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/version_1.h"

namespace muster::store {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
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

  // Makes a closed database with so many jobs.
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

  int Count(const std::string& table) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
    sqlite3_stmt* count = nullptr;
    sqlite3_prepare_v2(database, ("SELECT count(*) FROM " + table).c_str(), -1, &count, nullptr);
    const int rows = sqlite3_step(count) == SQLITE_ROW ? sqlite3_column_int(count, 0) : -1;
    sqlite3_finalize(count);
    sqlite3_close(database);
    return rows;
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
  Execute("PRAGMA user_version = 99");
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "DATABASE_TOO_NEW");
  EXPECT_THAT(std::string(status.message()), HasSubstr("schema 99"));
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
  // Every page but the first is broken, from a copy each time: it is found by the open, the restore
  // or the list, or it holds nothing that they read. Nothing crashes, and nothing is taken for an
  // empty store.
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
    if (status.ok())
      status = (*store)->ListJobs(Scope::All(), {.page_size = 1000, .include_spec = true}).status();
    if (status.ok()) continue;
    ++found;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
  EXPECT_GT(found, 5);
}

TEST_F(SqliteTest, AFileOfVersion2TellsHowItsJobsEndedWhenItIsFiltered) {
  v1::Run run;
  run.set_number(2);
  run.set_state(v1::RUN_STATE_FAILED);
  run.mutable_exit()->set_code(75);
  run.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  // This is the database as the release with schema version 2 left it: one more job, whose second
  // run failed.
  Execute(std::string(kVersion1Dump) +
          "ALTER TABLE job ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE job ADD COLUMN retry_time INTEGER;"
          "INSERT INTO job VALUES(5,6,4,0,2,'here',1750000005000000,1750000006000000,1,0,"
          "1750000000000000,'fails','default','bob',NULL,0,NULL);"
          "INSERT INTO job_spec VALUES(5,X'0a056661696c73');"
          "INSERT INTO run VALUES(327682,0,X'" +
          absl::BytesToHexString(run.SerializeAsString()) + "'); PRAGMA user_version = 2;");
  auto store = MustOpen();
  ASSERT_NE(store, nullptr);
  const auto list = [&store](const std::string& filter, const std::string& order = "") {
    std::vector<uint64_t> ids;
    const auto page =
        store->ListJobs(Scope::All(), {.filter = *contract::ParseFilter(filter, kStart),
                                       .order = *contract::ParseJobOrder(order)});
    for (const v1::Job& job : page->jobs) ids.push_back(job.id());
    return ids;
  };
  EXPECT_THAT(list("exit_code = 75"), ElementsAre(5));
  EXPECT_THAT(list("failure_class = PROGRAM user = bob"), ElementsAre(5));
  EXPECT_THAT(list("cluster_kind = SLURM"), ElementsAre(5, 4, 3, 2));
  EXPECT_THAT(list("", "priority desc"), ElementsAre(1, 5, 4, 3, 2));
  EXPECT_THAT(list("", "start_time"), ElementsAre(2, 5, 1, 3, 4));
  EXPECT_EQ(store->GetJob(Scope::All(), 5)->rerun_of(), 0u);
  store.reset();
  EXPECT_THAT(MustOpen()->Restore(kStart)->jobs, SizeIs(3)) << "it is of the new version now";
}

core::EditJob EditOf(uint64_t job, uint64_t sequence) {
  core::EditJob edit;
  edit.id = job;
  edit.job_sequence = 2;
  edit.sequence = sequence;
  return edit;
}

TEST_F(SqliteTest, WhatAJobWasBeforeItWasEditedGoesWithTheJob) {
  auto store = MustOpen();
  EXPECT_OK(store->Commit({Insert(1), Step(1, 1, 1), Step(1, 2, 2), EditOf(1, 2), Insert(2),
                           Step(2, 3, 1), Step(2, 4, 2), EditOf(2, 4)}));
  EXPECT_EQ(Count("edit"), 2);
  EXPECT_OK(store->Commit({core::DeleteJob{1}}));
  EXPECT_EQ(Count("edit"), 1);
}

TEST_F(SqliteTest, ASpecIsKeptOnceAndGoesWithItsLastJob) {
  auto store = MustOpen();
  // These differ in what their own rows have.
  EXPECT_OK(store->Commit({Insert(1, {.name = "a", .labels = {{"team", "vision"}}}),
                           Insert(2, {.name = "b", .project = "speech", .priority = 3}),
                           Insert(3, {.script_bytes = 20})}));
  EXPECT_EQ(Count("spec"), 2);
  store.reset();
  store = MustOpen();
  EXPECT_OK(store->Commit({Insert(4, {.name = "d"})}));
  EXPECT_EQ(Count("spec"), 2) << "also of a later process";
  EXPECT_EQ(store->GetJob(Scope::All(), 2)->spec().name(), "b");
  EXPECT_EQ(store->GetJob(Scope::All(), 2)->spec().project(), "speech");
  EXPECT_EQ(store->GetJob(Scope::All(), 2)->spec().priority(), 3);
  EXPECT_EQ(store->GetSpecs(Scope::All(), {1})->front().spec.labels().at("team"), "vision");
  EXPECT_EQ(store->GetSpecs(Scope::All(), {3})->front().spec.command().script().size(), 20u);
  EXPECT_OK(store->Commit({core::DeleteJob{1}, core::DeleteJob{2}, core::DeleteJob{3}}));
  EXPECT_EQ(Count("spec"), 1);
  EXPECT_OK(store->Commit({core::DeleteJob{4}}));
  EXPECT_EQ(Count("spec"), 0);
  // The row's number is free again; what had it must not be found by it.
  EXPECT_OK(store->Commit({Insert(5, {.script_bytes = 20}), Insert(6)}));
  EXPECT_EQ(store->GetJob(Scope::All(), 5)->spec().command().script().size(), 20u);
  EXPECT_EQ(store->GetJob(Scope::All(), 6)->spec().command().script().size(), 10u);
  const core::Restored restored = *store->Restore(kStart);
  EXPECT_EQ(restored.requirements.size(), 1u) << "placement sees no difference";
}

TEST_F(SqliteTest, ASpecThatWentWithItsLastJobComesBackWithTheNextOne) {
  auto store = MustOpen();
  EXPECT_OK(store->Commit({Insert(1)}));
  EXPECT_OK(store->Commit({core::DeleteJob{1}}));
  EXPECT_OK(store->Commit({Insert(2)}));
  EXPECT_EQ(Count("spec"), 1);
  EXPECT_EQ(store->GetJob(Scope::All(), 2)->spec().command().script().size(), 10u);
}

TEST_F(SqliteTest, JobsOfOneSpecHaveTheRequirementsOfTheirProjects) {
  auto store = MustOpen();
  EXPECT_OK(store->Commit({Insert(1), Insert(2, {.project = "speech"}), Insert(3)}));
  const core::Restored restored = *store->Restore(kStart);
  ASSERT_THAT(restored.jobs, SizeIs(3));
  const auto project = [&restored](int i) {
    return restored.requirements.at(restored.jobs[i].requirements).project;
  };
  EXPECT_EQ(project(0), "default");
  EXPECT_EQ(project(1), "speech");
  EXPECT_EQ(project(2), "default");
  EXPECT_EQ(restored.requirements.size(), 2u);
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
  EXPECT_EQ(store->GetJob(Scope::All(), 2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->GetJob(Scope::All(), 1).ok());
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
    // Each has a spec of its own.
    EXPECT_OK(store->Commit({Insert(id, {.script_bytes = 5000 + id})}));
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
    // Each has a spec of its own.
    EXPECT_OK(store->Commit({Insert(id, {.script_bytes = 5000 + id})}));
  }
  // The least would be a minute if each commit beyond the bound waited for the reader.
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
