#include "broker/notify/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace muster::notify {
namespace {

using Json = nlohmann::json;

constexpr int64_t kStart = 1'767'323'045;

void Set(int64_t seconds, google::protobuf::Timestamp* time) { time->set_seconds(seconds); }

v1::Run RunOf(uint32_t number, int64_t assigned, int64_t ended, v1::RunState state) {
  v1::Run run;
  run.set_number(number);
  run.set_cluster("lab");
  run.set_state(state);
  Set(assigned, run.mutable_assign_time());
  Set(ended, run.mutable_end_time());
  return run;
}

v1::Transition StepOf(uint32_t run, v1::RunState state, std::string_view detail) {
  v1::Transition step;
  step.set_run(run);
  step.set_run_state(state);
  step.set_job_state(v1::JOB_STATE_RUNNING);
  Set(kStart + 7, step.mutable_time());
  step.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_SQUEUE);
  step.mutable_evidence()->set_detail(std::string(detail));
  return step;
}

// A job that failed on its first run and succeeded on its second.
History Retried() {
  History history;
  v1::Job& job = history.job;
  job.set_id(42);
  job.set_name("train");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.set_job_sequence(10);
  (*job.mutable_labels())["team"] = "vision";
  Set(kStart, job.mutable_create_time());
  Set(kStart + 40, job.mutable_end_time());
  *job.add_runs() = RunOf(1, kStart + 5, kStart + 20, v1::RUN_STATE_FAILED);
  job.mutable_runs(0)->mutable_failure()->set_message("the node went away");
  *job.add_runs() = RunOf(2, kStart + 30, kStart + 40, v1::RUN_STATE_SUCCEEDED);
  v1::Transition submitted;
  submitted.set_kind(v1::TRANSITION_KIND_SUBMITTED);
  history.steps = {submitted, StepOf(1, v1::RUN_STATE_RUNNING, "R on n1"),
                   StepOf(2, v1::RUN_STATE_RUNNING, "R on n2")};
  return history;
}

std::vector<Json> SpansOf(const History& history) {
  const Json body = Json::parse(TraceOf("k7m2", history), nullptr, false);
  return body["resourceSpans"][0]["scopeSpans"][0]["spans"];
}

std::vector<std::string> NamesOf(const std::vector<Json>& spans) {
  std::vector<std::string> names;
  for (const Json& span : spans) names.push_back(span["name"]);
  return names;
}

std::string Seconds(const Json& span, const char* key) {
  const std::string nanos = span[key];
  return std::to_string(std::stoll(nanos) / 1'000'000'000 - kStart);
}

TEST(Trace, HasTheJobItsWaitsAndItsRunsBelowIt) {
  const std::vector<Json> spans = SpansOf(Retried());
  EXPECT_THAT(NamesOf(spans), testing::ElementsAre("job", "waiting", "run", "waiting", "run"));
  std::vector<std::string> times;
  for (const Json& span : spans)
    times.push_back(Seconds(span, "startTimeUnixNano") + "-" + Seconds(span, "endTimeUnixNano"));
  EXPECT_THAT(times, testing::ElementsAre("0-40", "0-5", "5-20", "20-30", "30-40"));
  EXPECT_FALSE(spans[0].contains("parentSpanId"));
  std::map<std::string, int> ids;
  for (const Json& span : spans) {
    EXPECT_EQ(span["traceId"], spans[0]["traceId"]);
    EXPECT_EQ(std::string(span["traceId"]).size(), 32U);
    EXPECT_EQ(std::string(span["spanId"]).size(), 16U);
    ++ids[span["spanId"]];
    if (span != spans[0]) {
      EXPECT_EQ(span["parentSpanId"], spans[0]["spanId"]);
    }
  }
  EXPECT_EQ(ids.size(), spans.size());
}

TEST(Trace, HasTheStatesOfEachRunWithTheirEvidence) {
  const std::vector<Json> spans = SpansOf(Retried());
  EXPECT_EQ(spans[0]["events"][0]["name"], "SUBMITTED");
  ASSERT_EQ(spans[2]["events"].size(), 1U);
  EXPECT_EQ(spans[2]["events"][0]["name"], "RUNNING");
  EXPECT_THAT(spans[2]["events"][0]["attributes"].dump(), testing::HasSubstr("R on n1"));
  EXPECT_THAT(spans[4]["events"][0]["attributes"].dump(), testing::HasSubstr("R on n2"));
  EXPECT_EQ(spans[0]["droppedEventsCount"], 7);
}

TEST(Trace, SaysWhichSpansFailedAndWhy) {
  const std::vector<Json> spans = SpansOf(Retried());
  EXPECT_EQ(spans[0]["status"], (Json{{"code", 1}}));
  EXPECT_EQ(spans[2]["status"], (Json{{"code", 2}, {"message", "the node went away"}}));
  EXPECT_EQ(spans[4]["status"], (Json{{"code", 1}}));
  EXPECT_THAT(spans[0]["attributes"].dump(), testing::HasSubstr("muster.label.team"));
}

TEST(Trace, IsTheSameAtEachTryAndAnotherForEachJobAndBroker) {
  EXPECT_EQ(TraceOf("k7m2", Retried()), TraceOf("k7m2", Retried()));
  const std::string id = SpansOf(Retried())[0]["traceId"];
  EXPECT_THAT(TraceOf("other", Retried()), testing::Not(testing::HasSubstr(id)));
  History next = Retried();
  next.job.set_id(43);
  EXPECT_THAT(TraceOf("k7m2", next), testing::Not(testing::HasSubstr(id)));
}

TEST(Trace, HasOneWaitForAJobThatNeverRan) {
  History history = Retried();
  history.job.clear_runs();
  history.job.set_state(v1::JOB_STATE_CANCELED);
  const std::vector<Json> spans = SpansOf(history);
  EXPECT_THAT(NamesOf(spans), testing::ElementsAre("job", "waiting"));
  EXPECT_EQ(Seconds(spans[1], "endTimeUnixNano"), "40");
  EXPECT_EQ(spans[0]["status"], Json::object());
}

}  // namespace
}  // namespace muster::notify
