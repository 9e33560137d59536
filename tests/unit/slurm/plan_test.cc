#include "agents/slurm/plan.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kEstimate[] =
    "Job 25 to start at 1795251029 using 2 processors on nodes n[1-2] in partition debug";

TEST(PlanTest, AnEstimateHasATimeAndNodes) {
  const auto estimate = ParseEstimate(kEstimate);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->start, absl::FromUnixSeconds(1795251029));
  EXPECT_THAT(estimate->nodes, ElementsAre("n1", "n2"));
  EXPECT_FALSE(ParseEstimate("").has_value());
  EXPECT_FALSE(ParseEstimate("Job 25 to start at Unknown").has_value());
}

TEST(PlanTest, AnEstimateGoesIntoThePlan) {
  CheckList checks;
  v1::JobPlan plan;
  TakeEstimate(std::string(kEstimate), &checks, &plan);
  EXPECT_EQ(plan.estimated_start_time().seconds(), 1795251029);
  EXPECT_THAT(plan.nodes(), ElementsAre("n1", "n2"));
  EXPECT_EQ(checks.checks().checks(0).result(), v1::CHECK_RESULT_OK);
}

struct Case {
  absl::Status said;
  v1::CheckResult result;
  std::string seen;
  std::string remedy;
};

TEST(PlanTest, WhatSlurmWouldRefuseIsAFailureWithItsRemedy) {
  const Case cases[] = {
      {absl::InvalidArgumentError("error: invalid partition specified: nope\n"
                                  "allocation failure: Invalid partition name specified"),
       v1::CHECK_RESULT_FAIL, "no such partition", "placement.pool"},
      {absl::InvalidArgumentError("allocation failure: Something new"), v1::CHECK_RESULT_FAIL,
       "Something new", "Slurm's words"},
      {absl::UnavailableError("Unable to contact slurm controller"), v1::CHECK_RESULT_FAIL,
       "could not be asked", "muster check"},
      {absl::UnimplementedError("slurmrestd does not tell"), v1::CHECK_RESULT_SKIPPED,
       "slurmrestd does not tell", ""},
  };
  for (const Case& one : cases) {
    CheckList checks;
    v1::JobPlan plan;
    TakeEstimate(one.said, &checks, &plan);
    const v1::ClusterCheck& check = checks.checks().checks(0);
    EXPECT_EQ(check.result(), one.result) << one.said;
    EXPECT_THAT(check.seen(), HasSubstr(one.seen));
    EXPECT_THAT(check.remedy(), HasSubstr(one.remedy));
    EXPECT_FALSE(plan.has_estimated_start_time());
  }
}

}  // namespace
}  // namespace muster::slurm
