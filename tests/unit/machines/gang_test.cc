// Tests how a run's ranks on several hosts decide the run.
#include "agents/machines/remote/gang.h"

#include "agents/machines/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1000);

ExitRecord Exited(int code, int64_t end_us) {
  return {.end = ExitRecord::End::kExited, .status = code, .start_us = 5, .end_us = end_us};
}

ExitRecord Ended(ExitRecord::Cause cause, int64_t end_us) {
  ExitRecord exit = Exited(1, end_us);
  exit.cause = cause;
  return exit;
}

Rank EndedRank(const std::string& host, const ExitRecord& exit) {
  return {.host = host, .directory = "/d", .stage = HostStage::kEnded, .exit = exit};
}

Rank LivingRank(const std::string& host, HostStage stage) {
  return {.host = host, .directory = "/d", .stage = stage};
}

TEST(GangTest, NewsOfARunThatGoesOnIsAnotherFactAndNoOtherSentence) {
  std::vector<Rank> ranks = {LivingRank("a", HostStage::kStarted),
                             LivingRank("b", HostStage::kAbsent)};
  v1::StateReason reason = CopyingReason({"b"}, 0, 0);
  const ProgressFacts told = FactsOf(reason, ranks);
  EXPECT_EQ(told.begun, 1u);
  EXPECT_EQ(told.over, 0u);
  reason.set_message("b is being given its files");
  reason.set_remedy("wait");
  EXPECT_EQ(FactsOf(reason, ranks), told);
  EXPECT_NE(FactsOf(CopyingReason({"a"}, 0, 0), ranks), told);
  reason.set_code(v1::STATE_REASON_CODE_HOST_ANSWERS);
  EXPECT_NE(FactsOf(reason, ranks), told);
  ranks[1].stage = HostStage::kStarted;
  EXPECT_NE(FactsOf(CopyingReason({"b"}, 0, 0), ranks), told);
}

TEST(GangTest, WhatIsCopiedIsToldWithItsHostsAndHowFarItIs) {
  EXPECT_EQ(CopyingReason({"a", "b"}, 25'000'000, 314'572'800).message(),
            "its files are being copied to a, b (23 of 300 MiB)");
  EXPECT_EQ(CopyingReason({"a"}, 0, 0).message(), "its files are being copied to a");
  EXPECT_EQ(CopyingReason({"a", "b", "c", "d", "e"}, 0, 1000).message(),
            "its files are being copied to a, b, c and 2 more");
  EXPECT_EQ(CopyingReason({}, 10 << 20, 10 << 20).message(),
            "its files are there, and it is being started");
}

TEST(GangTest, AllThatEndWellSucceed) {
  const auto end =
      GangEnd("k-1-1", {EndedRank("a", Exited(0, 20)), EndedRank("b", Exited(0, 30))}, false, kNow);
  EXPECT_EQ(end.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(end.nodes, ElementsAre("a", "b"));
  EXPECT_EQ(*end.end_time, absl::FromUnixMicros(30));
}

TEST(GangTest, TheCodeIsThatOfTheRankThatFailedFirst) {
  const std::vector<Rank> ranks = {EndedRank("a", Exited(3, 40)), EndedRank("b", Exited(7, 30)),
                                   EndedRank("c", Exited(0, 10))};
  const auto end = GangEnd("k-1-1", ranks, false, kNow);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.exit->code(), 7);
  EXPECT_EQ(end.exit->rank(), 1);
  EXPECT_THAT(end.failure->message(), HasSubstr("on rank 1 (b)"));
}

ExitRecord Counted(int64_t user_us, uint64_t rss) {
  ExitRecord exit = Exited(0, 20);
  exit.is_counted = true;
  exit.user_cpu_us = user_us;
  exit.system_cpu_us = 1;
  exit.max_rss_bytes = rss;
  return exit;
}

TEST(GangTest, TheUsageIsTheSumOfTheRanksAndTheMostOfOneProcess) {
  const auto end = GangEnd(
      "k-1-1", {EndedRank("a", Counted(2'000'000, 5)), EndedRank("b", Counted(3'000'000, 9))},
      false, kNow);
  ASSERT_TRUE(end.usage.has_value());
  EXPECT_EQ(end.usage->user_cpu_time().seconds(), 5);
  EXPECT_EQ(end.usage->system_cpu_time().nanos(), 2000);
  EXPECT_EQ(end.usage->max_rss_bytes(), 9u);
}

