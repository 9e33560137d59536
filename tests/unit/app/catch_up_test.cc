// Tests what a watcher that catches up reads of the history, over a memory store.
#include "broker/app/catch_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "broker/store/memory/memory_store.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

// Counts the steps of single jobs that are read.
class CountingStore : public store::MemoryStore {
 public:
  CountingStore() : MemoryStore("k7m2") {}

  absl::StatusOr<std::vector<store::JobTransition>> ListTransitions(const store::Scope& scope,
                                                                    absl::Span<const uint64_t> jobs,
                                                                    uint64_t after_sequence,
                                                                    int limit) const override {
    auto steps = MemoryStore::ListTransitions(scope, jobs, after_sequence, limit);
    if (steps.ok() && jobs.size() == 1) steps_read += steps->size();
    return steps;
  }

  mutable size_t steps_read = 0;
};

class CatchUpTest : public ::testing::Test {
 protected:
  // One job, which has just been submitted.
  CatchUpTest() {
    core::InsertJob insert;
    insert.id = 1;
    v1::JobSpec spec;
    spec.set_priority(5);
    insert.spec = std::make_shared<const v1::JobSpec>(std::move(spec));
    Commit({insert});
    Step(v1::JOB_STATE_QUEUED);
  }

  void Commit(const std::vector<core::Change>& changes) {
    const absl::Status status = store_.Commit(changes);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Returns the sequence of the step.
  uint64_t Step(v1::JobState state, uint32_t run = 0) {
    core::AppendTransition step{1, {}};
    step.transition.set_sequence(++last_);
    step.transition.set_job_sequence(++steps_);
    step.transition.set_job_state(state);
    step.transition.set_run(run);
    Commit({step});
    return last_;
  }
  uint64_t RunChanges(uint32_t run) {
    core::PutRun put;
    put.job = 1;
    put.run.set_number(run);
    put.run.set_cluster("here");
    put.run.set_state(v1::RUN_STATE_RUNNING);
    put.sequence = ++last_;
    Commit({put});
    return last_;
  }
  uint64_t SetPriority(int32_t before, int32_t after) {
    core::EditJob edit;
    edit.id = 1;
    edit.sequence = last_ + 1;
    edit.job_sequence = steps_ + 1;
    edit.priority_before = before;
    edit.priority = after;
    Commit({edit});
    return Step(v1::JOB_STATE_QUEUED);
  }

  CatchUp WithFilter(const std::string& filter) const {
    return CatchUp(&store_, kind_of_, store::Scope::All(), {},
                   *contract::ParseFilter(filter, absl::Now()));
  }
  // Returns the sequences that one page gives.
  static std::vector<uint64_t> Page(CatchUp& catch_up, uint64_t after, uint64_t up_to) {
    const auto page = catch_up.ReadAfter(after, up_to);
    EXPECT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->read_up_to, up_to);
    std::vector<uint64_t> given;
    for (const v1::JobChange& change : page->changes) given.push_back(change.sequence());
    return given;
  }

  const store::KindOfCluster kind_of_ = [](const std::string&) { return v1::CLUSTER_KIND_SLURM; };
  CountingStore store_;
  uint64_t last_ = 0;
  uint64_t steps_ = 0;
};

TEST_F(CatchUpTest, TheHistoryOfAJobIsReadOnceForAllChangesOfItsRuns) {
  constexpr size_t kSteps = 100;
  while (steps_ < kSteps) Step(v1::JOB_STATE_RUNNING);
  const uint64_t read_so_far = last_;
  std::vector<uint64_t> changes;
  for (uint32_t run = 1; run <= 20; ++run) changes.push_back(RunChanges(run));
  CatchUp catch_up = WithFilter("state = RUNNING");
  EXPECT_EQ(Page(catch_up, read_so_far, last_), changes);
  EXPECT_LE(store_.steps_read, kSteps + changes.size());
}

TEST_F(CatchUpTest, AChangeOfARunIsJudgedByThePriorityOfItsTimeAlsoIfTheJobWasEditedBetweenPages) {
  const uint64_t first = Step(v1::JOB_STATE_RUNNING, 1);
  const uint64_t change = RunChanges(1);
  CatchUp catch_up = WithFilter("priority = 5");
  EXPECT_THAT(Page(catch_up, 0, first), ElementsAre(1, first));
  SetPriority(5, 7);
  EXPECT_THAT(Page(catch_up, first, change), ElementsAre(change));
}

TEST_F(CatchUpTest, StepsThatWereReadElsewhereBetweenTwoCatchUpsAreKnownToTheSecond) {
  const uint64_t first = Step(v1::JOB_STATE_RUNNING);
  CatchUp catch_up = WithFilter("state = SUSPENDED");
  EXPECT_THAT(Page(catch_up, 0, first), ElementsAre());
  // The step may come from the tail.
  const uint64_t elsewhere = Step(v1::JOB_STATE_SUSPENDED);
  const uint64_t next = Step(v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Page(catch_up, elsewhere, next), ElementsAre(next)) << "it was SUSPENDED before";
}

}  // namespace
}  // namespace muster::broker
