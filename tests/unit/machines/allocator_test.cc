// Allocator and RunQueue, together and against a model.
#include "agents/machines/allocator.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "agents/machines/run_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace muster::machines {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Capacity TestCapacity() {
  return {.cores = 8,
          .memory_bytes = 1000,
          .gpus = {{0, "a100", "GPU-0"},
                   {1, "a100", "GPU-1"},
                   {2, "h100", "GPU-2"},
                   {3, "h100", "GPU-3"},
                   {4, "h100", "GPU-4"}}};
}

TEST(Allocator, GivesWhatIsAskedForUntilNothingIsFree) {
  Allocator allocator(TestCapacity());
  EXPECT_TRUE(allocator.Allocate({.cores = 5, .memory_bytes = 10}).has_value());
  EXPECT_FALSE(allocator.Allocate({.cores = 4}).has_value());
  EXPECT_EQ(allocator.Shortage({.cores = 4}), "4 of 8 cores");
  EXPECT_TRUE(allocator.Allocate({.cores = 3}).has_value());
  EXPECT_FALSE(allocator.Allocate({.cores = 1}).has_value());
}

TEST(Allocator, MemoryIsNeverOversubscribed) {
  Allocator allocator(TestCapacity());
  EXPECT_TRUE(allocator.Allocate({.cores = 1, .memory_bytes = 600}).has_value());
  EXPECT_FALSE(allocator.Allocate({.cores = 1, .memory_bytes = 401}).has_value());
  EXPECT_TRUE(allocator.Allocate({.cores = 1, .memory_bytes = 400}).has_value());
}

TEST(Allocator, GpusAreGivenExactlyAndOnce) {
  Allocator allocator(TestCapacity());
  const auto first = allocator.Allocate({.cores = 1, .gpu_type = "h100", .gpus = 2});
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(first->gpus, ElementsAre(2, 3));
  EXPECT_FALSE(allocator.Allocate({.cores = 1, .gpu_type = "h100", .gpus = 2}).has_value());
  EXPECT_EQ(allocator.Shortage({.cores = 1, .gpu_type = "h100", .gpus = 2}), "2 h100 GPUs");
  allocator.Release(*first);
  EXPECT_TRUE(allocator.Allocate({.cores = 1, .gpu_type = "h100", .gpus = 3}).has_value());
}

TEST(Allocator, GpusOfAnyTypeAreAllOfOneAndSpareTheBiggerStock) {
  Allocator allocator(TestCapacity());
  EXPECT_THAT(allocator.Allocate({.cores = 1, .gpus = 2})->gpus, ElementsAre(0, 1));
  EXPECT_THAT(allocator.Allocate({.cores = 1, .gpus = 3})->gpus, ElementsAre(2, 3, 4));
  EXPECT_TRUE(allocator.Refusal({.cores = 1, .gpus = 4}).has_value());
}

TEST(Allocator, RefusesWhatTheWholeMachineDoesNotHave) {
  const Allocator allocator(TestCapacity());
  EXPECT_FALSE(allocator.Refusal({.cores = 8, .memory_bytes = 1000, .gpu_type = "h100", .gpus = 3})
                   .has_value());
  EXPECT_THAT(*allocator.Refusal({.cores = 9}),
              HasSubstr("9 cores were asked for; the machine has 8"));
  EXPECT_THAT(*allocator.Refusal({.cores = 1, .memory_bytes = 1001}), HasSubstr("memory"));
  EXPECT_THAT(*allocator.Refusal({.cores = 1, .gpu_type = "v100", .gpus = 1}),
              HasSubstr("2 a100, 3 h100"));
}

TEST(Allocator, RestoresMoreThanAShrunkenMachineHas) {
  Allocator allocator({.cores = 2, .memory_bytes = 10, .gpus = {}});
  const Allocation big = {.cores = 4, .memory_bytes = 20, .gpus = {7}};
  allocator.Restore(big);
  EXPECT_FALSE(allocator.Allocate({.cores = 1}).has_value());
  allocator.Release(big);
  EXPECT_TRUE(allocator.Allocate({.cores = 2, .memory_bytes = 10}).has_value());
}

Request AnyRequest() {
  return {.cores = *rc::gen::inRange<uint32_t>(1, 9),
          .memory_bytes = *rc::gen::inRange<uint64_t>(0, 1001),
          .gpu_type = *rc::gen::element<std::string>("", "a100", "h100"),
          .gpus = *rc::gen::inRange<uint32_t>(0, 3)};
}

