#include "broker/notify/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/notify/changes.h"

namespace muster::notify {
namespace {

using Json = nlohmann::json;

v1::JobChange Failed() {
  v1::JobChange change = EndOf(42, 1234, v1::JOB_STATE_FAILED);
  change.mutable_job()->mutable_failure()->set_message("rank 1 exited with code 3");
  change.mutable_job()->mutable_failure()->set_remedy("Read its log.");
  change.mutable_job()->mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  return change;
}

Json Parsed(const std::string& body) { return Json::parse(body, nullptr, false); }

TEST(Payload, HasTheJobAndTheStepAsTheApiGivesThem) {
  const Json body = Parsed(BodyOf(Webhook::Format::kMuster, "k7m2", Failed()));
  EXPECT_EQ(body["id"], "1234");
  EXPECT_EQ(body["type"], "job.failed");
  EXPECT_EQ(body["broker"], "k7m2");
  EXPECT_EQ(body["message"], SentenceOf(Failed()));
  EXPECT_EQ(body["job"]["id"], "42");
  EXPECT_EQ(body["job"]["state"], "JOB_STATE_FAILED");
  EXPECT_EQ(body["job"]["failure"]["failureClass"], "FAILURE_CLASS_PROGRAM");
  EXPECT_EQ(body["transition"]["sequence"], "1234");
  EXPECT_EQ(body["transition"]["time"], "2026-01-02T03:04:05Z");
}

// Memory has the run that changed, the store has none, and the job may be further by now.
TEST(Payload, IsTheSameFromMemoryAndFromTheStore) {
  v1::JobChange memory = EndOf(42, 1234, v1::JOB_STATE_RUNNING);
  v1::JobChange store = memory;
  memory.mutable_job()->add_runs()->set_cluster("lab");
  v1::Job& later = *store.mutable_job();
  later.set_state(v1::JOB_STATE_FAILED);
  later.set_job_sequence(9);
  later.mutable_end_time()->set_seconds(1'767'323'999);
  later.mutable_exit()->set_code(3);
  later.mutable_failure()->set_message("rank 1 exited with code 3");
  later.mutable_state_reason()->set_message("it waits for its next run");
  later.mutable_retry_time()->set_seconds(1'767'323'999);
  EXPECT_EQ(BodyOf(Webhook::Format::kMuster, "k7m2", memory),
            BodyOf(Webhook::Format::kMuster, "k7m2", store));
}

TEST(Payload, SaysInOneLineWhatHappenedAndWhatToDo) {
  EXPECT_THAT(SentenceOf(Failed()),
              ::testing::StartsWith("Job 42 (train) of ada in project ml FAILED on lab: rank 1 "
                                    "exited with code 3"));
  EXPECT_THAT(SentenceOf(Failed()), ::testing::HasSubstr("Read its log."));
  EXPECT_EQ(SentenceOf(EndOf(42, 1, v1::JOB_STATE_SUCCEEDED)),
            "Job 42 (train) of ada in project ml SUCCEEDED on lab");
}

TEST(Payload, SaysWhoCanceledAJob) {
  v1::JobChange change = EndOf(42, 1, v1::JOB_STATE_CANCELED);
  change.mutable_transition()->mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_USER);
  change.mutable_transition()->mutable_evidence()->set_detail("canceled by bob: too slow");
  EXPECT_THAT(SentenceOf(change),
              ::testing::EndsWith("CANCELED on lab: canceled by bob: too slow"));
}

TEST(Payload, LeavesNoTextOfAUserForSlackToInterpret) {
  v1::JobChange change = Failed();
  change.mutable_job()->set_name("<!channel> & \"<b>\"\n");
  const Json body = Parsed(BodyOf(Webhook::Format::kSlack, "k7m2", change));
  ASSERT_EQ(body.size(), 1U);
  EXPECT_THAT(std::string(body["text"]),
              ::testing::StartsWith("Job 42 (&lt;!channel&gt; &amp; \"&lt;b&gt;\"\n) of ada"));
}

}  // namespace
}  // namespace muster::notify
