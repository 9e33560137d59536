#include "agents/muster/answers.h"

#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::remote {
namespace {

using Kind = agents::LaunchOutcome::Kind;
using Proof = agents::FenceOutcome::Kind;
using ::testing::HasSubstr;

TEST(NotSubmitted, ARefusalEndsTheRunWithTheOtherBrokersWords) {
  const agents::LaunchOutcome outcome = NotSubmitted(
      contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", "no GPUs there"));
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("no GPUs there"));
}

TEST(NotSubmitted, WhatMayHaveArrivedIsUnclear) {
  for (const absl::Status& error :
       {absl::UnavailableError("cut"), absl::DeadlineExceededError("late"),
        absl::InternalError("odd"), absl::UnknownError("odd"), absl::CancelledError("gone")}) {
    EXPECT_EQ(NotSubmitted(error).kind, Kind::kUnclear) << error;
  }
}

TEST(NotSubmitted, ABrokerThatIsFullIsAskedAgainWhenItSays) {
  const agents::LaunchOutcome outcome = NotSubmitted(contract::RetryableError(
      absl::StatusCode::kResourceExhausted, "QUEUE_FULL", "too many wait", absl::Seconds(3)));
  EXPECT_EQ(outcome.kind, Kind::kDeferred);
  EXPECT_EQ(outcome.retry_after, absl::Seconds(3));
}

TEST(NotSubmitted, AnAccountOrAProjectThatIsNotAcceptedFailsNoJob) {
  for (const absl::Status& error :
       {absl::UnauthenticatedError("expired"), absl::PermissionDeniedError("no member any more"),
        absl::AlreadyExistsError("another spec"),
        contract::Error(absl::StatusCode::kFailedPrecondition, "PROJECT_ARCHIVED", "archived"),
        contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_PROJECT", "none")}) {
    EXPECT_EQ(NotSubmitted(error).kind, Kind::kDeferred) << error;
  }
}

TEST(NotBrought, NothingWasSubmittedSoThatNothingIsUnclear) {
  EXPECT_EQ(NotBrought(absl::UnavailableError("cut")).kind, Kind::kDeferred);
  EXPECT_EQ(NotBrought(absl::InvalidArgumentError("bad")).kind, Kind::kRefused);
}

TEST(FenceBy, OnlyAnEndIsAProof) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(FenceBy(job).kind, Proof::kNotYet);
  job.set_state(v1::JOB_STATE_CANCELED);
  EXPECT_EQ(FenceBy(job).kind, Proof::kNeverBegins);
  job.mutable_start_time()->set_seconds(1);
  EXPECT_EQ(FenceBy(job).kind, Proof::kEnded);
  job.set_state(v1::JOB_STATE_FAILED);
  job.add_runs()->set_state(v1::RUN_STATE_LOST);
  EXPECT_EQ(FenceBy(job).kind, Proof::kImpossible);
}

}  // namespace
}  // namespace muster::remote
