// Tests the engine's figures about itself.
#include <vector>

#include "tests/unit/rpc/engine_fixture.h"

namespace muster::broker {
namespace {

class StatsTest : public EngineTest {
 protected:
  void StartCounting() {
    EngineOptions options;
    options.stats_interval = absl::Seconds(1);
    options.report_stats = [this](const Stats& stats, const Stats::Totals& before) {
      std::lock_guard lock(mutex_);
      reports_.push_back(stats);
      before_.push_back(before);
    };
    Start(options);
  }
  // Reports so far, once the interval has passed and the core has looked at the clock.
  std::vector<Stats> ReportsAfterInterval() {
    StateOfCluster();
    clock_.Advance(absl::Seconds(1));
    StateOfCluster();
    std::lock_guard lock(mutex_);
    return reports_;
  }

  std::mutex mutex_;
  std::vector<Stats> reports_;
  std::vector<Stats::Totals> before_;
};

TEST_F(StatsTest, DroppedEventsAreReportedOnce) {
  StartCounting();
  ASSERT_EQ(ReportsAfterInterval().size(), 1u) << "the agent's row was written";

  agent::v1::RunEvents events;
  agent::v1::RunEvent* unknown = events.add_events();
  unknown->set_sequence(1);
  unknown->set_run_key("k7m2-77-1");
  unknown->set_state(v1::RUN_STATE_RUNNING);
  engine_->Report(session_, events, peer_);
  const std::vector<Stats> reports = ReportsAfterInterval();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].totals.dropped_events, 1u);
  EXPECT_EQ(before_[1].dropped_events, 0u);
  EXPECT_GT(reports[1].totals.commits, reports[0].totals.commits);
  EXPECT_EQ(reports[1].peaks.rows_of_commit, 1u) << "of the last interval";

  EXPECT_EQ(ReportsAfterInterval().size(), 2u) << "nothing has changed";
}

TEST_F(StatsTest, TheMostThatWaitedIsReported) {
  StartCounting();
  StateOfCluster();
  core::Submit submit;
  submit.user = "ada";
  for (int i = 0; i < 7; ++i) {
    submit.items.push_back({std::make_shared<const v1::JobSpec>(TrueSpec()), ""});
  }
  engine_->Submit(std::move(submit), [](auto) {});
  const std::vector<Stats> reports = ReportsAfterInterval();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].peaks.waiting_submits, 7u);
}

TEST_F(StatsTest, ABeatingAgentIsNoNews) {
  StartCounting();
  ASSERT_EQ(ReportsAfterInterval().size(), 1u);
  engine_->Beat(session_, {}, peer_);
  EXPECT_EQ(ReportsAfterInterval().size(), 1u);
}

}  // namespace
}  // namespace muster::broker
