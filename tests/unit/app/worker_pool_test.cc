#include "broker/app/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "contract/errors.h"

namespace muster::broker {
namespace {

using testing::ElementsAre;

// One thread, which is kept busy until all is posted.
class WorkerPoolTest : public testing::Test {
 protected:
  WorkerPoolTest() {
    std::promise<void> begun;
    EXPECT_TRUE(pool_.PostStep([this, &begun] {
      begun.set_value();
      go_.get_future().wait();
    }));
    begun.get_future().wait();
  }

  WorkerPool::Task Note(std::string what) {
    return [this, what = std::move(what)] { done_.push_back(what); };
  }
  // Returns the finished work, in order.
  std::vector<std::string> RunAll() {
    go_.set_value();
    pool_.Stop();
    return done_;
  }

  std::promise<void> go_;
  std::vector<std::string> done_;  // the pool's thread, then the test's
  WorkerPool pool_{{.threads = 1, .max_waiting_calls = 20}};
};

TEST_F(WorkerPoolTest, CallsGoBeforeStepsThatCameEarlier) {
  EXPECT_TRUE(pool_.PostStep(Note("step 1")));
  EXPECT_TRUE(pool_.PostStep(Note("step 2")));
  EXPECT_TRUE(pool_.PostCall(Note("call 1")));
  EXPECT_TRUE(pool_.PostCall(Note("call 2")));
  EXPECT_THAT(RunAll(), ElementsAre("call 1", "call 2", "step 1", "step 2"));
}

TEST_F(WorkerPoolTest, AStepFollowsAFewCallsHoweverManyWait) {
  EXPECT_TRUE(pool_.PostStep(Note("step")));
  EXPECT_TRUE(pool_.PostStep(Note("step")));
  for (int i = 0; i < 2 * WorkerPool::kCallsPerStep + 1; ++i)
    EXPECT_TRUE(pool_.PostCall(Note("call")));
  const std::vector<std::string> done = RunAll();
  ASSERT_EQ(done.size(), 2 * WorkerPool::kCallsPerStep + 3);
  for (size_t i = 0; i < done.size(); ++i) {
    const bool is_turn_of_step = (i + 1) % (WorkerPool::kCallsPerStep + 1) == 0;
    EXPECT_EQ(done[i], is_turn_of_step ? "step" : "call") << i;
  }
}

TEST_F(WorkerPoolTest, CallsThatRanWithoutWaitingStepsDoNotCount) {
  for (int i = 0; i < WorkerPool::kCallsPerStep; ++i) EXPECT_TRUE(pool_.PostCall(Note("call")));
  EXPECT_TRUE(pool_.PostCall([this] {
    done_.push_back("call");
    EXPECT_TRUE(pool_.PostStep(Note("step")));
  }));
  EXPECT_TRUE(pool_.PostCall(Note("last call")));
  // Stop takes no more, so all must have run before.
  std::promise<void> end;
  EXPECT_TRUE(
      pool_.PostCall([this, &end] { EXPECT_TRUE(pool_.PostStep([&end] { end.set_value(); })); }));
  go_.set_value();
  end.get_future().wait();
  pool_.Stop();
  ASSERT_GE(done_.size(), 2u);
  EXPECT_EQ(done_[done_.size() - 2], "last call");
  EXPECT_EQ(done_.back(), "step");
}

TEST(WorkerPool, ACallFindsAThreadHoweverManyStepsThereAre) {
  WorkerPool pool({.threads = 3, .kept_for_calls = 1});
  std::promise<void> end, called;
  const std::shared_future<void> ended = end.get_future().share();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(pool.PostStep([ended] { ended.wait(); }));
  EXPECT_TRUE(pool.PostCall([&called] { called.set_value(); }));
  EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  end.set_value();
  pool.Stop();
}

TEST_F(WorkerPoolTest, SaysWhetherACallIsRefusedForOthersOrForTheEnd) {
  EXPECT_EQ(contract::GetErrorInfo(pool_.Refusal())->reason(), "READERS_BUSY");
  RunAll();
  EXPECT_FALSE(pool_.PostCall(Note("late")));
  EXPECT_TRUE(absl::IsUnavailable(pool_.Refusal()));
  EXPECT_EQ(contract::GetErrorInfo(pool_.Refusal())->reason(), "SHUTTING_DOWN");
  EXPECT_TRUE(contract::GetRetryDelay(pool_.Refusal()).has_value());
}

TEST_F(WorkerPoolTest, RefusesCallsAloneWhenTooManyWait) {
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(pool_.PostCall(Note("call")));
  EXPECT_TRUE(pool_.Reserve());
  EXPECT_FALSE(pool_.PostCall(Note("refused")));
  EXPECT_FALSE(pool_.Reserve());
  EXPECT_TRUE(pool_.PostStep(Note("step")));
  pool_.Unreserve();
  EXPECT_TRUE(pool_.PostCall(Note("call")));
  EXPECT_EQ(RunAll().size(), 21u);
}

TEST_F(WorkerPoolTest, AReservedPlaceIsGivenBackByItsCall) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(pool_.Reserve());
  EXPECT_TRUE(pool_.PostReserved(Note("call")));
  EXPECT_FALSE(pool_.PostCall(Note("refused"))) << "it waits still";
  EXPECT_THAT(RunAll(), ElementsAre("call"));
}

}  // namespace
}  // namespace muster::broker
