// Updates of jobs by their users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/refusals.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class EditTest : public CoreTest {
 protected:
  absl::Status Update(const v1::Job& seen, int32_t priority,
                      std::map<std::string, std::string> labels = {}) {
    Do(core::Edit{
        .ticket = 7,
        .job = seen.id(),
        .job_sequence = seen.job_sequence(),
        .state = seen.state(),
        .priority = priority,
        .labels = std::move(labels),
        .request = {
            .verb = "updated", .user = "bob", .more = ": priority 7", .reason = "it is urgent"}});
    for (const Effect& effect : last_.effects) {
      if (const auto* reply = std::get_if<StatusReply>(&effect))
        return contract::ToStatus(reply->refusal);
    }
    return absl::InternalError("no reply");
  }
};

TEST_F(EditTest, AWaitingJobMovesInItsQueue) {
  const uint64_t first = MustSubmit(Spec()), second = MustSubmit(Spec());
  EXPECT_TRUE(Update(Job(second), 5).ok());
  EXPECT_EQ(Job(second).priority(), 5);
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  const SessionId session = Connect(hello);
  EXPECT_THAT(Assigned(session), ElementsAre(Key(second)));
  EXPECT_EQ(Job(first).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(EditTest, AHeldJobHasItsNewPriorityWhenItIsReleased) {
  const uint64_t first = MustSubmit(Spec()), second = MustSubmit(Spec());
  EXPECT_TRUE(Hold({second}).ok());
  EXPECT_TRUE(Update(Job(second), 5).ok());
  EXPECT_TRUE(Release({second}).ok());
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  EXPECT_THAT(Assigned(Connect(hello)), ElementsAre(Key(second)));
  EXPECT_EQ(Job(first).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(EditTest, TheHistorySaysWhoAndWhy) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Update(Job(id), 3, {{"team", "a"}}).ok());
  const v1::Transition step = History(id).back();
  EXPECT_EQ(step.kind(), v1::TRANSITION_KIND_UPDATED);
  EXPECT_EQ(step.job_state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(step.evidence().source(), v1::EVIDENCE_SOURCE_USER);
  EXPECT_EQ(step.evidence().detail(), "updated by bob: priority 7: it is urgent");
  EXPECT_EQ(step.evidence().requested_by(), "bob");
  EXPECT_EQ(step.evidence().request_reason(), "it is urgent");
  EXPECT_EQ(step.job_sequence(), Job(id).job_sequence());
}

TEST_F(EditTest, TheJobAndItsSpecShowWhatItIsNow) {
  v1::JobSpec spec = Spec();
  (*spec.mutable_labels())["old"] = "1";
  const uint64_t id = MustSubmit(spec);
  EXPECT_TRUE(Update(Job(id), 3, {{"team", "a"}}).ok());
  EXPECT_THAT(Job(id).labels(), UnorderedElementsAre(Pair("team", "a")));
  EXPECT_THAT(Job(id).spec().labels(), UnorderedElementsAre(Pair("team", "a")));
  EXPECT_EQ(Job(id).spec().priority(), 3);
}

TEST_F(EditTest, ARestartKnowsTheNewPriority) {
  const uint64_t first = MustSubmit(Spec()), second = MustSubmit(Spec());
  EXPECT_TRUE(Update(Job(second), 5).ok());
  Restart();
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  EXPECT_THAT(Assigned(Connect(hello)), ElementsAre(Key(second)));
  EXPECT_EQ(Job(first).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(EditTest, WhatWasDecidedOfAnEarlierStateIsNotDone) {
  const uint64_t id = MustSubmit(Spec());
  const v1::Job seen = Job(id);
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_EQ(Update(seen, 5).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(Update(seen, 5)), "JOB_CHANGED");
  EXPECT_EQ(Job(id).priority(), 0);
  EXPECT_TRUE(Update(Job(id), 5).ok());
}

TEST_F(EditTest, AJobThatHasEndedGetsLabelsAndKeepsItsState) {
  const uint64_t id = MustSubmit(Spec());
  const v1::Job before = Job(id);
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_EQ(ReasonOf(Update(before, 0, {{"a", "1"}})), "JOB_CHANGED");
  const v1::Job ended = Job(id);
  EXPECT_TRUE(Update(ended, 0, {{"a", "1"}}).ok());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(Job(id).job_sequence(), ended.job_sequence() + 1);
  // Another one that was decided before it.
  EXPECT_EQ(ReasonOf(Update(ended, 0, {{"b", "2"}})), "JOB_CHANGED");
  EXPECT_TRUE(Update(Job(id), 0, {{"b", "2"}}).ok());
  EXPECT_THAT(Job(id).labels(), UnorderedElementsAre(Pair("b", "2")));
  EXPECT_EQ(History(id).back().job_sequence(), ended.job_sequence() + 2);
}

// ---- jobs that a filter chose

class ChosenTest : public CoreTest {
 protected:
  template <typename Wish>
  StatusReply Ask(Wish wish, const std::vector<v1::Job>& seen) {
    wish.ticket = 9;
    wish.user = "bob";
    for (const v1::Job& job : seen) {
      wish.jobs.push_back(job.id());
      wish.chosen_at.push_back(job.job_sequence());
    }
    Do(wish);
    for (const Effect& effect : last_.effects) {
      if (const auto* reply = std::get_if<StatusReply>(&effect)) return *reply;
    }
    return {};
  }
};

TEST_F(ChosenTest, OnlyJobsThatAreAsTheyWereSeenAreCanceled) {
  const uint64_t a = MustSubmit(Spec()), b = MustSubmit(Spec());
  const std::vector<v1::Job> seen = {Job(a), Job(b)};
  EXPECT_TRUE(Hold({b}).ok());
  const StatusReply reply = Ask(core::Cancel(), seen);
  EXPECT_FALSE(reply.refusal.has_value());
  EXPECT_THAT(reply.changed, ElementsAre(a));
  EXPECT_TRUE(reply.is_stale);
  EXPECT_EQ(Job(a).state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(Job(b).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(ChosenTest, JobsThatCannotBeHeldAreLeftAndDoNotStopTheOthers) {
  const uint64_t a = MustSubmit(Spec());
  const SessionId session = Connect("a");
  Report(session,
         {Event(1, Key(a), v1::RUN_STATE_LAUNCHING), Event(2, Key(a), v1::RUN_STATE_RUNNING)});
  Gone(session);
  const uint64_t b = MustSubmit(Spec());
  const StatusReply reply = Ask(core::Hold(), {Job(a), Job(b)});
  EXPECT_FALSE(reply.refusal.has_value());
  EXPECT_THAT(reply.changed, ElementsAre(b));
  EXPECT_FALSE(reply.is_stale) << "a repeat would not hold it either";
  core::Hold release;
  release.held = false;
  EXPECT_THAT(Ask(release, {Job(b)}).changed, ElementsAre(b));
}

TEST_F(ChosenTest, ATrialChangesNothing) {
  const uint64_t id = MustSubmit(Spec());
  core::Cancel cancel;
  cancel.jobs = {id};
  cancel.validate_only = true;
  Do(cancel);
  core::Hold hold;
  hold.jobs = {id};
  hold.validate_only = true;
  Do(hold);
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_EQ(Job(id).job_sequence(), 1u);
}

}  // namespace
}  // namespace muster::core
