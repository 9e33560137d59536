#include "broker/core/waiting_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace muster::core {
namespace {

class WaitingTreeTest : public ::testing::Test {
 protected:
  WaitingTreeTest() {
    a_.saved.name = "a";
    b_.saved.name = "b";
  }

  Group* Add(const std::string& project, uint32_t nodes, ClusterSet fits) {
    Requirements requirements;
    requirements.project = project;
    requirements.nodes = nodes;
    Group* group = groups_.Add(std::move(requirements));
    tree_.Join(group, std::move(fits));
    return group;
  }
  void Push(Group* group, Turn turn) {
    group->line.Push(turn);
    tree_.Refresh(group);
  }
  void Remove(Group* group, Turn turn) {
    group->line.Remove(turn);
    tree_.Refresh(group);
  }
  // Null: there is none.
  const Lane* LaneOf(const ClusterSet& fits) const {
    const Lane* found = nullptr;
    tree_.ForEachLane([&](const Lane* lane) {
      if (lane->fits == fits) found = lane;
    });
    return found;
  }

  Cluster a_, b_;
  Groups groups_;
  WaitingTree tree_;
};

TEST_F(WaitingTreeTest, TheFirstTurnOfALaneIsThatOfAllProjects) {
  Group* vision = Add("vision", 1, {&a_});
  Group* wide = Add("vision", 4, {&a_});
  Group* speech = Add("speech", 1, {&a_});
  Push(vision, {0, 7});
  Push(speech, {0, 5});
  Push(wide, {0, 6});
  const Lane* lane = LaneOf({&a_});
  ASSERT_NE(lane, nullptr);
  EXPECT_EQ(lane->projects.size(), 2u);
  EXPECT_EQ(lane->first_group(), speech);
  Remove(speech, {0, 5});
  EXPECT_EQ(lane->first_group(), wide);
  Push(vision, {3, 8});
  EXPECT_EQ(lane->first_turn(), (Turn{3, 8}));
  EXPECT_EQ(lane->first_group(), vision);
}

TEST_F(WaitingTreeTest, AGroupMovesWithItsJobs) {
  Group* one = Add("vision", 1, {&a_});
  Group* other = Add("vision", 2, {&a_});
  Push(one, {0, 1});
  Push(other, {0, 2});
  tree_.Join(one, {&a_, &b_});
  EXPECT_EQ(LaneOf({&a_})->first_group(), other);
  EXPECT_EQ(LaneOf({&a_, &b_})->first_turn(), (Turn{0, 1}));
  tree_.Join(other, {&a_, &b_});
  // A round may still point to it.
  ASSERT_NE(LaneOf({&a_}), nullptr);
  EXPECT_TRUE(LaneOf({&a_})->empty());
  tree_.DropLanesWithoutGroups();
  EXPECT_EQ(LaneOf({&a_}), nullptr);
  tree_.Leave(one);
  EXPECT_EQ(LaneOf({&a_, &b_})->first_group(), other);
}

TEST_F(WaitingTreeTest, WhateverComesAndGoesTheSmallestTurnIsFirst) {
  std::mt19937_64 random(1);
  std::vector<Group*> groups;
  for (uint32_t i = 0; i < 20; ++i) groups.push_back(Add(i % 3 == 0 ? "x" : "y", i + 1, {&a_}));
  std::map<Turn, Group*> model;
  uint64_t next_job = 1;
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || random() % 5 < 2) {
      Group* group = groups[random() % groups.size()];
      const Turn turn{static_cast<int32_t>(random() % 3), next_job++};
      Push(group, turn);
      model.emplace(turn, group);
    } else {
      auto at = std::next(model.begin(),
                          static_cast<long>(random() % std::min<size_t>(model.size(), 10)));
      Remove(at->second, at->first);
      model.erase(at);
    }
    const Lane* lane = LaneOf({&a_});
    ASSERT_EQ(lane->empty(), model.empty());
    if (model.empty()) continue;
    ASSERT_EQ(lane->first_turn(), model.begin()->first);
    ASSERT_EQ(lane->first_group(), model.begin()->second);
  }
}

}  // namespace
}  // namespace muster::core
