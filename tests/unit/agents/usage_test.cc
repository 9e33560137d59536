// Tests what the agent's core does about the usage of runs that is known only after their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/core/usage_queue.h"
#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class UsageTest : public testing::Test, public CoreHarness {
 protected:
  UsageTest() {
    options().asks_usage = true;
    Start();
    Connect();
  }

  static v1::ResourceUsage Used(int64_t seconds) {
    v1::ResourceUsage usage;
    usage.mutable_user_cpu_time()->set_seconds(seconds);
    return usage;
  }
  // Ends a run, as its third event says.
  void End(uint64_t job) {
    Have(job);
    Observe(job, v1::RUN_STATE_SUCCEEDED);
  }
  std::vector<std::string> Asked() const {
    std::vector<std::string> keys;
    for (const DoReadUsage& read : Effects<DoReadUsage>()) {
      for (const RunHandle& run : read.runs) keys.push_back(run.run_key);
    }
    return keys;
  }
  const Output& Answer(UsageByRun usage) { return Do(UsageRead{std::move(usage)}); }
  bool Lists(uint64_t job) {
    Do(LinkDown{});
    Do(LinkUp{});
    for (const SendToBroker& send : Effects<SendToBroker>()) {
      for (const agent::v1::HeldRun& run : send.message.hello().runs())
        if (run.run_key() == Key(job)) return true;
    }
    return false;
  }
};

TEST_F(UsageTest, NeitherTheEndNorTheLogsNorTheCleaningUpWaitForIt) {
  End(1);
  EXPECT_THAT(NewStates(), ElementsAre(v1::RUN_STATE_SUCCEEDED));
  EXPECT_THAT(Asked(), IsEmpty());
  After(kUsageLag);
  EXPECT_THAT(Asked(), ElementsAre(Key(1)));
  ShipLogs(1);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_TRUE(NewEvents()[0].logs_complete());
  Ack(4);
  EXPECT_FALSE(Holds(1));
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  Forgotten(1);
  EXPECT_TRUE(IsInJournal(1)) << "its usage may come";
  Answer({{Key(1), Used(7)}});
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].usage().user_cpu_time().seconds(), 7);
  EXPECT_TRUE(NewEvents()[0].logs_complete());
  EXPECT_FALSE(IsInJournal(1)) << "what is to be told is there apart from it";
  Ack(5);
  EXPECT_THAT(Effects<DoForget>(), IsEmpty());
}

TEST_F(UsageTest, ARunThatCannotBeCleanedUpStaysWhenItsUsageIsTold) {
  End(1);
  ShipLogs(1);
  Ack(4);
  After(kUsageLag);
  Answer({{Key(1), Used(7)}});
  EXPECT_TRUE(IsInJournal(1));
  Forgotten(1);
  EXPECT_FALSE(IsInJournal(1));
}

