#include "broker/engine/change_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ChangeTailTest : public testing::Test {
 protected:
  static TailEntry Entry(uint64_t sequence, uint64_t job = 1, size_t bytes = 10) {
    return {.sequence = sequence,
            .job = job,
            .has_ended = false,
            .change = std::make_shared<const std::string>(bytes, 'x'),
            .before = nullptr};
  }
  static std::vector<uint64_t> Sequences(const ChangeTail::Read& read) {
    std::vector<uint64_t> sequences;
    for (const TailEntry& entry : read.entries) sequences.push_back(entry.sequence);
    return sequences;
  }
  ChangeTail::Read ReadAfter(const ChangeTail& tail, uint64_t sequence, size_t max_entries = 100,
                             size_t max_bytes = 1 << 20) {
    return tail.ReadAfter(sequence, max_entries, max_bytes, [](const TailEntry&) { return true; });
  }

  std::chrono::steady_clock::time_point now_;
};

TEST_F(ChangeTailTest, GivesWhatCameAfterASequence) {
  ChangeTail tail({}, 100);
  EXPECT_EQ(tail.last(), 100u);
  tail.Append({Entry(101), Entry(103)}, 103);
  tail.Append({Entry(107)}, 107);
  EXPECT_THAT(Sequences(ReadAfter(tail, 100)), ElementsAre(101, 103, 107));
  EXPECT_THAT(Sequences(ReadAfter(tail, 102)), ElementsAre(103, 107));
  EXPECT_THAT(Sequences(ReadAfter(tail, 103)), ElementsAre(107));
  EXPECT_THAT(Sequences(ReadAfter(tail, 107)), IsEmpty());
  EXPECT_EQ(ReadAfter(tail, 107).up_to, 107u);
  EXPECT_EQ(ReadAfter(tail, 999).up_to, 999u) << "of the future";
  EXPECT_FALSE(ReadAfter(tail, 100).is_behind);
  EXPECT_TRUE(ReadAfter(tail, 99).is_behind) << "there may have been a change before this process";
}

TEST_F(ChangeTailTest, AReadHasABoundAndSaysHowFarItCame) {
  ChangeTail tail({}, 0);
  tail.Append({Entry(1), Entry(2), Entry(3, 2), Entry(4)}, 4);
  auto read = ReadAfter(tail, 0, 2);
  EXPECT_THAT(Sequences(read), ElementsAre(1, 2));
  EXPECT_TRUE(read.has_more);
  EXPECT_EQ(read.up_to, 2u);
  read = ReadAfter(tail, 0, 100, 29);
  EXPECT_THAT(Sequences(read), ElementsAre(1, 2)) << "20 bytes";
  EXPECT_EQ(read.up_to, 2u);
  read = ReadAfter(tail, 2, 100, 5);
  EXPECT_THAT(Sequences(read), ElementsAre(3)) << "a larger one comes alone";
  read = tail.ReadAfter(0, 3, 100, [](const TailEntry& entry) { return entry.job == 2; });
  EXPECT_THAT(Sequences(read), ElementsAre(3));
  EXPECT_TRUE(read.has_more);
  EXPECT_EQ(read.up_to, 3u) << "what was looked at and not wanted is behind, too";
}

TEST_F(ChangeTailTest, TheOldestChangesGoWhenThereAreTooMany) {
  ChangeTail tail({.max_entries = 3}, 0);
  for (uint64_t i = 1; i <= 5; ++i) tail.Append({Entry(10 * i)}, 10 * i);
  EXPECT_THAT(Sequences(ReadAfter(tail, 20)), ElementsAre(30, 40, 50));
  EXPECT_THAT(Sequences(ReadAfter(tail, 25)), ElementsAre(30, 40, 50));
  EXPECT_TRUE(ReadAfter(tail, 19).is_behind);
}

TEST_F(ChangeTailTest, TheOldestChangesGoWhenTheyAreTooLarge) {
  ChangeTail tail({.max_entries = 1000, .max_bytes = 10'000}, 0);
  for (uint64_t i = 1; i <= 100; ++i) tail.Append({Entry(i, 1, 1000)}, i);
  EXPECT_LE(tail.bytes(), 10'000u);
  EXPECT_GE(tail.bytes(), 8'000u);
  EXPECT_TRUE(ReadAfter(tail, 1).is_behind);
  EXPECT_THAT(Sequences(ReadAfter(tail, 98)), ElementsAre(99, 100));
  tail.Append({Entry(101, 1, 20'000)}, 101);
  EXPECT_EQ(tail.bytes(), 0u) << "one that is too large alone is in the store";
  EXPECT_TRUE(ReadAfter(tail, 100).is_behind);
  EXPECT_FALSE(ReadAfter(tail, 101).is_behind);
}

TEST_F(ChangeTailTest, IsWantedWhileSomebodyWatchesAndForAWhileAfter) {
  ChangeTail tail({.keep_unwatched = std::chrono::seconds(60)}, 0, [this] { return now_; });
  EXPECT_FALSE(tail.IsWanted());
  tail.Join();
  tail.Join();
  tail.Leave();
  now_ += std::chrono::hours(1);
  EXPECT_TRUE(tail.IsWanted());
  tail.Leave();
  now_ += std::chrono::seconds(59);
  EXPECT_TRUE(tail.IsWanted());
  now_ += std::chrono::seconds(1);
  EXPECT_FALSE(tail.IsWanted());
}

TEST_F(ChangeTailTest, WhatNobodyWantedIsInTheStoreAlone) {
  ChangeTail tail({}, 0);
  tail.Append({Entry(1)}, 1);
  tail.Skip(5);
  EXPECT_EQ(tail.bytes(), 0u);
  EXPECT_TRUE(ReadAfter(tail, 0).is_behind);
  EXPECT_TRUE(ReadAfter(tail, 4).is_behind);
  EXPECT_FALSE(ReadAfter(tail, 5).is_behind);
}

}  // namespace
}  // namespace muster::broker
