// Tests what each store keeps of the changes of runs that no transition tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunChangesTest : public StoreTest {};

INSTANTIATE_TEST_SUITE_P(Stores, RunChangesTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(RunChangesTest, TheLatestChangeOfEachRunComesBackInItsPlace) {
  const auto changed = [](uint64_t job, uint64_t sequence) {
    core::Change run = RunOf(job, 1, v1::RUN_STATE_PENDING);
    std::get<core::PutRun>(run).sequence = sequence;
    std::get<core::PutRun>(run).run.add_nodes("after " + std::to_string(sequence));
    return run;
  };
  Commit({Insert(1), Step(1, 1, 1), RunOf(1, 1, v1::RUN_STATE_PENDING), Insert(2), Step(2, 2, 1)});
  Commit({changed(1, 5), changed(2, 6), changed(1, 7)});
  Commit({changed(2, 0)});  // nothing that anybody shows
  Reopen();
  using P = std::pair<uint64_t, uint64_t>;
  const auto list = [&](std::vector<uint64_t> jobs, uint64_t after, int limit) {
    auto found = store().ListRunChanges(Scope::All(), jobs, after, limit);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<P> out;
    for (const RunChange& change : *found) out.emplace_back(change.job, change.sequence);
    return out;
  };
  EXPECT_THAT(list({}, 0, 100), ElementsAre(P(2, 6), P(1, 7)));
  EXPECT_THAT(list({}, 0, 1), ElementsAre(P(2, 6)));
  EXPECT_THAT(list({}, 6, 100), ElementsAre(P(1, 7)));
  EXPECT_THAT(list({1, 2, 1}, 0, 100), ElementsAre(P(2, 6), P(1, 7)));
  EXPECT_THAT(list({2}, 0, 100), ElementsAre(P(2, 6)));
  EXPECT_THAT(list({2}, 6, 100), IsEmpty());
  EXPECT_EQ(store().ListRunChanges(Scope::All(), {1}, 0, 1)->front().run.nodes(0), "after 7");
  EXPECT_EQ(store().GetJob(Scope::All(), 2)->runs(0).nodes(0), "after 0");
  EXPECT_EQ(*store().LastSequence(), 7u);
  EXPECT_EQ(Restore().next_sequence, 8u) << "a client may have been given 7";

  Commit({core::DeleteJob{1}});
  EXPECT_THAT(list({}, 0, 100), ElementsAre(P(2, 6)));
  EXPECT_EQ(*store().LastSequence(), 7u);
}

TEST_P(RunChangesTest, LateUsageIsPutIntoTheRunOnce) {
  const auto used = [](uint64_t job, uint64_t sequence, std::string cluster) {
    core::PutUsage put;
    put.job = job;
    put.run = 1;
    put.cluster = std::move(cluster);
    put.sequence = sequence;
    put.usage.set_max_rss_bytes(4096);
    return put;
  };
  core::Change ended = RunOf(1, 1, v1::RUN_STATE_SUCCEEDED);
  std::get<core::PutRun>(ended).is_last = true;
  const std::string cluster = std::get<core::PutRun>(ended).run.cluster();
  Commit({Insert(1), Step(1, 1, 1), ended, Insert(2), Step(2, 2, 1),
          RunOf(2, 1, v1::RUN_STATE_RUNNING)});
  Commit({used(1, 3, cluster)});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->runs(0).usage().max_rss_bytes(), 4096u);
  Commit({used(1, 4, cluster), used(2, 5, cluster), used(9, 6, cluster)});
  core::PutUsage other = used(1, 7, "another");
  other.usage.set_max_rss_bytes(1);
  Commit({other});
  Reopen();
  const auto changes = store().ListRunChanges(Scope::All(), {}, 0, 100);
  ASSERT_TRUE(changes.ok()) << changes.status();
  ASSERT_EQ(changes->size(), 1u) << "the same once more, no end, no such job, another's run";
  EXPECT_EQ(changes->front().sequence, 3u);
  EXPECT_EQ(changes->front().run.usage().max_rss_bytes(), 4096u);
  EXPECT_FALSE(store().GetJob(Scope::All(), 2)->runs(0).has_usage());
}

}  // namespace
}  // namespace muster::store
