#include "contract/launch_refusals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "contract/failures.h"
#include "contract/slurm_refusals.h"

namespace muster::contract {
namespace {

v1::Run FailedWith(v1::Failure failure) {
  v1::Run run;
  run.set_number(1);
  run.set_cluster("a");
  run.set_state(v1::RUN_STATE_FAILED);
  run.mutable_end_time()->set_seconds(1'000);
  *run.mutable_failure() = std::move(failure);
  return run;
}

v1::Run RefusedWith(const char* words) {
  return FailedWith(RefusedBySlurm(*FindSlurmRefusal(words), words, {}));
}

TEST(LaunchRefusals, LimitsAccountsAndPartitionsAreTheClusters) {
  EXPECT_TRUE(MayGoElsewhere(RefusedWith("Job violates accounting/QOS policy (job submit limit)")));
  EXPECT_TRUE(MayGoElsewhere(RefusedWith("Invalid account or account/partition combination")));
  EXPECT_TRUE(MayGoElsewhere(RefusedWith("Invalid partition name specified")));
  EXPECT_TRUE(MayGoElsewhere(RefusedWith("System submissions disabled")));
  EXPECT_TRUE(MayGoElsewhere(
      FailedWith(MakeFailure(v1::FAILURE_CODE_DOES_NOT_FIT, v1::FAILURE_CLASS_CONFIG))));
}

TEST(LaunchRefusals, ACauseThatLiesInTheJobIsTheSameEverywhere) {
  EXPECT_FALSE(MayGoElsewhere(RefusedWith("Circular job dependency")));
  EXPECT_FALSE(MayGoElsewhere(RefusedWith("Invalid time-min specification")));
  EXPECT_FALSE(MayGoElsewhere(FailedWith(MakeFailure(
      v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
      {.detail = "its secrets could not be had", .cause = FailureCause::kSecretMissing}))));
  EXPECT_FALSE(MayGoElsewhere(
      FailedWith(MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG))));
  EXPECT_FALSE(MayGoElsewhere(
      FailedWith(MakeFailure(v1::FAILURE_CODE_COMMAND_FAILED, v1::FAILURE_CLASS_PROGRAM))));
}

TEST(LaunchRefusals, ARunThatHasStartedOrEndedOtherwiseWasNotRefused) {
  v1::Run run = RefusedWith("Invalid partition name specified");
  run.mutable_start_time()->set_seconds(1);
  EXPECT_FALSE(MayGoElsewhere(run));
  run.clear_start_time();
  run.set_state(v1::RUN_STATE_LOST);
  EXPECT_FALSE(MayGoElsewhere(run));
}

TEST(LaunchRefusals, TheWaitDoublesUpToADayForEachCluster) {
  v1::Job job;
  const v1::Run refused = RefusedWith("Invalid partition name specified");
  absl::Duration wait = absl::Hours(1);
  for (int times = 1; times <= 8; ++times) {
    *job.add_runs() = refused;
    job.mutable_runs(times - 1)->set_number(static_cast<uint32_t>(times));
    const auto refusals = RefusalsOf(job);
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_EQ(refusals[0].run, static_cast<uint32_t>(times));
    EXPECT_EQ(refusals[0].until, absl::FromUnixSeconds(1'000) + wait) << times;
    wait = std::min(2 * wait, absl::Hours(24));
  }
  *job.add_runs() = refused;
  job.mutable_runs(8)->set_cluster("b");
  EXPECT_EQ(RefusalsOf(job)[1].until, absl::FromUnixSeconds(1'000) + absl::Hours(1));
}

}  // namespace
}  // namespace muster::contract
