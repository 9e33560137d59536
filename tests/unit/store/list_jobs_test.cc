// ListJobs, on every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

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
  EXPECT_THAT(List("label.team != x"), ElementsAre(4));
  EXPECT_THAT(List("label.team:*"), ElementsAre(4, 3, 1));
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
  auto first = store().ListJobs(Scope::All(), {.filter = all, .page_size = 2});
  ASSERT_TRUE(first.ok());
  Commit({Insert(5)});
  auto second = store().ListJobs(
      Scope::All(), {.filter = all, .page_size = 2, .page_token = first->next_page_token});
  ASSERT_TRUE(second.ok());
  ASSERT_THAT(second->jobs, SizeIs(2));
  EXPECT_EQ(second->jobs[0].id(), 2u);
  EXPECT_EQ(second->next_page_token, "");
}

TEST_P(ListTest, ATokenOfAnotherFilterOrOfNobodyIsRefused) {
  Fill();
  const contract::Filter all;
  auto first = store().ListJobs(Scope::All(), {.filter = all, .page_size = 2});
  ASSERT_TRUE(first.ok());
  const contract::Filter other = *contract::ParseFilter("name = a", kStart);
  for (const std::string& token :
       {first->next_page_token, std::string("3"), std::string("zz-1"), std::string("-"),
        first->next_page_token + "0", std::string(10000, '9')}) {
    auto page =
        store().ListJobs(Scope::All(), {.filter = other, .page_size = 2, .page_token = token});
    EXPECT_EQ(page.status().code(), absl::StatusCode::kInvalidArgument) << token;
  }
}

TEST_P(ListTest, SpecsAreThereIfAskedFor) {
  Fill();
  const contract::Filter all;
  EXPECT_FALSE(store().ListJobs(Scope::All(), {.filter = all, .page_size = 1})->jobs[0].has_spec());
  EXPECT_EQ(store()
                .ListJobs(Scope::All(), {.filter = all, .page_size = 1, .include_spec = true})
                ->jobs[0]
                .spec()
                .name(),
            "c");
}

TEST_P(ListTest, TheLatestRunIsThereIfAskedFor) {
  Fill();
  core::Change second = Update(1, v1::JOB_STATE_RUNNING, 3, "here");
  std::get<core::UpdateJob>(second).runs = 2;
  Commit({second, RunOf(1, 2, v1::RUN_STATE_FINISHING)});
  const auto all = store().ListJobs(Scope::All(), {.include_latest_run = true});
  ASSERT_TRUE(all.ok());
  ASSERT_THAT(all->jobs, SizeIs(4));
  EXPECT_THAT(all->jobs[1].runs(), IsEmpty()) << "it has none";
  ASSERT_THAT(all->jobs[3].runs(), SizeIs(1));
  EXPECT_EQ(all->jobs[3].runs(0).number(), 2u);
  EXPECT_EQ(all->jobs[3].runs(0).state(), v1::RUN_STATE_FINISHING);
  EXPECT_THAT(store().ListJobs(Scope::All(), {})->jobs[3].runs(), IsEmpty());
}

TEST_P(ListTest, APageThatLooksAtTooManyJobsEndsEarly) {
  std::vector<core::Change> changes;
  const uint64_t count = kMaxScannedJobs + 100;
  for (uint64_t id = 1; id <= count; ++id) {
    changes.push_back(Insert(id, {.name = id == 1 ? "first" : "other"}));
  }
  Commit(std::move(changes));
  const contract::Filter filter = *contract::ParseFilter("name != other", kStart);
  auto page = store().ListJobs(Scope::All(), {.filter = filter, .page_size = 10});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->jobs, IsEmpty());
  EXPECT_NE(page->next_page_token, "");
  EXPECT_THAT(List("name != other"), ElementsAre(1));
}

