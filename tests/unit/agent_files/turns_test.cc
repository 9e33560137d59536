// Tests who may send files to a host, and when.
#include "agents/files/turns.h"

#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace muster::uploads {
namespace {

TEST(TurnsTest, SoManyGoOnAtOnceAndTheOthersInTheOrderOfTheirComing) {
  Turns turns(2);
  std::optional<absl::StatusOr<Turns::Turn>> first = turns.Take();
  std::optional<absl::StatusOr<Turns::Turn>> second = turns.Take();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> begun;
  const auto take = [&](int number) {
    const absl::StatusOr<Turns::Turn> turn = turns.Take();
    EXPECT_TRUE(turn.ok());
    const std::lock_guard lock(mutex);
    begun.push_back(number);
    changed.notify_all();
  };
  std::thread third(take, 3);
  while (turns.waiting() < 1) std::this_thread::yield();
  std::thread fourth(take, 4);
  while (turns.waiting() < 2) std::this_thread::yield();
  {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(begun.empty());
  }
  second.reset();
  third.join();
  fourth.join();
  EXPECT_EQ(begun, (std::vector<int>{3, 4}));
}

TEST(TurnsTest, NobodyWaitsOnceTheAgentEnds) {
  Turns turns(1);
  const absl::StatusOr<Turns::Turn> held = turns.Take();
  std::thread waiting([&] { EXPECT_TRUE(absl::IsUnavailable(turns.Take().status())); });
  while (turns.waiting() < 1) std::this_thread::yield();
  turns.Stop();
  waiting.join();
  EXPECT_TRUE(absl::IsUnavailable(turns.Take().status()));
}

}  // namespace
}  // namespace muster::uploads
