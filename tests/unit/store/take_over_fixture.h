// Databases of older releases, opened by this one.
#ifndef MUSTER_TESTS_UNIT_STORE_TAKE_OVER_FIXTURE_H_
#define MUSTER_TESTS_UNIT_STORE_TAKE_OVER_FIXTURE_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "broker/core/core.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {

class TakeOverTest : public ::testing::Test {
 protected:
  TakeOverTest() { options_.directory = directory_.path(); }

  // Makes the database from a dump, and opens it.
  void Take(std::string_view dump) {
    Execute(std::string(dump));
    Open();
  }

  void Execute(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((directory_.path() + "/broker.db").c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << (error != nullptr ? error : "");
    sqlite3_free(error);
    sqlite3_close(database);
  }

  // `rows` is a table, or what follows FROM.
  int Count(const std::string& rows) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open((directory_.path() + "/broker.db").c_str(), &database), SQLITE_OK);
    sqlite3_stmt* count = nullptr;
    sqlite3_prepare_v2(database, ("SELECT count(*) FROM " + rows).c_str(), -1, &count, nullptr);
    const int value = sqlite3_step(count) == SQLITE_ROW ? sqlite3_column_int(count, 0) : -1;
    sqlite3_finalize(count);
    sqlite3_close(database);
    return value;
  }

  void Open() {
    store_.reset();
    auto opened = SqliteStore::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  core::Restored Restore(absl::Time now) {
    auto restored = store_->Restore(now);
    EXPECT_TRUE(restored.ok()) << restored.status();
    return restored.ok() ? *std::move(restored) : core::Restored();
  }

  v1::Job Get(uint64_t id) {
    auto job = store_->GetJob(Scope::All(), id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *std::move(job) : v1::Job();
  }

  TemporaryDirectory directory_;
  SqliteOptions options_;
  std::unique_ptr<SqliteStore> store_;
};

}  // namespace muster::store

#endif  // MUSTER_TESTS_UNIT_STORE_TAKE_OVER_FIXTURE_H_