TEST_F(UsageTest, UsageThatComesFirstLetsTheLogsDecide) {
  End(1);
  After(kUsageLag);
  Answer({{Key(1), Used(7)}});
  EXPECT_FALSE(NewEvents()[0].logs_complete());
  Ack(4);
  EXPECT_TRUE(Holds(1));
  ShipLogs(1);
  EXPECT_FALSE(NewEvents()[0].has_usage()) << "told once";
  Ack(5);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

TEST_F(UsageTest, RunsThatEndTogetherAreAskedAboutTogetherAndQuestionsHaveTheirPace) {
  End(1);
  End(2);
  After(kUsageLag);
  EXPECT_THAT(Asked(), ElementsAre(Key(1), Key(2)));
  End(3);
  After(kUsageInterval);
  EXPECT_THAT(Asked(), IsEmpty()) << "one question at a time";
  Answer({{Key(1), Used(1)}});
  After(kUsageInterval - absl::Seconds(1));
  EXPECT_THAT(Asked(), IsEmpty());
  After(absl::Seconds(1));
  EXPECT_THAT(Asked(), ElementsAre(Key(3), Key(2))) << "2 was not known yet";
}

TEST_F(UsageTest, WhatNobodyKnowsIsGivenUpInTime) {
  End(1);
  ShipLogs(1);
  Ack(4);
  Forgotten(1);
  int asked = 0;
  absl::Duration waited;
  for (; IsInJournal(1) && waited < absl::Hours(1); waited += absl::Seconds(1)) {
    After(absl::Seconds(1));
    if (Asked().empty()) continue;
    ++asked;
    Do(UsageRead{absl::UnavailableError("slurmdbd is away")});
  }
  EXPECT_GE(waited, kUsagePatience);
  EXPECT_LT(waited, kUsagePatience + kUsageInterval);
  EXPECT_EQ(asked, 7);
}

TEST_F(UsageTest, AClusterThatDoesNotCountIsAskedNoMoreAboutThoseThatHaveEnded) {
  for (uint64_t job : {1, 2}) End(job);
  After(kUsageLag);
  ShipLogs(1);
  Ack(7);
  Forgotten(1);
  Do(UsageRead{absl::FailedPreconditionError("no accounting")});
  EXPECT_FALSE(IsInJournal(1));
  EXPECT_TRUE(Holds(2)) << "its logs are to come";
  After(kUsagePatience);
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(UsageTest, ARunThatIsKnownToHaveNoneGoesAtOnce) {
  End(1);
  ShipLogs(1);
  Ack(4);
  Forgotten(1);
  After(kUsageLag);
  EXPECT_TRUE(IsInJournal(1));
  Answer({{Key(1), std::nullopt}});
  EXPECT_THAT(NewEvents(), IsEmpty());
  EXPECT_FALSE(IsInJournal(1));
}

TEST_F(UsageTest, OneThatNeverWasOnTheClusterIsNotAskedAbout) {
  Assign(1);
  LaunchEnds(1, LaunchOutcome::Kind::kRefused);
  After(kUsagePatience);
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(UsageTest, OneThatHasToldItIsNotAskedAbout) {
  Have(1);
  Observation seen = Saw(1, v1::RUN_STATE_SUCCEEDED);
  seen.usage = Used(3);
  Observe(seen);
  EXPECT_EQ(NewEvents()[0].usage().user_cpu_time().seconds(), 3);
  After(kUsagePatience);
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(UsageTest, TheNextProcessAsksForWhatTheLastOneHasNotTold) {
  End(1);
  ShipLogs(1);
  Ack(4);
  Start();
  Connect(4);
  EXPECT_TRUE(IsInJournal(1));
  After(kUsageLag);
  EXPECT_THAT(Asked(), ElementsAre(Key(1)));
  Answer({{Key(1), Used(7)}});
  // The usage was told and not acknowledged: the journal has it, and the run, which was not cleaned
  // up.
  Start();
  Connect(4);
  EXPECT_THAT(Sent(), ElementsAre(5));
  After(kUsageLag);
  EXPECT_THAT(Asked(), IsEmpty());
  Ack(5);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

TEST_F(UsageTest, TheBrokerIsNotAskedForRunsThatItHasWhole) {
  End(1);
  EXPECT_TRUE(Lists(1));
  Do(BrokerSaid{WelcomeMessage(3)});
  ShipLogs(1);
  EXPECT_TRUE(Lists(1));
  Do(BrokerSaid{WelcomeMessage(4)});
  Forgotten(1);
  // The broker has read the hello before it knew of the acknowledgement.
  Release(1);
  EXPECT_TRUE(IsInJournal(1));
  EXPECT_FALSE(Lists(1));
}

TEST_F(UsageTest, AJournalThatIsNearlyFullKeepsNoRunForItsUsage) {
  End(1);
  ShipLogs(1);
  Ack(4);
  Forgotten(1);
  EXPECT_TRUE(IsInJournal(1));
  Do(JournalFilled{0.8});
  EXPECT_FALSE(IsInJournal(1));
}

TEST(UsageQueueTest, OnlySoManyWait) {
  UsageQueue queue;
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  for (size_t i = 0; i <= kMaxAwaitedUsages; ++i) queue.Add(std::to_string(i), now);
  EXPECT_EQ(queue.size(), kMaxAwaitedUsages);
  EXPECT_THAT(queue.TakeDue(now + kUsageLag), SizeIs(kMaxUsageBatch));
}

}  // namespace
}  // namespace muster::agents
