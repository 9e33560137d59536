#include "agents/slurm/call_queue.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

// Returns whether a call of the kind that comes at that time goes at once.
bool Goes(CallQueue* queue, CallKind kind, absl::Time now) {
  const CallQueue::Ticket ticket = queue->Join(kind, now);
  if (queue->MayGo(ticket, now)) return true;
  queue->Leave(ticket);
  return false;
}

TEST(CallQueueTest, WhatIsGivenBackAnotherMayHave) {
  CallQueue queue(4);
  const absl::Time now = absl::FromUnixSeconds(1000);
  ASSERT_TRUE(queue.MayGo(queue.Join(CallKind::kObserve, now), now));
  const CallQueue::Ticket second = queue.Join(CallKind::kObserve, now);
  EXPECT_FALSE(queue.MayGo(second, now));
  queue.GiveBack();
  EXPECT_TRUE(queue.MayGo(second, now));
}

TEST(CallQueueTest, AQuietMinuteIsWorthAQuarterOfTheCallsAtOnce) {
  CallQueue queue(24);
  absl::Time now = kStart;
  for (const int burst : {6, 6}) {
    for (int i = 0; i < burst; ++i) EXPECT_TRUE(Goes(&queue, CallKind::kOther, now)) << i;
    EXPECT_FALSE(Goes(&queue, CallKind::kEnd, now));
    now += absl::Hours(1);
  }
}

TEST(CallQueueTest, NoSixtySecondsHaveMoreCallsThanTheLimit) {
  for (const uint32_t limit : {1u, 2u, 3u, 4u, 7u, 20u, 60u, 240u}) {
    CallQueue queue(limit);
    std::vector<absl::Time> went;
    // A quiet hour, three minutes of asking as often as can be, and the same again.
    for (const absl::Time start : {kStart, kStart + absl::Hours(1)}) {
      for (absl::Time now = start; now < start + absl::Minutes(3); now += absl::Milliseconds(50)) {
        while (Goes(&queue, CallKind::kSubmit, now)) went.push_back(now);
      }
    }
    for (size_t i = 0; i + limit < went.size(); ++i)
      ASSERT_GE(went[i + limit] - went[i], absl::Minutes(1)) << limit << " a minute, call " << i;
    EXPECT_GE(went.size(), 2 * 3 * limit * 3 / 4) << "the limit is made use of";
  }
}

TEST(CallQueueTest, AfterABurstTokensComeOneByOne) {
  CallQueue queue(8);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Goes(&queue, CallKind::kOther, kStart));
  EXPECT_FALSE(Goes(&queue, CallKind::kOther, kStart + absl::Seconds(8)));
  const absl::Time next = queue.NextChange(kStart + absl::Seconds(8));
  EXPECT_GT(next, kStart + absl::Seconds(8));
  EXPECT_LT(next, kStart + absl::Seconds(9));
  EXPECT_TRUE(Goes(&queue, CallKind::kOther, next));
  EXPECT_FALSE(Goes(&queue, CallKind::kOther, next));
}

TEST(CallQueueTest, NoLimitIsNoWait) {
  CallQueue queue(0);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Goes(&queue, CallKind::kOther, kStart));
  EXPECT_EQ(queue.ObserveInterval(kStart), absl::ZeroDuration());
}

TEST(CallQueueTest, TheMoreUrgentGoesFirstAndOfEqualsTheFirst) {
  CallQueue queue(80);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Goes(&queue, CallKind::kOther, kStart));
  std::vector<CallQueue::Ticket> waiting;
  for (const CallKind kind : {CallKind::kOther, CallKind::kObserve, CallKind::kSubmit,
                              CallKind::kSubmit, CallKind::kEnd}) {
    waiting.push_back(queue.Join(kind, kStart));
  }
  absl::Time now = kStart;
  for (const size_t expected : {4, 2, 3, 1, 0}) {
    now += absl::Seconds(1);
    for (size_t i = 0; i < waiting.size(); ++i) {
      EXPECT_EQ(queue.MayGo(waiting[i], now), i == expected) << i << " for " << expected;
    }
  }
}

TEST(CallQueueTest, ALongRowOfSubmissionsHidesNoQueueForEver) {
  CallQueue queue(80);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Goes(&queue, CallKind::kOther, kStart));
  const CallQueue::Ticket look = queue.Join(CallKind::kObserve, kStart);
  absl::Time now = kStart;
  int submitted = 0;
  while (true) {
    now += absl::Seconds(1);
    const CallQueue::Ticket ticket = queue.Join(CallKind::kSubmit, now);
    if (queue.MayGo(look, now)) break;
    EXPECT_TRUE(queue.MayGo(ticket, now));
    ASSERT_LT(++submitted, 100) << "the queue is never looked at";
  }
  EXPECT_GE(submitted, 10) << "submissions come first for a while";
}

