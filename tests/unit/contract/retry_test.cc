#include "contract/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

v1::JobSpec SpecWith(uint32_t max_runs, int64_t seconds, int32_t nanos = 0) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("true");
  spec.mutable_retry()->set_max_runs(max_runs);
  spec.mutable_retry()->mutable_backoff()->set_seconds(seconds);
  spec.mutable_retry()->mutable_backoff()->set_nanos(nanos);
  return spec;
}

v1::Run Ended(v1::RunState state, v1::FailureClass failure_class, bool retriable) {
  v1::Run run;
  run.set_state(state);
  run.mutable_failure()->set_failure_class(failure_class);
  run.mutable_failure()->set_retriable(retriable);
  return run;
}

TEST(RetryRule, ASpecWithoutAPolicyHasTheDefaults) {
  const RetryRule rule = RetryRuleOf({});
  EXPECT_EQ(rule.max_runs, 11u);
  EXPECT_FALSE(rule.on_preemption);
  EXPECT_EQ(rule.backoff, absl::Seconds(10));
}

TEST(RetryRule, ANormalizedPolicyShowsItsDefaultsAndAMissingOneStaysMissing) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("true");
  EXPECT_FALSE(NormalizeJobSpec(spec)->has_retry());
  spec.mutable_retry()->set_on_preemption(true);
  const auto normal = NormalizeJobSpec(spec);
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_EQ(normal->retry().max_runs(), 11u);
  EXPECT_EQ(normal->retry().backoff().seconds(), 10);
}

v1::Run ProgramFailed(int32_t code, int32_t signal = 0) {
  v1::Run run = Ended(v1::RUN_STATE_FAILED, v1::FAILURE_CLASS_PROGRAM, false);
  run.mutable_exit()->set_code(code);
  run.mutable_exit()->set_signal(signal);
  return run;
}

TEST(RetryRule, AFailureOfTheProgramIsFollowedOnlyIfItsUserSaysSo) {
  EXPECT_FALSE(IsWorthAnother(ProgramFailed(1), {}));
  EXPECT_TRUE(IsWorthAnother(ProgramFailed(1), {.on_failure = true}));
  EXPECT_TRUE(IsWorthAnother(ProgramFailed(0, 9), {.on_failure = true}));
  const RetryRule rule = {.exit_codes = {75, 9}};
  EXPECT_TRUE(IsWorthAnother(ProgramFailed(75), rule));
  EXPECT_FALSE(IsWorthAnother(ProgramFailed(1), rule));
  EXPECT_FALSE(IsWorthAnother(ProgramFailed(9, 9), rule)) << "a signal is no exit code";
}

TEST(RetryRule, WhatIsNotTheProgramsDoingStaysAsItWas) {
  const RetryRule rule = {.on_failure = true, .exit_codes = {137}};
  for (const auto failure : {v1::FAILURE_CLASS_OOM, v1::FAILURE_CLASS_TIMEOUT,
                             v1::FAILURE_CLASS_CONFIG, v1::FAILURE_CLASS_PREEMPTED}) {
    v1::Run run = Ended(v1::RUN_STATE_FAILED, failure, false);
    run.mutable_exit()->set_code(137);
    EXPECT_FALSE(IsWorthAnother(run, rule)) << failure;
  }
  EXPECT_FALSE(IsWorthAnother(Ended(v1::RUN_STATE_LOST, v1::FAILURE_CLASS_PROGRAM, true), rule));
  EXPECT_FALSE(
      IsWorthAnother(Ended(v1::RUN_STATE_CANCELED, v1::FAILURE_CLASS_PROGRAM, true), rule));
}

TEST(RetryRule, ExitCodesAreThoseOfAProgramThatFailed) {
  v1::JobSpec spec = SpecWith(3, 1);
  spec.mutable_retry()->set_on_failure(true);
  for (const int code : {1, 75, 255}) spec.mutable_retry()->add_exit_codes(code);
  const auto normal = NormalizeJobSpec(spec);
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_TRUE(RetryRuleOf(*normal).on_failure);
  EXPECT_THAT(RetryRuleOf(*normal).exit_codes, ::testing::ElementsAre(1, 75, 255));
  for (const int code : {0, -1, 256}) {
    v1::JobSpec bad = spec;
    bad.mutable_retry()->add_exit_codes(code);
    const auto refused = NormalizeJobSpec(bad).status();
    EXPECT_EQ(GetBadRequest(refused)->field_violations(0).field(), "retry.exit_codes[3]") << code;
  }
  for (int i = 0; i < kMaxRetryExitCodes; ++i) spec.mutable_retry()->add_exit_codes(7);
  EXPECT_FALSE(NormalizeJobSpec(spec).ok());
}

