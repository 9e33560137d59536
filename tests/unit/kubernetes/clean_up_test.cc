#include "agents/kubernetes/clean_up.h"

#include <gtest/gtest.h>

#include "agents/kubernetes/manifest/manifest.h"

namespace muster::kubernetes {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const absl::Time kRecent = kNow - absl::Minutes(1);
const absl::Time kLongAgo = kNow - absl::Hours(2);
constexpr int64_t kWeek = 604800;

JobObject HalfLaunched(absl::Time created) {
  JobObject job;
  job.created = created;
  job.is_suspended = true;
  job.time_to_live = kWeek;
  return job;
}

JobObject Ended(const char* how, absl::Time end) {
  JobObject job = HalfLaunched(kLongAgo);
  job.is_launch_complete = true;
  job.is_suspended = false;
  job.conditions.push_back({how, true, "", "", end});
  return job;
}

TEST(CleanUpTest, HalfALaunchIsDeletedOnceNobodyHasComeBackToItForAnHour) {
  EXPECT_EQ(CleanUpOf(HalfLaunched(kRecent), false, kNow), CleanUp::kNothing);
  EXPECT_EQ(CleanUpOf(HalfLaunched(kLongAgo), false, kNow), CleanUp::kDelete);
  EXPECT_EQ(CleanUpOf(HalfLaunched(kRecent), true, kNow), CleanUp::kDelete);
}

TEST(CleanUpTest, AnEndedJobIsKeptNoLongerThanItsRunSaysOnceItIsLetGo) {
  JobObject job = Ended("Complete", kRecent);
  EXPECT_EQ(CleanUpOf(job, true, kNow), CleanUp::kLowerTimeToLive);
  job.time_to_live = kDefaultTimeToLiveSeconds;
  EXPECT_EQ(CleanUpOf(job, true, kNow), CleanUp::kNothing) << "that is done";
  job.final_time_to_live = 60;
  EXPECT_EQ(CleanUpOf(job, true, kNow), CleanUp::kLowerTimeToLive);
  job.time_to_live.reset();
  EXPECT_EQ(CleanUpOf(job, true, kNow), CleanUp::kLowerTimeToLive) << "it would be kept for ever";
}

TEST(CleanUpTest, OneWhoseRunNobodyKnowsHasAnHourForSomebodyToComeBack) {
  EXPECT_EQ(CleanUpOf(Ended("Failed", kRecent), false, kNow), CleanUp::kNothing);
  EXPECT_EQ(CleanUpOf(Ended("Failed", kLongAgo), false, kNow), CleanUp::kLowerTimeToLive);
}

TEST(CleanUpTest, WhatMayRunIsToldOfAndLeftAloneUnlessItsRunHasEnded) {
  JobObject job = HalfLaunched(kLongAgo);
  job.is_launch_complete = true;
  EXPECT_EQ(CleanUpOf(job, false, kNow), CleanUp::kTell);
  EXPECT_EQ(CleanUpOf(job, true, kNow), CleanUp::kDelete);
}

TEST(CleanUpTest, WhatOthersHaveLetGoBeforeItsLaunchWasThroughMayRunAndIsToldOf) {
  JobObject job = HalfLaunched(kLongAgo);
  job.is_suspended = false;
  EXPECT_EQ(CleanUpOf(job, false, kNow), CleanUp::kTell);
}

TEST(CleanUpTest, WhatIsBeingDeletedGoesByItself) {
  JobObject job = Ended("Complete", kLongAgo);
  job.deletion_time = kRecent;
  EXPECT_EQ(CleanUpOf(job, true, kNow), CleanUp::kNothing);
}

}  // namespace
}  // namespace muster::kubernetes
