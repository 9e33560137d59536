#include "agents/core/launch_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;

std::shared_ptr<const agent::v1::Assignment> WithUses(int count) {
  agent::v1::Assignment assignment;
  assignment.set_run_key("k7m2-42-1");
  for (int i = 0; i < count; ++i) assignment.mutable_spec()->add_secrets()->set_name("hf");
  return std::make_shared<const agent::v1::Assignment>(assignment);
}

FetchSecrets Telling(int count) {
  return [count](const std::string& run_key) {
    EXPECT_EQ(run_key, "k7m2-42-1");
    agent::v1::FetchRunSecretsResponse response;
    for (int i = 0; i < count; ++i) response.add_secrets()->set_value("value");
    return response;
  };
}

TEST(LaunchSecretsTest, ARunWithoutSecretsAsksNobody) {
  const auto plain = WithUses(0);
  const auto whole = WithSecrets(plain, nullptr);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(*whole, plain);
}

TEST(LaunchSecretsTest, TheValuesAreInACopyAndNotInWhatTheJournalHas) {
  const auto plain = WithUses(2);
  const auto whole = WithSecrets(plain, Telling(2));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ((*whole)->secrets_size(), 2);
  EXPECT_EQ((*whole)->secrets(1).value(), "value");
  EXPECT_EQ(plain->secrets_size(), 0);
}

TEST(LaunchSecretsTest, TooFewOfThemLaunchNothing) {
  EXPECT_TRUE(absl::IsUnavailable(WithSecrets(WithUses(2), Telling(1)).status()));
}

TEST(LaunchSecretsTest, WhatTheBrokerWillNotTellEndsTheRunAndTroubleDefersIt) {
  const auto kind = [](absl::StatusCode code, const char* reason) {
    return NotLaunchedWithout(contract::Error(code, reason, "some words")).kind;
  };
  using Kind = LaunchOutcome::Kind;
  EXPECT_EQ(kind(absl::StatusCode::kNotFound, "NO_SUCH_SECRET"), Kind::kRefused);
  EXPECT_EQ(kind(absl::StatusCode::kFailedPrecondition, "SECRETS_NEED_TLS"), Kind::kRefused);
  EXPECT_EQ(kind(absl::StatusCode::kDataLoss, "SECRET_SEALED"), Kind::kRefused);
  EXPECT_EQ(kind(absl::StatusCode::kFailedPrecondition, "NOT_CONNECTED"), Kind::kDeferred);
  EXPECT_EQ(kind(absl::StatusCode::kUnavailable, "SECRETS_LOCKED"), Kind::kDeferred);
  EXPECT_EQ(NotLaunchedWithout(absl::UnavailableError("gone")).kind, Kind::kDeferred);
  EXPECT_EQ(NotLaunchedWithout(absl::UnimplementedError("an older broker")).kind, Kind::kDeferred);
}

TEST(LaunchSecretsTest, ARefusalHasTheWordsAndTheRemedy) {
  const LaunchOutcome outcome = NotLaunchedWithout(
      contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_SECRET", "there is no secret hf"));
  EXPECT_THAT(outcome.failure.message(), HasSubstr("there is no secret hf"));
  EXPECT_THAT(outcome.failure.remedy(), HasSubstr("muster secret list"));
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_FALSE(outcome.failure.retriable());
}

}  // namespace
}  // namespace muster::agents
