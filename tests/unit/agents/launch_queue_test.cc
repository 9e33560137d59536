// The order of launches, and how many begin at once.
#include "agents/core/launch_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::agents {
namespace {

// Takes runs until there are none, each of which begins.
std::string BeginAll(LaunchQueue* queue) {
  std::string begun;
  for (auto keys = queue->Take(); !keys.empty(); keys = queue->Take()) {
    for (const std::string& key : keys) {
      queue->Begin(key.starts_with("file"));
      begun += key + " ";
    }
  }
  return begun;
}

void Add(LaunchQueue* queue, uint64_t order, const std::string& key) {
  queue->Add(order, key, key.starts_with("file"));
}

TEST(LaunchQueueTest, RunsBeginInTheOrderOfTheirArrivalAsFarAsThereAreLaunches) {
  LaunchQueue queue(2, 0);
  Add(&queue, 3, "c");
  Add(&queue, 1, "file-a");
  Add(&queue, 2, "b");
  EXPECT_EQ(BeginAll(&queue), "file-a b ");
  queue.End(/*has_files=*/true);
  EXPECT_EQ(BeginAll(&queue), "c ");
  EXPECT_EQ(queue.launches(), 2);
}

TEST(LaunchQueueTest, ThoseWithFilesKeepToALineOfTheirOwnAndHoldUpNoOthers) {
  LaunchQueue queue(3, 1);
  Add(&queue, 1, "file-a");
  Add(&queue, 2, "file-b");
  Add(&queue, 3, "c");
  Add(&queue, 4, "d");
  Add(&queue, 5, "e");
  Add(&queue, 6, "f");
  EXPECT_EQ(BeginAll(&queue), "file-a c d e ");
  EXPECT_EQ(queue.size(), 2u);
  queue.End(/*has_files=*/false);
  EXPECT_EQ(BeginAll(&queue), "f ");
  queue.End(/*has_files=*/true);
  EXPECT_EQ(BeginAll(&queue), "file-b ");
}

TEST(LaunchQueueTest, LaunchesOfRunsFromElsewhereCount) {
  LaunchQueue queue(1, 1);
  queue.Begin(/*has_files=*/true);  // launched again after a look-up
  queue.Begin(/*has_files=*/true);
  Add(&queue, 1, "file-a");
  EXPECT_EQ(BeginAll(&queue), "");
  queue.End(/*has_files=*/true);
  EXPECT_EQ(BeginAll(&queue), "");
  queue.End(/*has_files=*/true);
  EXPECT_EQ(BeginAll(&queue), "file-a ");
}

TEST(LaunchQueueTest, WhatIsTakenAwayIsNotLaunched) {
  LaunchQueue queue(5, 5);
  Add(&queue, 1, "file-a");
  Add(&queue, 2, "b");
  EXPECT_TRUE(queue.Contains(1));
  queue.Erase(1);
  EXPECT_FALSE(queue.Contains(1));
  EXPECT_EQ(BeginAll(&queue), "b ");
}

TEST(LaunchQueueTest, RunsThatBelongTogetherBeginTogetherHoweverManyTheyAre) {
  LaunchQueue queue(2, 0);
  queue.AddTogether({{2, "b"}, {3, "c"}, {5, "e"}}, /*has_files=*/false);
  Add(&queue, 1, "a");
  Add(&queue, 4, "d");
  queue.Erase(3);
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(BeginAll(&queue), "a b e ") << "in their places, and nothing between them";
  EXPECT_EQ(queue.launches(), 3);
  queue.Erase(4);
  queue.AddTogether({{6, "f"}, {7, "g"}}, /*has_files=*/false);
  queue.Erase(6);
  queue.Erase(7);
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace muster::agents
