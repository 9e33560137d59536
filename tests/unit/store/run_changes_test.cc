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

}  // namespace
}  // namespace muster::store
