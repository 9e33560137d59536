#include "clients/cli/slurm/node_state.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::cli {
namespace {

// sinfo 22.05 itself showed these.
TEST(NodeStateTest, CompoundStatesAreOneWordWithAMark) {
  struct Case {
    const char* state;
    const char* whole;
    const char* brief;
  };
  const Case cases[] = {{"IDLE", "idle", "idle"},
                        {"IDLE+DRAIN", "drained", "drain"},
                        {"MIXED+DRAIN", "draining", "drng"},
                        {"ALLOCATED+DRAIN", "draining", "drng"},
                        {"idle+completing+drain", "draining", "drng"},
                        {"DOWN+DRAIN", "drained", "drain"},
                        {"DOWN*+DRAIN", "drained*", "drain*"},
                        {"DOWN*", "down*", "down*"},
                        {"down+not_responding", "down*", "down*"},
                        {"IDLE*", "idle*", "idle*"},
                        {"IDLE+COMPLETING", "completing", "comp"},
                        {"ALLOCATED+COMPLETING", "allocated+", "alloc+"},
                        {"ALLOCATED", "allocated", "alloc"},
                        {"MIXED+PLANNED", "mixed-", "mix-"},
                        {"IDLE+PLANNED", "planned", "plnd"},
                        {"IDLE+RESERVED", "reserved", "resv"},
                        {"MIXED+RESERVED", "mixed", "mix"},
                        {"IDLE+MAINTENANCE+RESERVED", "maint", "maint"},
                        {"IDLE+DRAIN+MAINTENANCE", "drained$", "drain$"},
                        {"MIXED+MAINTENANCE", "mixed$", "mix$"},
                        {"IDLE+CLOUD+POWERED_DOWN", "idle~", "idle~"},
                        {"IDLE+POWERING_UP", "idle#", "idle#"},
                        {"IDLE+POWERING_DOWN", "idle%", "idle%"},
                        {"IDLE+POWER_DOWN", "idle!", "idle!"},
                        {"IDLE+REBOOT_REQUESTED", "reboot", "boot"},
                        {"DOWN+REBOOT_ISSUED", "reboot^", "boot^"},
                        {"MIXED+REBOOT_REQUESTED", "mixed@", "mix@"},
                        {"IDLE+FAIL", "fail", "fail"},
                        {"MIXED+FAIL", "fail", "fail"},
                        {"ALLOCATED+FAIL", "failing", "failg"},
                        {"failing", "failing", "failg"},
                        {"IDLE+INVALID_REG", "inval", "inval"},
                        {"UNKNOWN", "unknown", "unk"},
                        {"FUTURE", "future", "futr"},
                        {"drng", "draining", "drng"},
                        {"something else", "something else", "something else"}};
  for (const Case& one : cases) {
    const NodeState state = NodeState::Parse(one.state);
    EXPECT_EQ(state.Long(), one.whole) << one.state;
    EXPECT_EQ(state.Short(), one.brief) << one.state;
  }
}

TEST(NodeStateTest, StatesAreAskedForAsOfSinfo) {
  const auto takes = [](const char* asked, const char* state) {
    return NodeState::Parse(state).IsAskedBy(asked).value_or(false);
  };
  EXPECT_TRUE(takes("drain", "IDLE+DRAIN") && takes("drain", "MIXED+DRAIN"));
  EXPECT_TRUE(takes("drained", "IDLE+DRAIN") && !takes("drained", "MIXED+DRAIN"));
  EXPECT_TRUE(takes("DRNG", "MIXED+DRAIN") && !takes("draining", "IDLE+DRAIN"));
  EXPECT_TRUE(takes("idle", "IDLE+DRAIN")) << "sinfo looks at the base state";
  EXPECT_TRUE(takes("alloc", "MIXED+DRAIN") && !takes("mix", "MIXED+DRAIN"));
  EXPECT_TRUE(takes("mixed", "MIXED") && takes("alloc", "MIXED"));
  EXPECT_FALSE(takes("alloc", "IDLE") || takes("alloc", "IDLE+DRAIN"));
  EXPECT_TRUE(takes("a", "ALLOCATED") && takes("d", "DOWN") && !takes("d", "IDLE+DRAIN"));
  EXPECT_TRUE(takes("dr", "IDLE+DRAIN") && takes("drn", "MIXED+DRAIN"));
  EXPECT_FALSE(takes("drn", "IDLE+DRAIN"));
  EXPECT_TRUE(takes("idle&no_respond", "IDLE*") && !takes("idle&no_respond", "IDLE"));
  EXPECT_TRUE(takes("resv", "IDLE+RESERVED") && takes("maint", "IDLE+MAINTENANCE"));
  EXPECT_FALSE(NodeState().IsAskedBy("idle&bogus").ok());
}

TEST(NodeStateTest, AllFlagsOfAStateAreTold) {
  EXPECT_EQ(NodeState::Parse("ALLOCATED+DRAIN").Complete(), "allocated+drain");
  EXPECT_EQ(NodeState::Parse("DOWN*+DRAIN").Complete(), "down+drain+not_responding");
  EXPECT_EQ(NodeState::Parse("IDLE").Complete(), "idle");
}

TEST(NodeStateTest, SinfosOrderHasFlagsFirst) {
  const auto rank = [](const char* state) { return NodeState::Parse(state).rank(); };
  EXPECT_GT(rank("DOWN*"), rank("MIXED+DRAIN"));
  EXPECT_GT(rank("MIXED+DRAIN"), rank("IDLE+DRAIN"));
  EXPECT_GT(rank("IDLE+DRAIN"), rank("MIXED"));
  EXPECT_GT(rank("MIXED"), rank("ALLOCATED"));
  EXPECT_GT(rank("ALLOCATED"), rank("IDLE"));
  EXPECT_GT(rank("IDLE"), rank("DOWN"));
}

}  // namespace
}  // namespace muster::cli