TEST(GangTest, AUsageThatLacksARankIsNone) {
  const Rank counted = EndedRank("a", Counted(1, 5));
  EXPECT_FALSE(GangEnd("k-1-1", {counted, EndedRank("b", Exited(0, 9))}, false, kNow).usage)
      << "an older supervisor";
  ExitRecord queued = Ended(ExitRecord::Cause::kCanceled, 10);
  queued.phase = ExitRecord::Phase::kQueue;
  EXPECT_TRUE(GangEnd("k-1-1", {counted, EndedRank("b", queued)}, true, kNow).usage)
      << "it never ran";
}

TEST(GangTest, RanksThatWereEndedBecauseOfAFailureDoNotHideIt) {
  const std::vector<Rank> ranks = {EndedRank("a", Ended(ExitRecord::Cause::kCanceled, 10)),
                                   EndedRank("b", Exited(7, 30))};
  EXPECT_EQ(GangEnd("k-1-1", ranks, false, kNow).exit->code(), 7);
}

TEST(GangTest, ACancelOfTheUserIsNoFailure) {
  const std::vector<Rank> ranks = {EndedRank("a", Ended(ExitRecord::Cause::kCanceled, 10)),
                                   EndedRank("b", Exited(0, 30))};
  EXPECT_EQ(GangEnd("k-1-1", ranks, true, kNow).state, v1::RUN_STATE_CANCELED);
}

TEST(GangTest, WhatTheAgentHasEndedWithoutTheUserIsAFailureOfTheCluster) {
  const auto end =
      GangEnd("k-1-1", {EndedRank("a", Ended(ExitRecord::Cause::kCanceled, 10))}, false, kNow);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(end.failure->code(), v1::FAILURE_CODE_STARTED_IN_PART);
}

TEST(GangTest, AVanishedRankIsAFaultOfTheCluster) {
  Rank vanished = LivingRank("b", HostStage::kVanished);
  vanished.vanished = "the host was started anew";
  vanished.vanished_at = kNow;
  const auto end = GangEnd("k-1-1", {EndedRank("a", Exited(0, 20)), vanished}, false, kNow);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(end.failure->retriable());
  EXPECT_THAT(end.failure->message(), HasSubstr("started anew"));
}

TEST(GangTest, ARankThatVanishedUnseenIsBlamedForWhatFailedAfterItsLastWord) {
  // Its host starts anew, its peer fails without it, and minutes later the host tells.
  Rank vanished = LivingRank("b", HostStage::kStarted);
  EXPECT_TRUE(TakeReport(
      {.run_key = "k-1-1", .stage = HostStage::kVanished, .detail = "the host was started anew"},
      absl::FromUnixMicros(10), kNow, &vanished));
  auto end = GangEnd("k-1-1", {EndedRank("a", Exited(1, 20)), vanished}, false, kNow);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(end.failure->message(), HasSubstr("(rank 1, b)"));
  end = GangEnd("k-1-1", {EndedRank("a", Exited(1, 5)), vanished}, false, kNow);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM) << "it was there still";
}

TEST(GangTest, WhatHasBegunWasNotRefusedWhateverASecondStartWasTold) {
  Rank rank;
  rank.refused = MakeFailure(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_CONFIG,
                             {.detail = "its input has gone"});
  EXPECT_FALSE(TakeReport({.run_key = "k-1-1"}, kNow, kNow, &rank));
  EXPECT_TRUE(rank.IsOver()) << "nothing shows a start";
  EXPECT_TRUE(TakeReport({.run_key = "k-1-1", .stage = HostStage::kClaimed}, kNow, kNow, &rank));
  EXPECT_FALSE(rank.IsOver());
}

TEST(GangTest, ARefusedRankGivesItsOwnClass) {
  Rank refused = LivingRank("b", HostStage::kAbsent);
  refused.refused = MakeFailure(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_CONFIG,
                                {.detail = "no such input"});
  refused.refused_at = kNow;
  const auto end = GangEnd(
      "k-1-1", {EndedRank("a", Ended(ExitRecord::Cause::kCanceled, 10)), refused}, false, kNow);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(end.failure->message(), "The run could not be started on rank 1 (b): no such input");
  EXPECT_FALSE(end.exit.has_value());
}

