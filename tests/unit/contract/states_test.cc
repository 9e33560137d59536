#include "contract/states.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "contract/transitions.h"

namespace muster::contract {
namespace {

using v1::RunState;

// Written from the diagram in states.h, apart from the table: what may follow each state.
const std::map<RunState, std::set<RunState>>& ExpectedFollowers() {
  const std::set<RunState> ends = {v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_FAILED,
                                   v1::RUN_STATE_CANCELED, v1::RUN_STATE_LOST};
  const auto with_ends = [&](std::set<RunState> states) {
    states.insert(ends.begin(), ends.end());
    return states;
  };
  static const std::map<RunState, std::set<RunState>> followers = {
      {v1::RUN_STATE_ASSIGNED,
       {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_LAUNCH_UNKNOWN, v1::RUN_STATE_CANCELED,
        v1::RUN_STATE_FAILED, v1::RUN_STATE_LOST}},
      {v1::RUN_STATE_LAUNCHING,
       with_ends({v1::RUN_STATE_LAUNCH_UNKNOWN, v1::RUN_STATE_PENDING, v1::RUN_STATE_STARTING,
                  v1::RUN_STATE_RUNNING, v1::RUN_STATE_SUSPENDED, v1::RUN_STATE_FINISHING})},
      {v1::RUN_STATE_LAUNCH_UNKNOWN,
       with_ends({v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING, v1::RUN_STATE_STARTING,
                  v1::RUN_STATE_RUNNING, v1::RUN_STATE_SUSPENDED, v1::RUN_STATE_FINISHING})},
      {v1::RUN_STATE_PENDING, with_ends({v1::RUN_STATE_STARTING, v1::RUN_STATE_RUNNING,
                                         v1::RUN_STATE_SUSPENDED, v1::RUN_STATE_FINISHING})},
      {v1::RUN_STATE_STARTING, with_ends({v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING,
                                          v1::RUN_STATE_SUSPENDED, v1::RUN_STATE_FINISHING})},
      {v1::RUN_STATE_RUNNING,
       with_ends({v1::RUN_STATE_PENDING, v1::RUN_STATE_SUSPENDED, v1::RUN_STATE_FINISHING})},
      {v1::RUN_STATE_SUSPENDED,
       with_ends({v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING, v1::RUN_STATE_FINISHING})},
      {v1::RUN_STATE_FINISHING, with_ends({v1::RUN_STATE_PENDING})},
  };
  return followers;
}

TEST(RunTransitions, AreLegalExactlyAsListedForEveryPairOfStates) {
  for (int from = v1::RunState_MIN; from <= v1::RunState_MAX; ++from) {
    for (int to = v1::RunState_MIN; to <= v1::RunState_MAX; ++to) {
      const auto listed = ExpectedFollowers().find(static_cast<RunState>(from));
      const bool expected =
          listed != ExpectedFollowers().end() && listed->second.contains(static_cast<RunState>(to));
      EXPECT_EQ(IsLegal(static_cast<RunState>(from), static_cast<RunState>(to)), expected)
          << Name(static_cast<RunState>(from)) << " -> " << Name(static_cast<RunState>(to));
    }
  }
}

TEST(RunTransitions, AreListedOnce) {
  std::set<std::pair<RunState, RunState>> seen;
  for (const RunTransition& transition : kRunTransitions) {
    EXPECT_TRUE(seen.emplace(transition.from, transition.to).second)
        << Name(transition.from) << " -> " << Name(transition.to);
  }
}

TEST(RunTransitions, NeverLeaveATerminalState) {
  for (const RunTransition& transition : kRunTransitions) {
    EXPECT_FALSE(IsTerminal(transition.from)) << Name(transition.from);
  }
}

TEST(RunTransitions, ReachLostFromEveryStateThatIsNotTerminal) {
  for (int from = v1::RUN_STATE_ASSIGNED; from <= v1::RunState_MAX; ++from) {
    EXPECT_EQ(IsLegal(static_cast<RunState>(from), v1::RUN_STATE_LOST),
              !IsTerminal(static_cast<RunState>(from)));
  }
}

TEST(RunTransitions, RefuseNumbersThatAreNoState) {
  EXPECT_FALSE(IsLegal(static_cast<RunState>(-1), v1::RUN_STATE_LOST));
  EXPECT_FALSE(IsLegal(v1::RUN_STATE_RUNNING, static_cast<RunState>(99)));
}

TEST(States, AreTerminalWhenNothingFollows) {
  for (int state = v1::RUN_STATE_ASSIGNED; state <= v1::RunState_MAX; ++state) {
    EXPECT_EQ(IsTerminal(static_cast<RunState>(state)),
              !ExpectedFollowers().contains(static_cast<RunState>(state)));
  }
  EXPECT_FALSE(IsTerminal(v1::JOB_STATE_QUEUED));
  EXPECT_FALSE(IsTerminal(v1::JOB_STATE_PENDING));
  EXPECT_FALSE(IsTerminal(v1::JOB_STATE_RUNNING));
  EXPECT_FALSE(IsTerminal(v1::JOB_STATE_SUSPENDED));
  EXPECT_TRUE(IsTerminal(v1::JOB_STATE_SUCCEEDED));
  EXPECT_TRUE(IsTerminal(v1::JOB_STATE_FAILED));
  EXPECT_TRUE(IsTerminal(v1::JOB_STATE_CANCELED));
}

TEST(JobStateFor, FollowsTheLatestRun) {
  const std::map<RunState, v1::JobState> expected = {
      {v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING},
      {v1::RUN_STATE_LAUNCHING, v1::JOB_STATE_PENDING},
      {v1::RUN_STATE_LAUNCH_UNKNOWN, v1::JOB_STATE_PENDING},
      {v1::RUN_STATE_PENDING, v1::JOB_STATE_PENDING},
      {v1::RUN_STATE_STARTING, v1::JOB_STATE_PENDING},
      {v1::RUN_STATE_RUNNING, v1::JOB_STATE_RUNNING},
      {v1::RUN_STATE_SUSPENDED, v1::JOB_STATE_SUSPENDED},
      {v1::RUN_STATE_FINISHING, v1::JOB_STATE_RUNNING},
      {v1::RUN_STATE_SUCCEEDED, v1::JOB_STATE_SUCCEEDED},
      {v1::RUN_STATE_FAILED, v1::JOB_STATE_FAILED},
      {v1::RUN_STATE_CANCELED, v1::JOB_STATE_CANCELED},
      {v1::RUN_STATE_LOST, v1::JOB_STATE_FAILED},
  };
  EXPECT_EQ(expected.size(), v1::RunState_ARRAYSIZE - 1u);
  for (const auto& [run, job] : expected) EXPECT_EQ(JobStateFor(run), job) << Name(run);
}

TEST(JobStateFor, IsTerminalExactlyWhenTheRunIs) {
  for (int state = v1::RUN_STATE_ASSIGNED; state <= v1::RunState_MAX; ++state) {
    const auto run = static_cast<RunState>(state);
    EXPECT_EQ(IsTerminal(JobStateFor(run)), IsTerminal(run)) << Name(run);
  }
}

TEST(Names, AreWhatPeopleType) {
  EXPECT_EQ(Name(v1::JOB_STATE_QUEUED), "QUEUED");
  EXPECT_EQ(Name(v1::RUN_STATE_LAUNCH_UNKNOWN), "LAUNCH_UNKNOWN");
  EXPECT_EQ(Name(v1::EVIDENCE_SOURCE_EXIT_RECORD), "EXIT_RECORD");
  EXPECT_EQ(Name(v1::FAILURE_CLASS_OOM), "OOM");
  EXPECT_EQ(Name(static_cast<v1::RunState>(99)), "?");
}

}  // namespace
}  // namespace muster::contract