TEST_P(ListTest, APageOfLargeSpecsFitsOneMessage) {
  for (uint64_t id = 1; id <= 12; ++id) Commit({Insert(id, {.script_bytes = 900'000})});
  const contract::Filter all;
  auto page =
      store().ListJobs(Scope::All(), {.filter = all, .page_size = 100, .include_spec = true});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->jobs, SizeIs(3));
  EXPECT_NE(page->next_page_token, "");
  EXPECT_THAT(List(""), SizeIs(12));
}

// ---- orders

class OrderTest : public ListTest {
 protected:
  // Priorities and start times that are equal, missing, negative and out of the order of numbers.
  void FillForOrders() {
    const int32_t priorities[] = {0, 5, -5, 0, 5, 0, 7, -5};
    const int starts[] = {-1, 30, 10, -1, 10, 20, -1, 10};
    const char* const names[] = {"b", "a", "c", "a", "b", "a", "c", "b"};
    std::vector<core::Change> changes;
    for (uint64_t id = 1; id <= 8; ++id) {
      changes.push_back(Insert(id, {.name = names[id - 1], .priority = priorities[id - 1]}));
      if (starts[id - 1] < 0) continue;
      core::Change update = Update(id, v1::JOB_STATE_RUNNING, 2, "here");
      auto& columns = std::get<core::UpdateJob>(update);
      columns.start_time = kStart + absl::Seconds(starts[id - 1]);
      columns.end_time = columns.start_time;
      changes.push_back(update);
    }
    Commit(std::move(changes));
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, OrderTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(OrderTest, EachFieldOrdersInBothDirections) {
  FillForOrders();
  for (const int page_size : {1000, 1, 2, 3}) {
    EXPECT_THAT(List("", page_size, "id"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_THAT(List("", page_size, "create_time desc"), ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
    EXPECT_THAT(List("", page_size, "priority desc"), ElementsAre(7, 5, 2, 6, 4, 1, 8, 3));
    EXPECT_THAT(List("", page_size, "priority"), ElementsAre(3, 8, 1, 4, 6, 2, 5, 7));
    EXPECT_THAT(List("", page_size, "start_time"), ElementsAre(3, 5, 8, 6, 2, 1, 4, 7));
    EXPECT_THAT(List("", page_size, "start_time desc"), ElementsAre(2, 6, 8, 5, 3, 7, 4, 1));
    EXPECT_THAT(List("", page_size, "end_time desc"), ElementsAre(2, 6, 8, 5, 3, 7, 4, 1));
    EXPECT_THAT(List("", page_size, "name"), ElementsAre(2, 4, 6, 1, 5, 8, 3, 7));
    EXPECT_THAT(List("", page_size, "name desc"), ElementsAre(7, 3, 8, 5, 1, 6, 4, 2));
    EXPECT_THAT(List("name != c", page_size, "priority desc"), ElementsAre(5, 2, 6, 4, 1, 8));
    EXPECT_THAT(List("state = RUNNING", page_size, "priority"), ElementsAre(3, 8, 6, 2, 5));
  }
}

TEST_P(OrderTest, ATokenOfAnotherOrderIsRefused) {
  FillForOrders();
  const ListQuery by_name{.order = *contract::ParseJobOrder("name"), .page_size = 2};
  ListQuery other{.order = *contract::ParseJobOrder("name desc"), .page_size = 2};
  other.page_token = store().ListJobs(Scope::All(), by_name)->next_page_token;
  EXPECT_EQ(store().ListJobs(Scope::All(), other).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(OrderTest, NewJobsDoNotDisturbThePagesThatFollow) {
  FillForOrders();
  ListQuery query{.order = *contract::ParseJobOrder("priority desc"), .page_size = 3};
  const auto first = store().ListJobs(Scope::All(), query);
  ASSERT_TRUE(first.ok());
  Commit({Insert(9, {.priority = 6}), Insert(10, {.priority = 4})});
  query.page_token = first->next_page_token;
  const auto second = store().ListJobs(Scope::All(), query);
  ASSERT_TRUE(second.ok());
  ASSERT_THAT(second->jobs, SizeIs(3));
  EXPECT_EQ(second->jobs[0].id(), 10u);
  EXPECT_EQ(second->jobs[1].id(), 6u);
}

// The jobs are more than are sorted at once, so that the indexes are walked.
TEST_P(OrderTest, LongListsAreInOrderToo) {
  std::vector<core::Change> changes;
  for (uint64_t id = 1; id <= 6000; ++id) {
    changes.push_back(Insert(id, {.name = "n" + std::to_string(id * 7 % 10),
                                  .priority = static_cast<int32_t>(id % 5) - 2}));
    if (id % 3 != 0) continue;
    core::Change update = Update(id, v1::JOB_STATE_RUNNING, 2, "here");
    std::get<core::UpdateJob>(update).start_time = kStart + absl::Seconds(id * 31 % 1000);
    changes.push_back(update);
  }
  Commit(std::move(changes));
  for (const char* text : {"priority", "priority desc", "start_time", "start_time desc", "name",
                           "name desc", "id", "id desc"}) {
    const contract::JobOrder order = *contract::ParseJobOrder(text);
    for (const char* filter :
         {"", "state = QUEUED", "name = n3", "start_time > 2020-01-01T00:00:00Z",
          "state = RUNNING OR state = PENDING"}) {
      const std::vector<uint64_t> ids = List(filter, 700, text);
      EXPECT_EQ(ids.size(), List(filter).size()) << text << " " << filter;
      for (size_t i = 1; i < ids.size(); ++i) {
        const auto jobs = store().GetJobs(Scope::All(), {ids[i - 1], ids[i]});
        ASSERT_TRUE(contract::ComesBefore(contract::PlaceOf((*jobs)[0], order),
                                          contract::PlaceOf((*jobs)[1], order), order))
            << text << " " << filter << " at " << i;
        i += ids.size() / 50;
      }
    }
  }
}

// ---- counts

TEST_P(ListTest, CountsInGroupsTheLargestFirst) {
  Fill();
  const auto count = [&](CountQuery query) {
    std::vector<std::string> lines;
    const auto counts = store().CountJobs(Scope::All(), query);
    EXPECT_TRUE(counts.ok()) << counts.status();
    for (const v1::JobCount& one : counts->counts) lines.push_back(one.ShortDebugString());
    lines.push_back(std::to_string(counts->total));
    return lines;
  };
  EXPECT_THAT(count({}), ElementsAre("count: 4", "4"));
  EXPECT_THAT(count({.filter = *contract::ParseFilter("name = a", kStart),
                     .group_by = {v1::JOB_GROUPING_STATE}}),
              ::testing::UnorderedElementsAre("count: 1 state: JOB_STATE_QUEUED",
                                              "count: 1 state: JOB_STATE_RUNNING", "2"));
  EXPECT_THAT(count({.group_by = {v1::JOB_GROUPING_LABEL}, .label = "team"}),
              ElementsAre("count: 2 label_value: \"x\"", ::testing::_, ::testing::_, "4"));
  EXPECT_THAT(count({.group_by = {v1::JOB_GROUPING_PROJECT, v1::JOB_GROUPING_CLUSTER}}),
              ::testing::Contains("count: 1 cluster: \"here\" project: \"default\""));
  EXPECT_THAT(count({.group_by = {v1::JOB_GROUPING_USER}}),
              ElementsAre("count: 4 user: \"alice\"", "4"));
  const auto cut = store().CountJobs(Scope::All(), {.limit = 3});
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(cut->is_over);
  EXPECT_EQ(cut->total, 3u);
  EXPECT_FALSE(store().CountJobs(Scope::All(), {.limit = 4})->is_over);
}

// ---- all ways to answer a filter agree

// Makes a random filter of the language; both stores and the message itself are asked.
class FilterWords {
 public:
  explicit FilterWords(uint32_t seed) : random_(seed) {}

  std::string Expression(int depth) {
    std::string text = Term(depth);
    for (int more = Below(3); more > 0; --more) {
      const char* const joints[] = {" AND ", " OR ", " "};
      text += joints[Below(3)] + Term(depth);
    }
    return text;
  }

  int Below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  std::string One(std::vector<std::string> words) {
    return words[Below(static_cast<int>(words.size()))];
  }

 private:
  std::string Term(int depth) {
    const std::string inner =
        depth > 0 && Below(3) == 0 ? "(" + Expression(depth - 1) + ")" : Restriction();
    return Below(4) == 0 ? "NOT " + inner : inner;
  }

  std::string Restriction() {
    const std::string equal = One({" = ", " != "});
    const std::string any = One({" = ", " != ", " < ", " <= ", " > ", " >= "});
    const std::string time = One({"-1h", "-5s", "2025-06-15T15:06:40Z", "2025-06-15T15:06:50Z"});
    switch (Below(17)) {
      case 0:
        return "id" + any + std::to_string(Below(60));
      case 1:
        return "name" + equal + One({"a", "b*", "*a", "ab", "*", "b*a"});
      case 2:
      case 3:
        return "state" + equal + One({"QUEUED", "RUNNING", "FAILED", "SUCCEEDED"});
      case 4:
        return "project" + equal + One({"default", "vision"});
      case 5:
        return "user" + equal + One({"ada", "bob"});
      case 6:
        return "cluster" + equal + One({"here", "there", "\"\""});
      case 7:
        return "cluster_kind" + equal + One({"SLURM", "MACHINES"});
      case 8:
        return "priority" + any + One({"-1", "0", "1"});
      case 9:
        return "held" + equal + One({"true", "false"});
      case 10:
        return "create_time" + any + time;
      case 11:
        return "start_time" + any + time;
      case 12:
        return "end_time" + any + time;
      case 13:
        return "failure_class" + equal + One({"PROGRAM", "OOM"});
      case 14:
        return "exit_code" + any + One({"0", "1", "75"});
      case 15:
        return "label.team" + equal + One({"x", "y"});
      default:
        return One({"label.team", "label.none", "cluster", "cluster_kind", "start_time", "end_time",
                    "failure_class", "exit_code"}) +
               ":*";
    }
  }

  std::mt19937 random_;
};

class FilterAgreementTest : public ListTest {
 protected:
  void FillAtRandom(FilterWords* words) {
    std::vector<core::Change> changes;
    for (uint64_t id = 1; id <= 60; ++id) {
      JobOptions options{.name = words->One({"a", "b", "ab", "ba", "bba"}),
                         .project = words->One({"default", "vision"}),
                         .user = words->One({"ada", "bob"})};
      if (words->Below(2) == 0) options.labels["team"] = words->One({"x", "y"});
      options.priority = words->Below(3) - 1;
      options.create_time = kStart - absl::Hours(2) * words->Below(2) + absl::Seconds(id % 20);
      changes.push_back(Insert(id, options));
      const int fate = words->Below(4);
      if (fate == 0) continue;
      AddRun(id, fate, words, &changes);
    }
    Commit(std::move(changes));
  }

  static void AddRun(uint64_t id, int fate, FilterWords* words, std::vector<core::Change>* out) {
    const v1::JobState states[] = {v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING,
                                   v1::JOB_STATE_FAILED, v1::JOB_STATE_SUCCEEDED};
    core::Change update = Update(id, states[fate], 2, words->One({"here", "there"}));
    auto& columns = std::get<core::UpdateJob>(update);
    columns.cluster_kind =
        words->Below(2) == 0 ? v1::CLUSTER_KIND_SLURM : v1::CLUSTER_KIND_MACHINES;
    columns.start_time = kStart + absl::Seconds(words->Below(12));
    core::Change put = RunOf(id, 1, v1::RUN_STATE_RUNNING);
    v1::Run& run = std::get<core::PutRun>(put).run;
    if (fate > 1) {
      columns.end_time = kStart + absl::Seconds(words->Below(12));
      run.mutable_exit()->set_code(fate == 3 ? 0 : words->Below(2) == 0 ? 1 : 75);
      if (fate == 2 && words->Below(3) == 0) {
        run.mutable_exit()->set_code(0);
        run.mutable_exit()->set_signal(9);
      }
    }
    if (fate == 2) {
      run.mutable_failure()->set_failure_class(words->Below(2) == 0 ? v1::FAILURE_CLASS_PROGRAM
                                                                    : v1::FAILURE_CLASS_OOM);
    }
    out->push_back(update);
    out->push_back(put);
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, FilterAgreementTest,
                         ::testing::Values(Kind::kMemory, Kind::kSqlite), [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(FilterAgreementTest, ListsAndCountsTakeWhatTheFilterTakes) {
  FilterWords words(20'260'101);
  FillAtRandom(&words);
  std::vector<uint64_t> ids;
  for (uint64_t id = 1; id <= 60; ++id) ids.push_back(id);
  const auto jobs = store().GetJobs(Scope::All(), ids);
  ASSERT_TRUE(jobs.ok());
  for (int i = 0; i < 3000; ++i) {
    const std::string text = words.Expression(2);
    const auto filter = contract::ParseFilter(text, kStart);
    ASSERT_TRUE(filter.ok()) << text << ": " << filter.status();
    std::vector<uint64_t> expected;
    for (const v1::Job& job : *jobs) {
      if (filter->Matches(job)) expected.push_back(job.id());
    }
    ASSERT_EQ(List(text, 7, "id"), expected) << text;
    const std::string order = words.One({"priority", "start_time desc", "end_time", "name desc"});
    std::vector<uint64_t> ordered = List(text, 11, order);
    std::sort(ordered.begin(), ordered.end());
    ASSERT_EQ(ordered, expected) << text << " by " << order;
    ASSERT_EQ(store().CountJobs(Scope::All(), {.filter = *filter})->total, expected.size()) << text;
  }
}

}  // namespace
}  // namespace muster::store
