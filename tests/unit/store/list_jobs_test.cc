// ListJobs, on every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/store/list_limits.h"
#include "contract/filter.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ListTest : public StoreTest {
 protected:
  void Fill() {
    Commit({Insert(1, {.name = "a", .labels = {{"team", "x"}}}),
            Insert(2, {.name = "b", .project = "vision"}),
            Insert(3, {.name = "a", .labels = {{"team", "x"}, {"gpu", "1"}}}),
            Insert(4, {.name = "c", .labels = {{"team", "y"}}}),
            Update(1, v1::JOB_STATE_RUNNING, 2, "here"), RunOf(1, 1, v1::RUN_STATE_RUNNING),
            Update(4, v1::JOB_STATE_PENDING, 2, "there"), RunOf(4, 1, v1::RUN_STATE_PENDING)});
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, ListTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(ListTest, ListsTheNewestFirst) {
  Fill();
  EXPECT_THAT(List(""), ElementsAre(4, 3, 2, 1));
}

TEST_P(ListTest, EachFieldFilters) {
  Fill();
  EXPECT_THAT(List("name = a"), ElementsAre(3, 1));
  EXPECT_THAT(List("project = vision"), ElementsAre(2));
  EXPECT_THAT(List("state = QUEUED"), ElementsAre(3, 2));
  EXPECT_THAT(List("cluster = there"), ElementsAre(4));
  EXPECT_THAT(List("cluster = \"\""), ElementsAre(3, 2));
  EXPECT_THAT(List("label.team = x"), ElementsAre(3, 1));
  EXPECT_THAT(List("label.team != x"), ElementsAre(4, 2));
  EXPECT_THAT(List("name = nobody"), IsEmpty());
}

TEST_P(ListTest, HeldJobsAreFound) {
  Fill();
  core::Change held = Update(2, v1::JOB_STATE_QUEUED, 2);
  std::get<core::UpdateJob>(held).hold = core::HoldState::kHeld;
  Commit({held});
  EXPECT_THAT(List("held = true"), ElementsAre(2));
  EXPECT_THAT(List("state = QUEUED AND held = false"), ElementsAre(3));
}

TEST_P(ListTest, RestrictionsCombine) {
  Fill();
  EXPECT_THAT(List("label.team = x AND state = RUNNING"), ElementsAre(1));
  EXPECT_THAT(List("label.team = x AND label.gpu = \"1\" AND name = a"), ElementsAre(3));
  EXPECT_THAT(List("label.team = x OR state = PENDING"), ElementsAre(4, 3, 1));
  EXPECT_THAT(List("NOT name = a"), ElementsAre(4, 2));
  EXPECT_THAT(List("name = a AND NOT (state = QUEUED OR cluster = there)"), ElementsAre(1));
}

TEST_P(ListTest, TimesFilterEvenWhenTheClockWasSetBack) {
  std::vector<core::Change> changes;
  // The clock goes back by an hour after job 2000.
  for (uint64_t id = 1; id <= 4000; ++id) {
    const absl::Duration age = absl::Seconds(id) - (id > 2000 ? absl::Hours(1) : absl::Hours(0));
    changes.push_back(Insert(id, {.create_time = kStart + age}));
  }
  Commit(std::move(changes));
  auto at = [](absl::Duration age) {
    return "\"" + absl::FormatTime(absl::RFC3339_full, kStart + age, absl::UTCTimeZone()) + "\"";
  };
  EXPECT_THAT(List("create_time = " + at(absl::Seconds(5))), ElementsAre(3605, 5));
  EXPECT_THAT(List("create_time < " + at(absl::Seconds(-1598))), ElementsAre(2001));
  EXPECT_THAT(List("create_time > " + at(absl::Seconds(1998))), ElementsAre(2000, 1999));
  EXPECT_THAT(
      List("create_time >= " + at(absl::Seconds(1)) + " AND create_time <= " + at(absl::Seconds(2)),
           1),
      ElementsAre(3602, 3601, 2, 1));
  EXPECT_THAT(List("create_time > " + at(absl::Hours(9))), IsEmpty());
}

TEST_P(ListTest, PagesJoinUpWithoutGapsOrRepeats) {
  std::vector<core::Change> changes;
  std::vector<uint64_t> expected;
  for (uint64_t id = 1; id <= 100; ++id) {
    changes.push_back(Insert(id, {.name = id % 3 == 0 ? "third" : "other"}));
    if (id % 3 == 0) expected.insert(expected.begin(), id);
  }
  Commit(std::move(changes));
  for (int page_size : {1, 7, 33, 34, 100}) {
    EXPECT_EQ(List("name = third", page_size), expected);
    EXPECT_EQ(List("name != other", page_size), expected);
  }
}

TEST_P(ListTest, NewJobsDoNotDisturbThePagesThatFollow) {
  Fill();
  const contract::Filter all;
  auto first = store().ListJobs(all, 2, "", false);
  ASSERT_TRUE(first.ok());
  Commit({Insert(5)});
  auto second = store().ListJobs(all, 2, first->next_page_token, false);
  ASSERT_TRUE(second.ok());
  ASSERT_THAT(second->jobs, SizeIs(2));
  EXPECT_EQ(second->jobs[0].id(), 2u);
  EXPECT_EQ(second->next_page_token, "");
}

TEST_P(ListTest, ATokenOfAnotherFilterOrOfNobodyIsRefused) {
  Fill();
  const contract::Filter all;
  auto first = store().ListJobs(all, 2, "", false);
  ASSERT_TRUE(first.ok());
  const contract::Filter other = *contract::ParseFilter("name = a");
  for (const std::string& token :
       {first->next_page_token, std::string("3"), std::string("zz-1"), std::string("-"),
        first->next_page_token + "0", std::string(10000, '9')}) {
    auto page = store().ListJobs(other, 2, token, false);
    EXPECT_EQ(page.status().code(), absl::StatusCode::kInvalidArgument) << token;
  }
}

TEST_P(ListTest, SpecsAreThereIfAskedFor) {
  Fill();
  const contract::Filter all;
  EXPECT_FALSE(store().ListJobs(all, 1, "", false)->jobs[0].has_spec());
  EXPECT_EQ(store().ListJobs(all, 1, "", true)->jobs[0].spec().name(), "c");
}

TEST_P(ListTest, APageThatLooksAtTooManyJobsEndsEarly) {
  std::vector<core::Change> changes;
  const uint64_t count = kMaxScannedJobs + 100;
  for (uint64_t id = 1; id <= count; ++id) {
    changes.push_back(Insert(id, {.name = id == 1 ? "first" : "other"}));
  }
  Commit(std::move(changes));
  const contract::Filter filter = *contract::ParseFilter("name != other");
  auto page = store().ListJobs(filter, 10, "", false);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->jobs, IsEmpty());
  EXPECT_NE(page->next_page_token, "");
  EXPECT_THAT(List("name != other"), ElementsAre(1));
}

TEST_P(ListTest, APageOfLargeSpecsFitsOneMessage) {
  for (uint64_t id = 1; id <= 12; ++id) Commit({Insert(id, {.script_bytes = 900'000})});
  const contract::Filter all;
  auto page = store().ListJobs(all, 100, "", true);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->jobs, SizeIs(3));
  EXPECT_NE(page->next_page_token, "");
  EXPECT_THAT(List(""), SizeIs(12));
}

}  // namespace
}  // namespace muster::store
