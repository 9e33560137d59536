// Lines as Slurm 22.05 prints them.
#include "agents/slurm/job_errors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

hosts::CommandResult Result(int exit_code, std::string words) {
  hosts::CommandResult result;
  result.exit_code = exit_code;
  result.stderr_data = std::move(words);
  return result;
}
std::string Words(const absl::Status& status) { return std::string(status.message()); }

TEST(JobErrorsTest, EachJobOfACancelHasItsOwnEnd) {
  const JobErrors errors(
      "scancel",
      Result(210,
             "scancel: error: Kill job error on job id 4: Access/permission denied\n"
             "scancel: error: Kill job error on job id 3_77: Invalid job id specified\n"
             "scancel: error: Kill job error on job id 5: Job/step already completing or "
             "completed\n"));
  EXPECT_TRUE(errors.Of({1}).ok());
  EXPECT_TRUE(errors.Of({3, 7}).ok());
  EXPECT_EQ(errors.Of({4}).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Words(errors.Of({4})), HasSubstr("scancel: Access/permission denied"));
  EXPECT_EQ(errors.Of({3, 77}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(errors.Of({5}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(JobErrorsTest, EachJobOfAHoldHasItsOwnEnd) {
  const JobErrors errors("scontrol", Result(1,
                                            "3_77: Invalid job id specified\n"
                                            "Invalid job id specified for job 99999\n"
                                            "Invalid user id for job 4\n"
                                            "Job has already finished for job 5\n"
                                            "slurm_suspend error: No error\n"));
  EXPECT_TRUE(errors.Of({1}).ok());
  EXPECT_EQ(errors.Of({3, 77}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(errors.Of({99999}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(errors.Of({4}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(errors.Of({5}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(JobErrorsTest, AFailureThatNamesNotAllJobsIsThatOfAllOthers) {
  for (const char* words :
       {"", "scancel: error: Invalid job id bogus\n",
        "scancel: error: Kill job error on job id 4: Access/permission denied\nmunge is gone\n",
        "slurm_suspend error: Unable to contact slurm controller (connect failure)\n"}) {
    const absl::Status status = JobErrors("scancel", Result(1, words)).Of({1});
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << words;
    EXPECT_THAT(Words(status), HasSubstr(words));
  }
}

TEST(JobErrorsTest, WhatSucceededHasNoErrors) {
  EXPECT_TRUE(JobErrors("scancel", Result(0, "")).Of({1}).ok());
}

}  // namespace
}  // namespace muster::slurm