TEST(GangTest, WhatDoesNotFitHasItsRemedyInASentence) {
  const Misfit misfit = {"there is no pool \"b\"", contract::FailureCause::kPoolUnknown};
  EXPECT_EQ(MisfitFailure(misfit).remedy(), "Leave pool out, or choose another cluster.");
  EXPECT_EQ(RemedyOf(misfit), "leave pool out, or choose another cluster");
  EXPECT_EQ(RemedyOf({"2 nodes were asked for"}), "ask for less, or choose another cluster");
}

TEST(GangTest, WhatCouldNotBeStartedOfACanceledRunIsNoFailure) {
  Rank refused = LivingRank("b", HostStage::kAbsent);
  refused.refused =
      MakeFailure(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA, {.detail = "no space"});
  refused.refused_at = kNow;
  std::vector<Rank> ranks = {EndedRank("a", Ended(ExitRecord::Cause::kCanceled, 10)), refused};
  const auto end = GangEnd("k-1-1", ranks, true, kNow);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(end.failure.has_value());
  EXPECT_EQ(*end.end_time, kNow);
  ranks[0] = EndedRank("a", Exited(7, 10));
  EXPECT_EQ(GangEnd("k-1-1", ranks, true, kNow).state, v1::RUN_STATE_FAILED)
      << "its program has failed by itself";
}

TEST(GangTest, WhatVanishedAfterItWasToldToEndIsNoFailureOfACanceledRun) {
  Rank vanished = LivingRank("b", HostStage::kVanished);
  vanished.vanished = "its supervisor is gone";
  vanished.vanished_at = kNow;
  EXPECT_EQ(GangEnd("k-1-1", {vanished}, true, kNow).state, v1::RUN_STATE_FAILED);
  vanished.stop_told = true;
  const auto end = GangEnd("k-1-1", {vanished}, true, kNow);
  EXPECT_EQ(end.state, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(end.evidence.detail(), HasSubstr("its supervisor is gone"));
}

TEST(GangTest, ARunRunsOnceAllItsCommandsHaveStarted) {
  std::vector<Rank> ranks = {LivingRank("a", HostStage::kStarted),
                             LivingRank("b", HostStage::kClaimed)};
  ranks[0].started =
      Started{.process = {.pid = 7, .start_ticks = 1, .boot_id = "b"}, .time_us = 50};
  EXPECT_EQ(GangProgress("k-1-1", ranks, kNow).state, v1::RUN_STATE_STARTING);
  ranks[1].stage = HostStage::kStarted;
  ranks[1].started =
      Started{.process = {.pid = 8, .start_ticks = 1, .boot_id = "b"}, .time_us = 40};
  const auto progress = GangProgress("k-1-1", ranks, kNow);
  EXPECT_EQ(progress.state, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(*progress.start_time, absl::FromUnixMicros(40));
}

TEST(GangTest, ALookFromBeforeTheStartChangesNothing) {
  Rank rank = LivingRank("a", HostStage::kClaimed);
  EXPECT_FALSE(TakeReport({.run_key = "k-1-1", .stage = HostStage::kAbsent}, kNow, kNow, &rank));
  EXPECT_EQ(rank.stage, HostStage::kClaimed);
}

TEST(GangTest, AHostThatHasNoTraceOfAStopIsToldAgain) {
  Rank rank = LivingRank("a", HostStage::kAbsent);
  rank.stop_told = true;
  EXPECT_FALSE(TakeReport({.run_key = "k-1-1"}, kNow, kNow, &rank));
  EXPECT_FALSE(rank.stop_told);
}

TEST(GangTest, ATermAfterOurStopIsOurs) {
  Rank rank = LivingRank("a", HostStage::kStarted);
  rank.stop_told = true;
  EXPECT_TRUE(TakeReport({.run_key = "k-1-1",
                          .stage = HostStage::kEnded,
                          .exit = Ended(ExitRecord::Cause::kTerminated, 9)},
                         kNow, kNow, &rank));
  EXPECT_EQ(rank.exit->cause, ExitRecord::Cause::kCanceled);
}

TEST(GangTest, ALostRunIsNotRetried) {
  const auto lost =
      GangLost("k-1-1", {LivingRank("a", HostStage::kStarted)}, "host a is silent", kNow);
  EXPECT_EQ(lost.state, v1::RUN_STATE_LOST);
  EXPECT_FALSE(lost.failure->retriable());
  EXPECT_THAT(lost.failure->message(), HasSubstr("host a is silent"));
}

}  // namespace
}  // namespace muster::machines
