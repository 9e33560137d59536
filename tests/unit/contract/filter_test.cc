#include "contract/filter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace muster::contract {
namespace {

v1::Job ExampleJob() {
  v1::Job job;
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_name("train \"big\"");
  job.set_cluster("gpu");
  job.set_project("vision");
  (*job.mutable_labels())["team"] = "a";
  job.mutable_create_time()->set_seconds(1767225600);  // 2026-01-01T00:00:00Z
  return job;
}

bool Takes(std::string_view filter) {
  const auto parsed = ParseFilter(filter);
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
  EXPECT_FALSE(ParseFilter("held = yes").ok());
}

TEST(Filter, ReadsAnAbsentLabelAsEqualToNothing) {
  EXPECT_FALSE(Takes("label.other = \"\""));
  EXPECT_TRUE(Takes("label.other != \"\""));
  EXPECT_TRUE(Takes("label.other != x"));
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

TEST(Filter, BindsAndTighterThanOr) {
  EXPECT_TRUE(Takes("state = RUNNING OR state = QUEUED AND cluster = none"));
  EXPECT_FALSE(Takes("(state = RUNNING OR state = QUEUED) AND cluster = none"));
  EXPECT_TRUE(Takes("cluster = none AND state = QUEUED OR state = RUNNING"));
}

TEST(Filter, NegatesOneFactor) {
  EXPECT_FALSE(Takes("NOT state = RUNNING"));
  EXPECT_TRUE(Takes("NOT (state = RUNNING AND cluster = none)"));
  EXPECT_FALSE(Takes("NOT state = RUNNING AND cluster = gpu"));
}

TEST(Filter, SaysWhereItIsWrongAndWhatWasExpected) {
  const auto message = [](std::string_view filter) {
    return std::string(ParseFilter(filter).status().message());
  };
  EXPECT_EQ(message("state RUNNING"), "filter: expected = or != at character 7, found \"RUNNING\"");
  EXPECT_EQ(message("state = RUNNING AND"),
            "filter: expected state, name, cluster, project, held, create_time, label.KEY, NOT or "
            "\"(\" at "
            "character 20, found the end");
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
                           "state = RUNNING state = QUEUED",
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
    EXPECT_EQ(ParseFilter(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Filter, BoundsItsDepthAndLength) {
  const auto nested = [](int depth) {
    return std::string(depth, '(') + "state = RUNNING" + std::string(depth, ')');
  };
  EXPECT_TRUE(ParseFilter(nested(kMaxFilterDepth - 1)).ok());
  EXPECT_FALSE(ParseFilter(nested(kMaxFilterDepth)).ok());
  EXPECT_FALSE(ParseFilter("name = " + std::string(kMaxFilterBytes, 'x')).ok());
}

RC_GTEST_PROP(Filter, NeverFailsOtherwiseThanWithAStatus, (const std::string& text)) {
  (void)ParseFilter(text);
}

// Pieces of the grammar in random order come near to valid filters, where a parser has its edges.
RC_GTEST_PROP(Filter, SurvivesAnySequenceOfItsOwnTokens, ()) {
  const auto tokens = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "state", "name", "label.a", "create_time", "=", "!=", "<", ">=", "(", ")", "AND", "OR", "NOT",
      "RUNNING", "\"x y\"", "2026-01-01T00:00:00Z", "\"", "!"));
  std::string text;
  for (const std::string& token : tokens) text += token + " ";
  const auto parsed = ParseFilter(text);
  if (parsed.ok()) (void)parsed->Matches(ExampleJob());
}

}  // namespace
}  // namespace muster::contract
