// Tests a reader with a narrow scope: what lies outside does not exist for it, whatever it asks.
#include "broker/store/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/core/rerun_id.h"
#include "contract/errors.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ScopeTest : public StoreTest {
 protected:
  // Jobs 1 to 4: vision/alice, speech/bob, vision/carol, robots/dave.
  void SetUp() override {
    const auto put = [this](uint64_t id, const std::string& project, const std::string& user) {
      Commit({Insert(id, {.name = project, .project = project, .user = user}), Step(id, id, 1)});
    };
    put(1, "vision", "alice");
    put(2, "speech", "bob");
    put(3, "vision", "carol");
    put(4, "robots", "dave");
  }

  std::vector<uint64_t> Listed(const Scope& scope, ListQuery query = {}) {
    std::vector<uint64_t> ids;
    do {
      const auto page = store().ListJobs(scope, query);
      EXPECT_OK(page.status());
      if (!page.ok()) break;
      for (const v1::Job& job : page->jobs) ids.push_back(job.id());
      query.page_token = page->next_page_token;
    } while (!query.page_token.empty());
    return ids;
  }

  std::vector<uint64_t> Steps(const Scope& scope, std::vector<uint64_t> jobs, int limit = 10) {
    const auto steps = store().ListTransitions(scope, jobs, 0, limit);
    EXPECT_OK(steps.status());
    std::vector<uint64_t> ids;
    for (const JobTransition& step : *steps) ids.push_back(step.job);
    return ids;
  }

  const Scope vision_ = Scope::Of({"vision"}, {});
  const Scope vision_and_bob_ = Scope::Of({"vision"}, {"bob"});
  const Scope none_ = Scope::Of({}, {});
  const Scope own_of_vision_ = Scope::Of({"robots"}, {}).With("carol", {"vision", "speech"});
};

INSTANTIATE_TEST_SUITE_P(Stores, ScopeTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(ScopeTest, TheChangesOfRunsOutsideTellNothingButThatThereAreSome) {
  for (const uint64_t job : {1, 2, 3}) {
    core::Change run = RunOf(job, 1, v1::RUN_STATE_PENDING);
    std::get<core::PutRun>(run).sequence = 10 + job;
    Commit({run});
  }
  for (const std::vector<uint64_t>& jobs : {std::vector<uint64_t>{}, {1, 2, 3}}) {
    const auto changes = store().ListRunChanges(vision_, jobs, 0, 10);
    EXPECT_OK(changes.status());
    std::vector<uint64_t> ids;
    for (const RunChange& change : *changes) ids.push_back(change.job);
    EXPECT_THAT(ids, ElementsAre(1, 0, 3));
    EXPECT_EQ(changes->at(1).run.cluster(), "");
  }
}

TEST_P(ScopeTest, AJobOutsideIsUnknownByItsNumber) {
  EXPECT_TRUE(store().GetJob(vision_, 1).ok());
  const absl::Status outside = store().GetJob(vision_, 2).status();
  EXPECT_TRUE(absl::IsNotFound(outside)) << outside;
  EXPECT_EQ(contract::GetErrorInfo(outside)->reason(), "UNKNOWN_JOB");
  EXPECT_TRUE(store().GetJob(vision_and_bob_, 2).ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetJob(none_, 1).status()));

  EXPECT_TRUE(store().GetJobs(vision_, {3, 1}).ok());
  EXPECT_EQ(
      contract::GetErrorInfo(store().GetJobs(vision_, {3, 4, 2}).status())->metadata().at("job_id"),
      "4");
  EXPECT_TRUE(absl::IsNotFound(store().GetJobsAndRuns(vision_, {3, 2}).status()));
  EXPECT_TRUE(store().GetSpecs(vision_and_bob_, {2, 3}).ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetSpecs(vision_, {2}).status()));
}

TEST_P(ScopeTest, ListsAndCountsSeeWhatIsInside) {
  EXPECT_THAT(Listed(Scope::All()), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Listed(vision_), ElementsAre(3, 1));
  EXPECT_THAT(Listed(vision_, {.page_size = 1}), ElementsAre(3, 1));
  EXPECT_THAT(Listed(vision_and_bob_), ElementsAre(3, 2, 1));
  EXPECT_THAT(Listed(none_), IsEmpty());
  ListQuery by_name;
  by_name.order = *contract::ParseJobOrder("name");
  EXPECT_THAT(Listed(vision_and_bob_, by_name), ElementsAre(2, 1, 3));
  const auto filter = contract::ParseFilter("user = alice OR user = dave", kStart);
  EXPECT_THAT(Listed(vision_, {.filter = *filter}), ElementsAre(1));
  EXPECT_EQ(store().CountJobs(vision_, {.filter = *filter})->total, 1u);
  EXPECT_EQ(store().CountJobs(vision_and_bob_, {})->total, 3u);
  EXPECT_EQ(store().CountJobs(none_, {})->total, 0u);
}

TEST_P(ScopeTest, OwnJobsOfSomeProjectsAreInside) {
  EXPECT_THAT(Listed(own_of_vision_), ElementsAre(4, 3));
  EXPECT_TRUE(store().GetJob(own_of_vision_, 3).ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetJob(own_of_vision_, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetJob(own_of_vision_, 2).status()));
  EXPECT_EQ(store().CountJobs(own_of_vision_, {})->total, 2u);
  const Scope elsewhere = Scope::Of({}, {}).With("carol", {"robots"});
  EXPECT_THAT(Listed(elsewhere), IsEmpty());
  EXPECT_THAT(Steps(own_of_vision_, {}), ElementsAre(3, 4));
}

TEST_P(ScopeTest, APageTokenIsOfOneScope) {
  const auto page = store().ListJobs(vision_and_bob_, {.page_size = 1});
  ASSERT_TRUE(page.ok()) << page.status();
  const ListQuery next{.page_size = 1, .page_token = page->next_page_token};
  EXPECT_TRUE(store().ListJobs(vision_and_bob_, next).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(store().ListJobs(vision_, next).status()));
}

TEST_P(ScopeTest, TransitionsAreThoseOfJobsInside) {
  EXPECT_THAT(Steps(vision_, {}), ElementsAre(1, 3));
  EXPECT_THAT(Steps(vision_, {}, /*limit=*/1), ElementsAre(1));
  EXPECT_THAT(Steps(vision_and_bob_, {4, 3, 2}), ElementsAre(2, 3));
  EXPECT_THAT(Steps(none_, {}), IsEmpty());
  EXPECT_THAT(Steps(Scope::All(), {}), ElementsAre(1, 2, 3, 4));
}

TEST_P(ScopeTest, JobsOfARequestAreThoseInside) {
  Commit({Insert(5, {.project = "robots", .request_id = core::RerunId("once", /*is_first=*/true)}),
          Step(5, 5, 1)});
  EXPECT_EQ(store().GetJobsOfRequest(Scope::All(), 5, "once")->size(), 1u);
  EXPECT_THAT(*store().GetJobsOfRequest(vision_, 5, "once"), IsEmpty());
}

}  // namespace
}  // namespace muster::store
