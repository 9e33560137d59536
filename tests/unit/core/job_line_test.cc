#include "broker/core/job_line.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace muster::core {
namespace {

TEST(JobLine, ServesThePriorityThenTheNumberWhateverLeavesInBetween) {
  std::mt19937_64 random(1);
  JobLine queue;
  std::set<Turn> model;
  uint64_t next_job = 1;
  for (int step = 0; step < 200'000; ++step) {
    if (random() % 5 < 2 || model.empty()) {
      const Turn turn{static_cast<int32_t>(random() % 4), next_job++};
      queue.Push(turn);
      model.insert(turn);
    } else {
      // Jobs leave from anywhere near the front, as in cancels and placement.
      auto it = model.begin();
      std::advance(it, random() % std::min<size_t>(model.size(), 50));
      queue.Remove(*it);
      model.erase(it);
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(queue.front(), *model.begin());
    }
  }
}

TEST(JobLine, AJobThatComesBackTakesItsOldTurn) {
  JobLine queue;
  for (uint64_t job : {1, 2, 3}) queue.Push({0, job});
  queue.Remove({0, 1});
  queue.Remove({0, 2});
  queue.Push({0, 1});
  EXPECT_EQ(queue.front(), (Turn{0, 1}));
  queue.Remove({0, 1});
  EXPECT_EQ(queue.front(), (Turn{0, 3}));
}

TEST(JobLine, AJobThatLeftTheMiddleMayComeBack) {
  JobLine queue;
  for (uint64_t job : {1, 2, 3}) queue.Push({0, job});
  queue.Remove({0, 2});
  queue.Push({0, 2});
  queue.Remove({0, 1});
  EXPECT_EQ(queue.front(), (Turn{0, 2}));
  EXPECT_EQ(queue.size(), 2u);
}

TEST(JobLine, AJobThatComesBackWithAnotherPriorityHasThatOne) {
  JobLine queue;
  for (uint64_t job = 1; job <= 4; ++job) queue.Push({0, job});
  queue.Remove({0, 3});
  queue.Push({5, 3});
  EXPECT_EQ(queue.front(), (Turn{5, 3}));
  queue.Remove({5, 3});
  queue.Push({-5, 3});
  for (const uint64_t job : {1, 2, 4}) {
    EXPECT_EQ(queue.front(), (Turn{0, job}));
    queue.Remove({0, job});
  }
  EXPECT_EQ(queue.front(), (Turn{-5, 3}));
  queue.Remove({-5, 3});
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace muster::core
