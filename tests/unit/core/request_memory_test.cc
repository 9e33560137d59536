#include "broker/core/request_memory.h"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'750'000'000);

RequestMemory::Entry Entry(uint64_t job) {
  return {RequestKeyOf("default", std::to_string(job)), 7, job};
}

TEST(RequestMemory, FindsWhatWasAdded) {
  RequestMemory memory;
  for (uint64_t job = 1; job <= 10'000; ++job) memory.Add(Entry(job));
  for (uint64_t job = 1; job <= 10'000; ++job) {
    const RequestMemory::Entry* found = memory.Find(Entry(job).key);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->job, job);
  }
  EXPECT_EQ(memory.Find(Entry(10'001).key), nullptr);
}

TEST(RequestMemory, ForgetsOnlyWhatEndedBeforeTheCutoff) {
  RequestMemory memory;
  memory.Add(Entry(1));
  memory.JobEnded(memory.Add(Entry(2)), kStart);
  memory.JobEnded(memory.Add(Entry(3)), kStart + absl::Seconds(1));
  memory.Expire(kStart, 100);
  EXPECT_EQ(memory.size(), 3u);
  memory.Expire(kStart + absl::Seconds(1), 100);
  EXPECT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory.Find(Entry(2).key), nullptr);
  EXPECT_NE(memory.Find(Entry(3).key), nullptr);
}

TEST(RequestMemory, ExpiresAtMostSoMany) {
  RequestMemory memory;
  for (uint64_t job = 1; job <= 10; ++job) memory.JobEnded(memory.Add(Entry(job)), kStart);
  memory.Expire(absl::InfiniteFuture(), 4);
  EXPECT_EQ(memory.size(), 6u);
}

TEST(RequestMemory, AFreedPlaceIsUsedAgain) {
  RequestMemory memory;
  const RequestMemory::Slot first = memory.Add(Entry(1));
  memory.JobEnded(first, kStart);
  memory.Expire(kStart + absl::Seconds(1), 1);
  EXPECT_EQ(memory.Add(Entry(2)), first);
  EXPECT_EQ(memory.Find(Entry(1).key), nullptr);
  EXPECT_EQ(memory.Find(Entry(2).key)->job, 2u);
}

TEST(RequestMemory, ProjectAndRequestIdAreToldApart) {
  EXPECT_FALSE(RequestKeyOf("a", "bc") == RequestKeyOf("ab", "c"));
}

}  // namespace
}  // namespace muster::core
