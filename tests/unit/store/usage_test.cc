// The use of ended runs by days, in every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

core::AddUsage Row(int64_t day, const std::string& project, const std::string& user,
                   const std::string& cluster, int64_t gpu_ms, const std::string& type = "") {
  return {.day = day,
          .project = project,
          .user = user,
          .cluster = cluster,
          .gpu_type = type,
          .runs = 1,
          .run_ms = 10,
          .core_ms = 20,
          .gpu_ms = gpu_ms};
}

class UsageTest : public StoreTest {
 protected:
  // "day project user cluster type runs gpu_ms" of each row.
  std::vector<std::string> List(const UsageQuery& query, const Scope& scope = Scope::All()) {
    const absl::StatusOr<UsageRows> found = store().ListUsage(scope, query);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::string> rows;
    for (const core::AddUsage& row : found->rows) {
      EXPECT_EQ(row.run_ms, row.runs * 10);
      EXPECT_EQ(row.core_ms, row.runs * 20);
      rows.push_back(std::to_string(row.day) + " " + row.project + " " + row.user + " " +
                     row.cluster + " " + row.gpu_type + " " + std::to_string(row.runs) + " " +
                     std::to_string(row.gpu_ms));
    }
    is_over_ = found->is_over;
    return rows;
  }
  void CommitSome() {
    Commit({Row(10, "vision", "ada", "lab", 1), Row(10, "vision", "ada", "lab", 2),
            Row(11, "vision", "bob", "lab", 4), Row(11, "speech", "ada", "hpc", 8, "a100")});
    Commit({Row(10, "vision", "ada", "lab", 16)});
    Reopen();
  }

  static constexpr UsageParts kAll = {true, true, true, true};
  bool is_over_ = false;
};

INSTANTIATE_TEST_SUITE_P(Stores, UsageTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(UsageTest, RowsOfTheSameKindAreAddedUp) {
  CommitSome();
  EXPECT_THAT(List({.first_day = 0, .last_day = 99, .parts = kAll}),
              ::testing::ElementsAre("10 vision ada lab  3 19", "11 speech ada hpc a100 1 8",
                                     "11 vision bob lab  1 4"));
  EXPECT_THAT(List({.first_day = 0, .last_day = 99, .parts = {.project = true}}),
              ::testing::ElementsAre("0 speech   a100 1 8", "0 vision    4 23"));
  EXPECT_THAT(List({.first_day = 0, .last_day = 99}),
              ::testing::ElementsAre("0     4 23", "0    a100 1 8"));
}

TEST_P(UsageTest, OnlyTheDaysProjectUserAndClusterThatAreAskedForCount) {
  CommitSome();
  EXPECT_THAT(List({.first_day = 11, .last_day = 11, .parts = {.user = true}}),
              ::testing::ElementsAre("0  ada  a100 1 8", "0  bob   1 4"));
  EXPECT_THAT(List({.first_day = 0, .last_day = 99, .user = "bob"}),
              ::testing::ElementsAre("0     1 4"));
  EXPECT_THAT(List({.first_day = 0, .last_day = 99, .project = "speech", .cluster = "lab"}),
              ::testing::IsEmpty());
}

TEST_P(UsageTest, AReaderSeesTheUseOfJobsInItsScope) {
  CommitSome();
  const UsageQuery query{.first_day = 0, .last_day = 99, .parts = {.project = true}};
  EXPECT_THAT(List(query, Scope::Of({"speech"}, {})),
              ::testing::ElementsAre("0 speech   a100 1 8"));
  EXPECT_THAT(List(query, Scope::Of({}, {"bob"})), ::testing::ElementsAre("0 vision    1 4"));
  EXPECT_THAT(List(query, Scope::Of({}, {})), ::testing::IsEmpty());
}

TEST_P(UsageTest, MoreRowsThanTheLimitAreLeftOutAndSaidSo) {
  CommitSome();
  EXPECT_EQ(List({.first_day = 0, .last_day = 99, .parts = kAll, .limit = 2}).size(), 2u);
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(List({.first_day = 0, .last_day = 99, .parts = kAll, .limit = 3}).size(), 3u);
  EXPECT_FALSE(is_over_);
}

TEST_P(UsageTest, OldDaysGo) {
  CommitSome();
  Commit({Row(10 + kMaxUsageDays, "vision", "ada", "lab", 1)});
  const UsageQuery query{.first_day = 0, .last_day = 9999, .parts = {.day = true}};
  EXPECT_THAT(List(query), ::testing::ElementsAre("11     1 4", "11    a100 1 8", "1110     1 1"));
}

}  // namespace
}  // namespace muster::store