TEST(RetryRule, NoWaitAtAllCanBeAskedFor) {
  const auto normal = NormalizeJobSpec(SpecWith(0, 0));
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_EQ(RetryRuleOf(*normal).backoff, absl::ZeroDuration());
}

TEST(RetryRule, BoundsAreNamedWithTheirField) {
  EXPECT_TRUE(NormalizeJobSpec(SpecWith(100, 3600)).ok());
  struct {
    v1::JobSpec spec;
    const char* field;
  } const cases[] = {{SpecWith(101, 1), "retry.max_runs"},
                     {SpecWith(1, -1), "retry.backoff"},
                     {SpecWith(1, 3600, 1), "retry.backoff"},
                     {SpecWith(1, 9'000'000'000'000'000'000), "retry.backoff"},
                     {SpecWith(1, 1, 1'000'000'000), "retry.backoff"},
                     {SpecWith(1, 1, -1), "retry.backoff"}};
  for (const auto& c : cases) {
    const auto bad = GetBadRequest(NormalizeJobSpec(c.spec).status());
    ASSERT_TRUE(bad.has_value()) << c.field;
    EXPECT_EQ(bad->field_violations(0).field(), c.field);
  }
  EXPECT_THAT(std::string(NormalizeJobSpec(SpecWith(1, 7200)).status().message()),
              testing::HasSubstr("retry.backoff: 2h is out of range; use 0s to 1h"));
}

TEST(IsWorthAnother, OnlyARunThatFailedByItsClustersDoing) {
  const RetryRule plain;
  RetryRule stubborn;
  stubborn.on_preemption = true;
  using v1::FAILURE_CLASS_INFRA, v1::FAILURE_CLASS_IMAGE, v1::FAILURE_CLASS_PREEMPTED;
  EXPECT_TRUE(IsWorthAnother(Ended(v1::RUN_STATE_FAILED, FAILURE_CLASS_INFRA, true), plain));
  EXPECT_TRUE(IsWorthAnother(Ended(v1::RUN_STATE_FAILED, FAILURE_CLASS_IMAGE, true), plain));
  EXPECT_FALSE(IsWorthAnother(Ended(v1::RUN_STATE_FAILED, FAILURE_CLASS_INFRA, false), plain));
  EXPECT_FALSE(IsWorthAnother(Ended(v1::RUN_STATE_LOST, FAILURE_CLASS_INFRA, true), plain));
  EXPECT_FALSE(IsWorthAnother(Ended(v1::RUN_STATE_CANCELED, FAILURE_CLASS_INFRA, true), plain));
  EXPECT_FALSE(IsWorthAnother(Ended(v1::RUN_STATE_FAILED, FAILURE_CLASS_PREEMPTED, true), plain));
  EXPECT_TRUE(
      IsWorthAnother(Ended(v1::RUN_STATE_FAILED, FAILURE_CLASS_PREEMPTED, false), stubborn));
}

TEST(Backoff, DoublesUpToAnHour) {
  const RetryRule rule;
  EXPECT_EQ(BackoffBefore(2, rule), absl::Seconds(10));
  EXPECT_EQ(BackoffBefore(3, rule), absl::Seconds(20));
  EXPECT_EQ(BackoffBefore(10, rule), absl::Seconds(2560));
  EXPECT_EQ(BackoffBefore(11, rule), absl::Hours(1));
  EXPECT_EQ(BackoffBefore(100, rule), absl::Hours(1));
  RetryRule none;
  none.backoff = absl::ZeroDuration();
  EXPECT_EQ(BackoffBefore(100, none), absl::ZeroDuration());
}

}  // namespace
}  // namespace muster::contract
