// Tests the statuses that are made of the core's refusals: programs rely on code, reason and
// details, people on the words.
#include "contract/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster::contract {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string WordsOf(const Refusal& refusal) {
  return std::string(ToStd(ToStatus(refusal).message()));
}

TEST(Refusal, NoneIsOk) { EXPECT_TRUE(ToStatus(std::nullopt).ok()); }

TEST(Refusal, JobsThatDoNotWaitAreNamedWithTheReasonUpToABound) {
  refused::NotWaiting fact;
  fact.jobs = {{.id = 1},
               {.id = 2, .state = v1::JOB_STATE_RUNNING, .is_canceling = true},
               {.id = 3, .state = v1::JOB_STATE_PENDING},
               {.id = 4, .state = v1::JOB_STATE_RUNNING}};
  fact.count = 6;
  fact.asked = 7;
  const absl::Status status = ToStatus(Refusal{fact});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToStd(status.message()),
            "only jobs that wait can be held, and these do not: 1 (has ended), 2 (is being "
            "canceled), 3 (a node has it, or it is ending; to keep it back, cancel it and submit "
            "it again as a job that is held), 4 (RUNNING) and 2 more; nothing was held, hold the "
            "others without them");
  EXPECT_THAT(GetErrorInfo(status)->metadata(),
              UnorderedElementsAre(Pair("jobs", "1,2,3,4"), Pair("count", "6")));
}

TEST(Refusal, AnUnknownJobSaysWhatWasNotDone) {
  EXPECT_EQ(WordsOf({refused::UnknownJob{7, refused::Wish::kCancel}}),
            "there is no job 7; nothing was canceled");
  EXPECT_EQ(WordsOf({refused::UnknownJob{7, refused::Wish::kHold}}),
            "there is no job 7; nothing was held");
  EXPECT_EQ(WordsOf({refused::UnknownJob{7, refused::Wish::kRelease}}),
            "there is no job 7; nothing was released");
}

TEST(Refusal, TheKnownClustersAreNamedUpToABound) {
  EXPECT_EQ(WordsOf({refused::NoSuchCluster{"a", {}}}),
            "there is no cluster \"a\" to forget; no cluster has connected to this broker yet");
  EXPECT_EQ(WordsOf({refused::NoSuchCluster{"a", {{"b", "c"}, 4}}}),
            "there is no cluster \"a\" to forget; the known ones are \"b\", \"c\" and 2 more");
}

TEST(Refusal, ItsPlaceAmongSeveralRequestsIsInItsDetailsAlone) {
  const Refusal alone{refused::UnknownCluster{"a", {}}};
  Refusal second = alone;
  second.request = 1;
  EXPECT_EQ(WordsOf(second), WordsOf(alone));
  EXPECT_EQ(GetErrorInfo(ToStatus(second))->metadata().at("request"), "1");
  EXPECT_FALSE(GetErrorInfo(ToStatus(alone))->metadata().contains("request"));
}

TEST(Refusal, AFullBrokerSaysWhenToComeAgain) {
  const absl::Status full = ToStatus(Refusal{refused::QueueFull{5, 5}});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetRetryDelay(full), absl::Seconds(10));
  const absl::Status changed = ToStatus(Refusal{refused::JobChanged{3}});
  EXPECT_EQ(changed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(GetRetryDelay(changed), absl::Milliseconds(100));
}

TEST(Refusal, AnErrorThatTheInputBroughtAlongStaysAsItIs) {
  const absl::Status missing = Error(absl::StatusCode::kFailedPrecondition, "FILES_MISSING", "x");
  EXPECT_EQ(ToStatus(Refusal{missing}), missing);
}

}  // namespace
}  // namespace muster::contract
