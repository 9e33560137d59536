#include "contract/filter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace muster::contract {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1767225600) + absl::Hours(36);

v1::Job ExampleJob() {
  v1::Job job;
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_name("train \"big\"");
  job.set_cluster("gpu");
  job.set_project("vision");
  (*job.mutable_labels())["team"] = "a";
  job.mutable_create_time()->set_seconds(1767225600);  // 2026-01-01T00:00:00Z
  job.set_id(42);
  job.set_user("ada");
  job.set_priority(-3);
  job.set_cluster_kind(v1::CLUSTER_KIND_SLURM);
  job.mutable_start_time()->set_seconds(1767225600 + 3600);
  job.mutable_exit()->set_code(75);
  return job;
}

bool Takes(std::string_view filter) {
  const auto parsed = ParseFilter(filter, kNow);
  EXPECT_TRUE(parsed.ok()) << filter << ": " << parsed.status();
  return parsed.ok() && parsed->Matches(ExampleJob());
}

TEST(Filter, TakesEverythingWhenEmpty) {
  EXPECT_TRUE(Takes(""));
  EXPECT_TRUE(Takes("  \n\t"));
}

TEST(Filter, ComparesEachField) {
  EXPECT_TRUE(Takes("state = RUNNING"));
  EXPECT_TRUE(Takes("state = running"));
  EXPECT_FALSE(Takes("state = QUEUED"));
  EXPECT_TRUE(Takes("state != QUEUED"));
  EXPECT_TRUE(Takes(R"(name = "train \"big\"")"));
  EXPECT_FALSE(Takes("name = train"));
  EXPECT_TRUE(Takes("cluster=gpu"));
  EXPECT_TRUE(Takes("cluster!=cpu"));
  EXPECT_TRUE(Takes("project = \"vision\""));
  EXPECT_TRUE(Takes("label.team = a"));
  EXPECT_FALSE(Takes("label.team != a"));
  EXPECT_TRUE(Takes("held = false"));
  EXPECT_TRUE(Takes("held != true"));
  EXPECT_FALSE(Takes("held = true"));
  EXPECT_FALSE(ParseFilter("held = yes", kNow).ok());
}

TEST(Filter, ComparesNumbersAndKinds) {
  EXPECT_TRUE(Takes("id = 42 user = ada priority < 0"));
  EXPECT_TRUE(Takes("priority >= -3 AND priority <= -3"));
  EXPECT_FALSE(Takes("priority > -3"));
  EXPECT_TRUE(Takes("exit_code = 75"));
  EXPECT_TRUE(Takes("exit_code > 1"));
  EXPECT_TRUE(Takes("cluster_kind = slurm"));
  EXPECT_FALSE(Takes("cluster_kind = KUBERNETES"));
  EXPECT_FALSE(Takes("failure_class = PROGRAM"));
  EXPECT_FALSE(Takes("failure_class != PROGRAM"));
}

TEST(Filter, AJobThatASignalEndedHasNoExitCode) {
  v1::Job job;
  job.mutable_exit()->set_signal(9);
  for (const char* filter : {"exit_code = 0", "exit_code != 0", "exit_code:*"})
    EXPECT_FALSE(ParseFilter(filter, kNow)->Matches(job)) << filter;
  job.mutable_exit()->clear_signal();
  EXPECT_TRUE(ParseFilter("exit_code = 0", kNow)->Matches(job));
}

TEST(Filter, WhatIsNotThereEqualsNothingAndDiffersFromNothing) {
  EXPECT_FALSE(Takes("label.other = \"\""));
  EXPECT_FALSE(Takes("label.other != \"\""));
  EXPECT_FALSE(Takes("label.other != x"));
  EXPECT_TRUE(Takes("NOT label.other = x"));
  EXPECT_FALSE(Takes("end_time > 2020-01-01T00:00:00Z"));
  EXPECT_FALSE(Takes("end_time <= 2020-01-01T00:00:00Z"));
}

TEST(Filter, TellsWhatIsThere) {
  EXPECT_TRUE(Takes("label.team:*"));
  EXPECT_FALSE(Takes("label.other:*"));
  EXPECT_TRUE(Takes("NOT label.other:*"));
  EXPECT_TRUE(Takes("start_time:* exit_code:* cluster:* cluster_kind:*"));
  EXPECT_FALSE(Takes("end_time:* OR failure_class:*"));
  EXPECT_FALSE(ParseFilter("name:*", kNow).ok());
}

TEST(Filter, ANameMayBeAPattern) {
  EXPECT_TRUE(Takes("name = train*"));
  EXPECT_TRUE(Takes("name = \"*big*\""));
  EXPECT_TRUE(Takes("name = \"t*n*\\\"\""));
  EXPECT_FALSE(Takes("name = rain*"));
  EXPECT_FALSE(Takes("name != train*"));
  EXPECT_TRUE(Takes("name != *small*"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_TRUE(MatchesPattern("aab", "a*ab"));
  EXPECT_TRUE(MatchesPattern("abcabd", "*abd"));
  EXPECT_FALSE(MatchesPattern("abcab", "*abd"));
  EXPECT_FALSE(MatchesPattern("a", ""));
}

TEST(Filter, TimesMayBeRelativeToNow) {
  EXPECT_TRUE(Takes("create_time > -2d"));
  EXPECT_TRUE(Takes("create_time = -36h"));
  EXPECT_TRUE(Takes("create_time = -1d12h"));
  EXPECT_FALSE(Takes("create_time > -1d"));
  EXPECT_TRUE(Takes("start_time < -34h"));
}

TEST(Filter, OrdersTimes) {
  EXPECT_TRUE(Takes("create_time = 2026-01-01T00:00:00Z"));
  EXPECT_TRUE(Takes("create_time = \"2026-01-01T01:00:00+01:00\""));
  EXPECT_TRUE(Takes("create_time >= 2026-01-01T00:00:00Z"));
  EXPECT_TRUE(Takes("create_time <= 2026-01-01T00:00:00Z"));
  EXPECT_FALSE(Takes("create_time > 2026-01-01T00:00:00Z"));
  EXPECT_FALSE(Takes("create_time < 2026-01-01T00:00:00Z"));
  EXPECT_TRUE(Takes("create_time > 2025-12-31T23:59:59.999Z"));
  EXPECT_TRUE(Takes("create_time != 2025-12-31T23:59:59.999Z"));
}

TEST(Filter, BindsOrTighterThanAnd) {
  EXPECT_FALSE(Takes("state = RUNNING OR state = QUEUED AND cluster = none"));
  EXPECT_TRUE(Takes("state = RUNNING OR (state = QUEUED AND cluster = none)"));
  EXPECT_TRUE(Takes("cluster = gpu AND state = QUEUED OR state = RUNNING"));
  EXPECT_FALSE(Takes("cluster = none AND state = QUEUED OR state = RUNNING"));
}

TEST(Filter, ComparisonsSideBySideMeanAnd) {
  EXPECT_TRUE(Takes("state = RUNNING cluster = gpu"));
  EXPECT_FALSE(Takes("state = RUNNING cluster = none"));
  EXPECT_TRUE(Takes("cluster = gpu NOT state = QUEUED (label.team = a)"));
  EXPECT_TRUE(Takes("cluster = gpu state = QUEUED OR state = RUNNING"));
}

TEST(Filter, NegatesOneFactor) {
  EXPECT_FALSE(Takes("NOT state = RUNNING"));
  EXPECT_TRUE(Takes("NOT (state = RUNNING AND cluster = none)"));
  EXPECT_FALSE(Takes("NOT state = RUNNING AND cluster = gpu"));
}

TEST(Filter, SaysWhereItIsWrongAndWhatWasExpected) {
  const auto message = [](std::string_view filter) {
    return std::string(ParseFilter(filter, kNow).status().message());
  };
  EXPECT_EQ(message("state RUNNING"), "filter: expected = or != at character 7, found \"RUNNING\"");
  EXPECT_EQ(
      message("state = RUNNING AND"),
      "filter: expected id, name, state, project, user, cluster, cluster_kind, priority, held, "
      "create_time, start_time, end_time, failure_class, exit_code, label.KEY, NOT or \"(\" at "
      "character 20, found the end");
  EXPECT_EQ(message("status = RUNNING"),
            "filter: \"status\" at character 1 is no field; did you mean state?");
  EXPECT_EQ(message("user = ada AND clutser = a"),
            "filter: \"clutser\" at character 16 is no field; did you mean cluster?");
  EXPECT_EQ(message("user = "),
            "filter: the value of user is empty at character 8; if it comes from a variable of the "
            "shell, set that");
  EXPECT_EQ(message("(state = RUNNING"),
            "filter: expected AND, OR or \")\" at character 17, found the end");
  EXPECT_EQ(
      message("state = BUSY"),
      "filter: expected QUEUED, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED or CANCELED at "
      "character 9, found \"BUSY\"");
}

TEST(Filter, RefusesWhatIsNotInTheGrammar) {
  for (const char* text : {"x",
                           "x = 1",
                           "state",
                           "state =",
                           "= RUNNING",
                           "state == RUNNING",
                           "state < RUNNING",
                           "name >= a",
                           "exit_code = many",
                           "create_time > -1y",
                           "user > a",
                           "state:*",
                           "label.a:b",
                           "failure_class = none",
                           "state = RUNNING and state = QUEUED",
                           "()",
                           "(state = RUNNING",
                           "state = RUNNING)",
                           "NOT",
                           "NOT NOT state = RUNNING",
                           "AND",
                           "label. = x",
                           "label = x",
                           "state ! RUNNING",
                           "name = \"open",
                           "create_time = yesterday",
                           "state = UNSPECIFIED",
                           "create_time > 2026-01-01",
                           "name = (",
                           "state = \"RUNNING\\"}) {
    EXPECT_EQ(ParseFilter(text, kNow).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Filter, BoundsItsDepthAndLength) {
  const auto nested = [](int depth) {
    return std::string(depth, '(') + "state = RUNNING" + std::string(depth, ')');
  };
  EXPECT_TRUE(ParseFilter(nested(kMaxFilterDepth - 1), kNow).ok());
  EXPECT_FALSE(ParseFilter(nested(kMaxFilterDepth), kNow).ok());
  EXPECT_FALSE(ParseFilter("name = " + std::string(kMaxFilterBytes, 'x'), kNow).ok());
}

RC_GTEST_PROP(Filter, NeverFailsOtherwiseThanWithAStatus, (const std::string& text)) {
  (void)ParseFilter(text, kNow);
}

// Pieces of the grammar in random order come near to valid filters, where a parser has its edges.
RC_GTEST_PROP(Filter, SurvivesAnySequenceOfItsOwnTokens, ()) {
  const auto tokens = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "state", "name", "label.a", "label.a:*", "create_time", "end_time", "-1h", "exit_code", "7",
      "=", "!=", "<", ">=", "(", ")", "AND", "OR", "NOT", "RUNNING", "\"x y\"",
      "2026-01-01T00:00:00Z", "\"", "!"));
  std::string text;
  for (const std::string& token : tokens) text += token + " ";
  const auto parsed = ParseFilter(text, kNow);
  if (parsed.ok()) (void)parsed->Matches(ExampleJob());
}

}  // namespace
}  // namespace muster::contract