TEST(CallQueueTest, ALongRowOfCancelsKeepsNoSubmissionAndNoLookBackForEver) {
  CallQueue queue(80);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Goes(&queue, CallKind::kOther, kStart));
  const CallQueue::Ticket submission = queue.Join(CallKind::kSubmit, kStart);
  const CallQueue::Ticket look = queue.Join(CallKind::kObserve, kStart);
  absl::Time now = kStart;
  std::string turns;
  while (turns.size() < 30) {
    now += absl::Seconds(1);
    const CallQueue::Ticket cancel = queue.Join(CallKind::kEnd, now);
    if (queue.MayGo(submission, now)) {
      turns += 's';
    } else if (queue.MayGo(look, now)) {
      turns += 'l';
    } else {
      EXPECT_TRUE(queue.MayGo(cancel, now));
      turns += '.';
    }
    queue.Leave(cancel);
  }
  // Only cancels come for 20 s, and then never two of the others in a row.
  EXPECT_THAT(turns, ::testing::MatchesRegex("\\.{19,20}s\\.l\\.+"));
}

TEST(CallQueueTest, WhoLeavesHoldsNobodyUp) {
  CallQueue queue(1);
  EXPECT_TRUE(Goes(&queue, CallKind::kOther, kStart));
  const CallQueue::Ticket end = queue.Join(CallKind::kEnd, kStart);
  const CallQueue::Ticket other = queue.Join(CallKind::kOther, kStart);
  const absl::Time later = kStart + absl::Seconds(61);
  EXPECT_FALSE(queue.MayGo(other, later));
  queue.Leave(end);
  EXPECT_TRUE(queue.MayGo(other, later));
}

TEST(CallQueueTest, TheLessIsLeftTheMoreRarelyTheQueueIsLookedAt) {
  CallQueue queue(20);
  EXPECT_EQ(queue.ObserveInterval(kStart), absl::ZeroDuration());
  absl::Duration last;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Goes(&queue, CallKind::kSubmit, kStart));
    EXPECT_GE(queue.ObserveInterval(kStart), last);
    last = queue.ObserveInterval(kStart);
  }
  EXPECT_EQ(last, absl::Seconds(12)) << "a quarter of the calls are for looks";
  EXPECT_LE(queue.ObserveInterval(kStart + absl::Seconds(15)), absl::Seconds(4));
}

TEST(CallQueueTest, ALookThatSomebodyWaitsForTakesWhatIsLeftButForOne) {
  CallQueue queue(20);
  for (int left = 5; left >= 2; --left) {
    EXPECT_EQ(queue.ObserveInterval(kStart, true), absl::ZeroDuration()) << left;
    EXPECT_TRUE(Goes(&queue, CallKind::kObserve, kStart));
  }
  EXPECT_EQ(queue.ObserveInterval(kStart, true), absl::Minutes(1) / 16) << "until there are two";
  EXPECT_LT(queue.ObserveInterval(kStart, true), queue.ObserveInterval(kStart));
}

TEST(BackOffTest, SlurmsWordsForItAreKnown) {
  EXPECT_TRUE(BackOff::Says("squeue: RPC rate limited 3 time(s). Sleeping for 3 s."));
  EXPECT_TRUE(BackOff::Says("slurm_load_jobs error: RPC limit exceeded"));
  EXPECT_FALSE(BackOff::Says("Unable to contact slurm controller (connect failure)"));
  EXPECT_FALSE(BackOff::Says(""));
}

TEST(BackOffTest, TheIntervalGrowsWhileCallsAreHeldBackAndShrinksAfterwards) {
  BackOff back_off;
  EXPECT_EQ(back_off.factor(), 1);
  back_off.OnAnswer(true, kStart);
  EXPECT_EQ(back_off.factor(), 2);
  for (int i = 0; i < 10; ++i) back_off.OnAnswer(true, kStart);
  EXPECT_EQ(back_off.factor(), 16);
  EXPECT_EQ(back_off.count(), 11u);
  for (int i = 0; i < 4; ++i) back_off.OnAnswer(false, kStart);
  EXPECT_EQ(back_off.factor(), 1);
  EXPECT_EQ(back_off.last(), kStart);
}

}  // namespace
}  // namespace muster::slurm