// What runs hold together, counted anew.
void CheckNotOversubscribed(const std::vector<ReadyRun>& running) {
  const Capacity capacity = TestCapacity();
  uint64_t cores = 0;
  uint64_t memory = 0;
  std::vector<uint32_t> gpus;
  for (const ReadyRun& ready : running) {
    RC_ASSERT(ready.allocation.cores == ready.run.request.cores);
    RC_ASSERT(ready.allocation.memory_bytes == ready.run.request.memory_bytes);
    RC_ASSERT(ready.allocation.gpus.size() == ready.run.request.gpus);
    cores += ready.allocation.cores;
    memory += ready.allocation.memory_bytes;
    for (const uint32_t index : ready.allocation.gpus) {
      const std::string& type = ready.run.request.gpu_type;
      const bool right_type = type.empty() || capacity.gpus[index].type == type;
      RC_ASSERT(right_type);
      gpus.push_back(index);
    }
  }
  std::sort(gpus.begin(), gpus.end());
  RC_ASSERT(cores <= capacity.cores);
  RC_ASSERT(memory <= capacity.memory_bytes);
  RC_ASSERT(std::adjacent_find(gpus.begin(), gpus.end()) == gpus.end());
}

RC_GTEST_PROP(Queue, NeverOversubscribesAndStartsInOrder, ()) {
  Allocator allocator(TestCapacity());
  RunQueue queue;
  std::vector<std::pair<int, uint64_t>> waiting;  // the model: priority negated, arrival
  std::vector<ReadyRun> running;
  uint64_t next_order = 1;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
  for (const int step : steps) {
    if (step <= 1) {
      const int priority = *rc::gen::inRange(-1, 2);
      waiting.emplace_back(-priority, next_order);
      std::sort(waiting.begin(), waiting.end());
      queue.Push({.run_key = std::to_string(next_order),
                  .priority = priority,
                  .order = next_order,
                  .request = AnyRequest()});
      ++next_order;
    } else if (step == 2 && !running.empty()) {
      const size_t victim = *rc::gen::inRange<size_t>(0, running.size());
      allocator.Release(running[victim].allocation);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(victim));
    } else if (step == 3 && !waiting.empty()) {
      const size_t victim = *rc::gen::inRange<size_t>(0, waiting.size());
      RC_ASSERT(queue.Remove(std::to_string(waiting[victim].second)).has_value());
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    while (std::optional<ReadyRun> ready = queue.PopReady(&allocator)) {
      RC_ASSERT(!waiting.empty());
      RC_ASSERT(ready->run.order == waiting.front().second);
      waiting.erase(waiting.begin());
      running.push_back(std::move(*ready));
      CheckNotOversubscribed(running);
    }
    // Nothing that fits is left waiting.
    RC_ASSERT(queue.size() == waiting.size());
    const bool starved = !waiting.empty() && allocator.Shortage(queue.Front()->request).empty();
    RC_ASSERT(!starved);
  }
  for (const ReadyRun& ready : running) allocator.Release(ready.allocation);
  RC_ASSERT(allocator.Allocate({.cores = 8, .memory_bytes = 1000, .gpu_type = "h100", .gpus = 3})
                .has_value());
}

TEST(Queue, AHigherPriorityStartsFirstWheneverItCame) {
  Allocator allocator(TestCapacity());
  RunQueue queue;
  queue.Push({.run_key = "low", .priority = -5, .order = 1, .request = {.cores = 1}});
  queue.Push({.run_key = "first", .order = 2, .request = {.cores = 1}});
  queue.Push({.run_key = "second", .order = 3, .request = {.cores = 1}});
  queue.Push({.run_key = "high", .priority = 1000, .order = 4, .request = {.cores = 1}});
  for (const char* run_key : {"high", "first", "second", "low"}) {
    EXPECT_EQ(queue.PopReady(&allocator)->run.run_key, run_key);
  }
}

TEST(Queue, TakesBackARunAtItsOldPlace) {
  Allocator allocator(TestCapacity());
  RunQueue queue;
  queue.Push({.run_key = "b", .order = 2, .request = {.cores = 1}});
  queue.Push({.run_key = "a", .order = 1, .request = {.cores = 1}});
  EXPECT_EQ(queue.Front()->run_key, "a");
  EXPECT_EQ(queue.PopReady(&allocator)->run.run_key, "a");
  EXPECT_FALSE(queue.Remove("a").has_value());
  EXPECT_TRUE(queue.Contains("b"));
}

}  // namespace
}  // namespace muster::machines
