#include "broker/core/waiting_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "broker/core/service_turn.h"

namespace muster::core {
namespace {

class WaitingTreeTest : public ::testing::Test {
 protected:
  WaitingTreeTest() {
    a_.saved.name = "a";
    b_.saved.name = "b";
  }

  Group* Add(const std::string& project, uint32_t nodes, ClusterSet fits,
             const std::string& user = "ada") {
    Requirements requirements;
    requirements.project = project;
    requirements.nodes = nodes;
    const UserIndex index = accounts_.Open(project, user)->user;
    Group* group = groups_.Add(std::move(requirements), index);
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
  // Returns the list of the project that is served next; null if none waits.
  const ProjectQueue::List* FirstOf(const ClusterSet& fits) const {
    const ProjectQueue* first = nullptr;
    for (const auto& [name, project] : LaneOf(fits)->projects) {
      if (project.open.empty()) continue;
      if (first == nullptr ||
          ServiceTurnOf(project, project.open) < ServiceTurnOf(*first, first->open))
        first = &project;
    }
    return first == nullptr ? nullptr : &first->open;
  }
  // Makes a project with this much use behind it.
  void Use(const std::string& project, const std::string& user, double used) {
    uses_.push_back({.project = project, .user = user, .used = {used, 0, 0}, .at = now_});
  }
  void TurnSharesOn(contract::ProjectShares shares) {
    shares.are_on = true;
    accounts_.Restore(uses_);
    accounts_.SetNow(now_);
    accounts_.SetShares(std::make_shared<const contract::ProjectShares>(std::move(shares)));
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'750'000'000);
  StoredUses uses_;
  Cluster a_, b_;
  Groups groups_;
  Accounts accounts_{absl::Hours(24)};
  WaitingTree tree_{&accounts_};
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
  EXPECT_EQ(FirstOf({&a_})->first_group(), speech);
  Remove(speech, {0, 5});
  EXPECT_EQ(FirstOf({&a_})->first_group(), wide);
  Push(vision, {3, 8});
  EXPECT_EQ(FirstOf({&a_})->first_turn(), (Turn{3, 8}));
  EXPECT_EQ(FirstOf({&a_})->first_group(), vision);
}

TEST_F(WaitingTreeTest, ABlockedQueueStandsInAListOfItsOwnUntilItHasNoJobs) {
  Group* small = Add("vision", 1, {&a_});
  Group* large = Add("vision", 4, {&a_});
  Push(large, {0, 5});
  Push(small, {0, 6});
  const ProjectQueue& project = LaneOf({&a_})->projects.at("vision");
  tree_.Block(large->queue);
  EXPECT_EQ(FirstOf({&a_})->first_group(), small);
  EXPECT_EQ(project.blocked.first_group(), large);
  ASSERT_EQ(tree_.blocked().size(), 1u);
  EXPECT_EQ(tree_.blocked().begin()->first.nodes, 4u);
  Push(large, {-1, 8});
  EXPECT_EQ(project.blocked.first_turn(), (Turn{0, 5})) << "what comes later waits behind it";
  Push(large, {1, 7});
  EXPECT_EQ(FirstOf({&a_})->first_turn(), (Turn{1, 7})) << "another one is first, and looked at";
  tree_.Block(large->queue);
  Remove(large, {1, 7});
  EXPECT_TRUE(project.blocked.empty());
  Remove(large, {0, 5});
  Remove(large, {-1, 8});
  EXPECT_TRUE(tree_.blocked().empty());
  Push(large, {2, 8});
  EXPECT_EQ(FirstOf({&a_})->first_group(), large) << "it is looked at anew";
}

TEST_F(WaitingTreeTest, AGroupMovesWithItsJobs) {
  Group* one = Add("vision", 1, {&a_});
  Group* other = Add("vision", 2, {&a_});
  Push(one, {0, 1});
  Push(other, {0, 2});
  tree_.Join(one, {&a_, &b_});
  EXPECT_EQ(FirstOf({&a_})->first_group(), other);
  EXPECT_EQ(FirstOf({&a_, &b_})->first_turn(), (Turn{0, 1}));
  tree_.Join(other, {&a_, &b_});
  // A round may still point to it.
  ASSERT_NE(LaneOf({&a_}), nullptr);
  EXPECT_EQ(FirstOf({&a_}), nullptr);
  tree_.DropEmpty();
  EXPECT_EQ(LaneOf({&a_}), nullptr);
  tree_.Leave(one);
  EXPECT_EQ(FirstOf({&a_, &b_})->first_group(), other);
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
    const ProjectQueue::List* first = FirstOf({&a_});
    ASSERT_EQ(first == nullptr, model.empty());
    if (model.empty()) continue;
    ASSERT_EQ(first->first_turn(), model.begin()->first);
    ASSERT_EQ(first->first_group(), model.begin()->second);
  }
}

TEST_F(WaitingTreeTest, TheProjectThatHasUsedLessOfItsShareIsFirst) {
  Use("vision", "ada", 3000);
  Use("speech", "ada", 2000);
  contract::ProjectShares shares;
  shares.projects["vision"].weight = 2;
  TurnSharesOn(shares);
  Push(Add("speech", 1, {&a_}), {0, 1});
  Push(Add("vision", 1, {&a_}), {0, 2});
  EXPECT_EQ(FirstOf({&a_})->first_queue()->account->project->name, "vision")
      << "3000 of weight 2 is less than 2000 of 1";
  Push(Add("speech", 2, {&a_}), {1, 3});
  EXPECT_EQ(FirstOf({&a_})->first_queue()->account->project->name, "speech")
      << "priority comes first";
}

TEST_F(WaitingTreeTest, ProjectsOfOneParentCountTogetherAtFirst) {
  Use("cats", "ada", 1000);
  Use("dogs", "ada", 1200);
  Use("speech", "ada", 2000);
  contract::ProjectShares shares;
  shares.projects["cats"].parent = "vision";
  shares.projects["dogs"].parent = "vision";
  TurnSharesOn(shares);
  Push(Add("dogs", 1, {&a_}), {0, 1});
  Push(Add("cats", 1, {&a_}), {0, 2});
  EXPECT_EQ(FirstOf({&a_})->first_queue()->account->project->name, "cats");
  Push(Add("speech", 1, {&a_}), {0, 3});
  EXPECT_EQ(FirstOf({&a_})->first_queue()->account->project->name, "speech")
      << "cats and dogs have used 2200";
}

TEST_F(WaitingTreeTest, WithinAProjectTheUserWhoHasUsedLessIsFirst) {
  Use("vision", "ada", 1000);
  Use("vision", "bob", 900);
  TurnSharesOn({});
  Push(Add("vision", 1, {&a_}, "ada"), {0, 1});
  Push(Add("vision", 1, {&a_}, "bob"), {0, 2});
  EXPECT_EQ(FirstOf({&a_})->first_turn().job, 2u);
  Push(Add("vision", 2, {&a_}, "ada"), {1, 3});
  EXPECT_EQ(FirstOf({&a_})->first_turn().job, 3u) << "priority comes first";
}

TEST_F(WaitingTreeTest, UsesThatDecayKeepTheirOrder) {
  Use("vision", "ada", 1000);
  Use("speech", "ada", 999);
  TurnSharesOn({});
  Push(Add("vision", 1, {&a_}), {0, 1});
  Push(Add("speech", 1, {&a_}), {0, 2});
  accounts_.SetNow(now_ + absl::Hours(24 * 30));
  const double before = FirstOf({&a_})->first_queue()->account->project->score;
  Changes changes;
  accounts_.Refresh(&changes);
  EXPECT_NEAR(FirstOf({&a_})->first_queue()->account->project->score, before, 1e-9);
  EXPECT_EQ(FirstOf({&a_})->first_queue()->account->project->name, "speech");
}

}  // namespace
}  // namespace muster::core
