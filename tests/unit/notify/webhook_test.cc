#include "broker/notify/webhook.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/notify/changes.h"

namespace muster::notify {
namespace {

contract::Filter FilterOf(std::string_view text) {
  auto filter = contract::ParseFilter(text, absl::UnixEpoch());
  EXPECT_TRUE(filter.ok()) << filter.status();
  return filter.value_or(contract::Filter());
}

Webhook OfProject(std::string project) {
  Webhook webhook;
  webhook.project = std::move(project);
  return webhook;
}

Webhook OfFilter(std::string_view text) {
  Webhook webhook;
  webhook.filter = FilterOf(text);
  return webhook;
}

TEST(Webhook, WantsTheEndsOfAllJobs) {
  for (const v1::JobState state :
       {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELED}) {
    EXPECT_TRUE(Wants(Webhook(), EndOf(1, 2, state)));
  }
  EXPECT_FALSE(Wants(Webhook(), EndOf(1, 2, v1::JOB_STATE_QUEUED)));
  EXPECT_FALSE(Wants(Webhook(), EndOf(1, 2, v1::JOB_STATE_RUNNING)));
}

TEST(Webhook, WantsNoChangeWithoutAStep) {
  v1::JobChange change = EndOf(1, 2, v1::JOB_STATE_FAILED);
  change.clear_transition();
  EXPECT_FALSE(Wants(Webhook(), change));
}

TEST(Webhook, WantsNoNewLabelsOfAnEndedJob) {
  v1::JobChange change = EndOf(1, 2, v1::JOB_STATE_FAILED);
  change.mutable_transition()->set_run(0);
  change.mutable_transition()->set_kind(v1::TRANSITION_KIND_UPDATED);
  EXPECT_FALSE(Wants(Webhook(), change));
}

TEST(Webhook, WantsTheEndThatIsAUsersRequest) {
  v1::JobChange change = EndOf(1, 2, v1::JOB_STATE_CANCELED);
  change.mutable_transition()->set_run(0);
  change.mutable_transition()->clear_run_state();
  change.mutable_transition()->set_kind(v1::TRANSITION_KIND_CANCEL_REQUESTED);
  EXPECT_TRUE(Wants(Webhook(), change));
}

TEST(Webhook, WantsTheStartOfACommandAndNoOtherStepOfARunningJob) {
  Webhook webhook;
  webhook.states = {v1::JOB_STATE_RUNNING};
  v1::JobChange change = EndOf(1, 2, v1::JOB_STATE_RUNNING);
  change.mutable_transition()->set_run_state(v1::RUN_STATE_RUNNING);
  EXPECT_TRUE(Wants(webhook, change));
  change.mutable_transition()->set_run_state(v1::RUN_STATE_FINISHING);
  EXPECT_FALSE(Wants(webhook, change));
}

TEST(Webhook, WantsTheJobsOfItsProject) {
  EXPECT_TRUE(Wants(OfProject("ml"), EndOf(1, 2, v1::JOB_STATE_FAILED)));
  EXPECT_FALSE(Wants(OfProject("m"), EndOf(1, 2, v1::JOB_STATE_FAILED)));
}

TEST(Webhook, WantsTheJobsOfItsFilterAsTheyWereAtTheStep) {
  v1::JobChange change = EndOf(1, 2, v1::JOB_STATE_FAILED);
  EXPECT_TRUE(Wants(OfFilter("user = ada"), change));
  EXPECT_FALSE(Wants(OfFilter("user = bob"), change));
  // The store gives each step with the job as it is now.
  change.mutable_transition()->set_job_state(v1::JOB_STATE_RUNNING);
  change.mutable_transition()->set_run_state(v1::RUN_STATE_RUNNING);
  Webhook running = OfFilter("state = RUNNING");
  running.states = {v1::JOB_STATE_RUNNING};
  EXPECT_TRUE(Wants(running, change));
  // A failure comes with the end.
  change.mutable_job()->mutable_failure()->set_failure_class(v1::FAILURE_CLASS_INFRA);
  running.filter = FilterOf("failure_class = INFRA");
  EXPECT_FALSE(Wants(running, change));
}

TEST(Webhook, GoesBackToTheJobOfAStepAndToTheLabelsOfAnEnd) {
  v1::Job past;
  past.set_cluster("lab");
  (*past.mutable_labels())["team"] = "vision";
  v1::JobChange change = EndOf(1, 2, v1::JOB_STATE_RUNNING);
  change.mutable_job()->set_cluster("other");
  GoBack(past, &change);
  EXPECT_EQ(change.job().cluster(), "lab");
  EXPECT_EQ(change.job().labels().at("team"), "vision");
  change = EndOf(1, 2, v1::JOB_STATE_FAILED);
  change.mutable_job()->set_cluster("other");
  (*change.mutable_job()->mutable_labels())["team"] = "speech";
  (*change.mutable_job()->mutable_labels())["new"] = "";
  GoBack(past, &change);
  EXPECT_EQ(change.job().cluster(), "other");
  EXPECT_EQ(change.job().labels().size(), 1U);
  EXPECT_EQ(change.job().labels().at("team"), "vision");
}

}  // namespace
}  // namespace muster::notify
