// Tests the order in which one host is given its commands.
#include "agents/machines/remote/command_queue.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using ::testing::ElementsAre;

RankStart StartOf(const std::string& key) {
  RankStart start;
  start.run_key = key;
  return start;
}
RankStop StopOf(const std::string& key) {
  return {.run_key = key, .rank = 0, .directory = "/runs/" + key};
}

TEST(CommandQueueTest, EndsComeFirstAndCleaningLast) {
  CommandQueue queue;
  queue.Sweep();
  queue.Clean("/runs/a", false);
  queue.Push(StartOf("b"));
  queue.Push(StopOf("c"));
  EXPECT_TRUE(std::holds_alternative<RankStop>(queue.Pop()));
  EXPECT_TRUE(std::holds_alternative<RankStart>(queue.Pop()));
  EXPECT_TRUE(std::holds_alternative<CleanCommand>(queue.Pop()));
  EXPECT_FALSE(queue.IsEmpty());
  EXPECT_TRUE(std::holds_alternative<SweepCommand>(queue.Pop()));
  EXPECT_TRUE(queue.IsEmpty());
}

TEST(CommandQueueTest, AStartThatWaitsIsTakenBackByTheStopOfItsRank) {
  CommandQueue queue;
  queue.Push(StartOf("a"));
  queue.Push(StartOf("b"));
  EXPECT_EQ(queue.Push(StopOf("a"))->run_key, "a");
  EXPECT_FALSE(queue.Push(StopOf("c")).has_value());
  queue.Pop();
  queue.Pop();
  EXPECT_EQ(std::get<RankStart>(queue.Pop()).run_key, "b");
  EXPECT_TRUE(queue.IsEmpty());
}

RankStart BringingStartOf(const std::string& key) {
  auto job = std::make_shared<v1::JobSpec>();
  job->add_uploads();
  RankStart start = StartOf(key);
  start.job = std::move(job);
  return start;
}

TEST(CommandQueueTest, FilesAreLaidOutBesideTheCommandsAndBeforeTheStart) {
  CommandQueue queue;
  queue.Push(BringingStartOf("a"));
  EXPECT_TRUE(queue.IsEmpty());
  ASSERT_TRUE(queue.HasLayout());
  RankStart start = queue.BeginLayout();
  EXPECT_FALSE(queue.HasLayout());
  EXPECT_FALSE(queue.Push(StopOf("b")).has_value());
  EXPECT_TRUE(std::holds_alternative<RankStop>(queue.Pop()));
  EXPECT_TRUE(queue.EndLayout());
  start.is_prepared = true;
  queue.Push(start);
  EXPECT_FALSE(queue.HasLayout());
  EXPECT_EQ(std::get<RankStart>(queue.Pop()).run_key, "a");
}

TEST(CommandQueueTest, AStopIsGivenAtOnceAndItsStartNoMoreWhoseFilesAreBeingLaidOut) {
  CommandQueue queue;
  queue.Push(BringingStartOf("a"));
  queue.BeginLayout();
  EXPECT_FALSE(queue.Push(StopOf("a")).has_value()) << "it is answered when the layout ends";
  EXPECT_TRUE(std::holds_alternative<RankStop>(queue.Pop()));
  EXPECT_FALSE(queue.IsLayoutWanted());
  EXPECT_FALSE(queue.EndLayout());
  queue.Push(BringingStartOf("b"));
  queue.BeginLayout();
  EXPECT_TRUE(queue.EndLayout()) << "the stop was another's";
}

TEST(CommandQueueTest, HowMuchOfItsFilesWasSentIsKnownUntilTheyAreLaidOut) {
  CommandQueue queue;
  queue.Push(BringingStartOf("a"));
  EXPECT_EQ(queue.LayoutOf("a", 0)->of, 0u);
  EXPECT_FALSE(queue.LayoutOf("a", 1).has_value());
  RankStart start = queue.BeginLayout();
  queue.NoteSent({.bytes = 3, .of = 10});
  EXPECT_EQ(queue.LayoutOf("a", 0)->bytes, 3u);
  // A later step goes on from there.
  start.sent = *queue.LayoutOf("a", 0);
  queue.EndLayout();
  EXPECT_FALSE(queue.LayoutOf("a", 0).has_value());
  queue.Push(start);
  EXPECT_EQ(queue.LayoutOf("a", 0)->bytes, 3u);
  queue.BeginLayout();
  EXPECT_EQ(queue.LayoutOf("a", 0)->of, 10u);
}

TEST(CommandQueueTest, AStartWhoseFilesWaitIsTakenBackByTheStopOfItsRank) {
  CommandQueue queue;
  queue.Push(BringingStartOf("a"));
  EXPECT_EQ(queue.Push(StopOf("a"))->run_key, "a");
  EXPECT_FALSE(queue.HasLayout());
}

TEST(CommandQueueTest, RunsAreCleanedTogetherThoseWithTheirLogsApart) {
  CommandQueue queue;
  queue.Clean("/runs/a", false);
  queue.Clean("/runs/b", true);
  queue.Clean("/runs/c", false);
  queue.Clean("/runs/a", false);
  const CleanCommand first = std::get<CleanCommand>(queue.Pop());
  EXPECT_THAT(first.directories, ElementsAre("/runs/a", "/runs/c"));
  EXPECT_FALSE(first.logs);
  const CleanCommand second = std::get<CleanCommand>(queue.Pop());
  EXPECT_THAT(second.directories, ElementsAre("/runs/b"));
  EXPECT_TRUE(second.logs);
}

TEST(CommandQueueTest, StartsWithoutEndDoNotKeepRunsFromBeingCleaned) {
  CommandQueue queue;
  for (size_t i = 0; i < kCleanBatch; ++i) queue.Clean(fmt::format("/runs/{}", i), false);
  queue.Push(StartOf("b"));
  EXPECT_EQ(std::get<CleanCommand>(queue.Pop()).directories.size(), kCleanBatch);
  EXPECT_TRUE(std::holds_alternative<RankStart>(queue.Pop()));
}

TEST(CommandQueueTest, WhatTheHostCouldNotBeToldWaitsUntilItAnswers) {
  CommandQueue queue;
  queue.Clean("/runs/a", true);
  queue.Defer(std::get<CleanCommand>(queue.Pop()));
  EXPECT_TRUE(queue.IsEmpty());
  queue.Resume();
  EXPECT_TRUE(std::get<CleanCommand>(queue.Pop()).logs);
}

TEST(CommandQueueTest, WhatIsToBeCleanedHasABound) {
  CommandQueue queue;
  for (size_t i = 0; i < kMaxCleaning + 10; ++i) queue.Clean(fmt::format("/runs/{}", i), false);
  size_t count = 0;
  while (!queue.IsEmpty()) count += std::get<CleanCommand>(queue.Pop()).directories.size();
  EXPECT_EQ(count, kMaxCleaning);
}

}  // namespace
}  // namespace muster::machines
