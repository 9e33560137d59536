// Tests the core's changes for watchers: each state, and changes without one.
#include <variant>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WatchedChangesTest : public CoreTest {
 protected:
  WatchedChangesTest() {
    session_ = Connect("a");
    job_ = MustSubmit(Spec());
    key_ = Key(job_);
  }

  template <typename T>
  std::vector<T> Changes() const {
    std::vector<T> found;
    for (const Change& change : last_.changes) {
      if (const T* typed = std::get_if<T>(&change)) found.push_back(*typed);
    }
    return found;
  }
  std::vector<JobsChanged> Told() const {
    std::vector<JobsChanged> found;
    for (const Effect& effect : last_.effects) {
      if (const auto* changed = std::get_if<JobsChanged>(&effect)) found.push_back(*changed);
    }
    return found;
  }

  SessionId session_;
  uint64_t job_;
  std::string key_;
};

TEST_F(WatchedChangesTest, EachTransitionHasTheRunAsItWasThen) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_RUNNING),
                    Event(3, key_, v1::RUN_STATE_SUCCEEDED)});
  const auto transitions = Changes<AppendTransition>();
  ASSERT_EQ(transitions.size(), 3u);
  ASSERT_NE(transitions[0].run_then, nullptr);
  EXPECT_EQ(transitions[0].run_then->state(), v1::RUN_STATE_LAUNCHING);
  ASSERT_NE(transitions[1].run_then, nullptr);
  EXPECT_TRUE(transitions[1].run_then->has_start_time());
  EXPECT_FALSE(transitions[1].run_then->has_end_time());
  EXPECT_EQ(transitions[2].run_then, nullptr) << "as the run is written";
}

TEST_F(WatchedChangesTest, WhatChangesWithoutATransitionHasItsPlaceAmongTheChanges) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_PENDING)});
  const uint64_t before = Told().front().sequence;
  agent::v1::RunEvent nodes = Event(3, key_, v1::RUN_STATE_PENDING);
  nodes.add_nodes("n1");
  Report(session_, {nodes});
  ASSERT_EQ(Changes<PutRun>().size(), 1u);
  EXPECT_EQ(Changes<PutRun>().front().sequence, before + 1);
  ASSERT_EQ(Told().size(), 1u);
  EXPECT_THAT(Told().front().jobs, ElementsAre(job_));
  EXPECT_EQ(Told().front().sequence, before + 1);
  EXPECT_EQ(core_->last_sequence(), before + 1);
  nodes.set_sequence(4);
  Report(session_, {nodes});
  EXPECT_EQ(Changes<PutRun>().front().sequence, 0u) << "the same nodes once more";
  EXPECT_THAT(Told(), IsEmpty());
  Report(session_, {Event(5, key_, v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Changes<AppendTransition>().front().transition.sequence(), before + 2);
  EXPECT_EQ(Changes<PutRun>().front().sequence, 0u) << "the transition tells it";
}

TEST_F(WatchedChangesTest, ThatLogsAreCompleteIsNoChangeForWatchers) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_SUCCEEDED)});
  Report(session_, {LogsComplete(3, key_, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Changes<PutRun>().front().sequence, 0u);
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(WatchedChangesTest, LateUsageHasItsPlaceAmongTheChanges) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), LogsComplete(2, key_, v1::RUN_STATE_SUCCEEDED)});
  const uint64_t before = core_->last_sequence();
  agent::v1::RunEvent used = LogsComplete(3, key_, v1::RUN_STATE_SUCCEEDED);
  used.mutable_usage()->set_max_rss_bytes(1);
  Report(session_, {used});
  ASSERT_EQ(Changes<PutUsage>().size(), 1u);
  EXPECT_EQ(Changes<PutUsage>().front().sequence, before + 1);
  ASSERT_EQ(Told().size(), 1u);
  EXPECT_THAT(Told().front().jobs, ElementsAre(job_));
  EXPECT_EQ(Told().front().sequence, before + 1);
}

TEST_F(WatchedChangesTest, NoPlaceIsGivenTwiceOverARestart) {
  agent::v1::RunEvent nodes = Event(2, key_, v1::RUN_STATE_LAUNCHING);
  nodes.add_nodes("n1");
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_, {nodes});
  // The place of the nodes is not stored.
  const uint64_t last = core_->last_sequence();
  Restart();
  EXPECT_GE(core_->last_sequence(), last);
  MustSubmit(Spec());
  EXPECT_GT(Changes<AppendTransition>().front().transition.sequence(), last);
}

}  // namespace
}  // namespace muster::core
