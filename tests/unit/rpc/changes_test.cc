// Jobs changed, counted and run again by clients.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "contract/errors.h"
#include "contract/task_array.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string ReasonOf(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

std::string FieldOf(const grpc::Status& status) {
  const auto bad = contract::GetBadRequest(rpc::FromGrpc(status));
  return bad ? bad->field_violations(0).field() : "";
}

v1::SubmitJobRequest Labelled(const std::string& team) {
  v1::SubmitJobRequest request = SubmitTrue();
  (*request.mutable_spec()->mutable_labels())["team"] = team;
  return request;
}

template <typename Request>
Request ByFilter(const std::string& filter, bool validate_only = false) {
  Request request;
  request.set_filter(filter);
  request.set_validate_only(validate_only);
  return request;
}

class ChangesTest : public ::testing::Test {
 protected:
  v1::CancelJobsResponse Cancel(const std::string& filter, bool validate_only = false) {
    v1::CancelJobsResponse response;
    const auto request = ByFilter<v1::CancelJobsRequest>(filter, validate_only);
    const grpc::Status status = broker_.jobs().CancelJobs(Call().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status Rerun(const v1::RerunJobsRequest& request, v1::RerunJobsResponse* response) {
    return broker_.jobs().RerunJobs(Call().get(), request, response);
  }

  void SubmitMany(int count) {
    v1::SubmitJobsRequest request;
    for (int i = 0; i < count; ++i) *request.add_requests() = SubmitTrue();
    v1::SubmitJobsResponse response;
    ASSERT_TRUE(broker_.jobs().SubmitJobs(Call().get(), request, &response).ok());
  }

  TestBroker broker_;
};

TEST_F(ChangesTest, AFilterCancelsWhatItTakesAndLeavesTheRest) {
  const uint64_t a = broker_.Submit(Labelled("a")), b = broker_.Submit(Labelled("b"));
  const auto trial = Cancel("label.team = a", /*validate_only=*/true);
  EXPECT_EQ(trial.matched_count(), 1u);
  EXPECT_THAT(trial.jobs(), SizeIs(1));
  EXPECT_EQ(broker_.Get(a).state(), v1::JOB_STATE_QUEUED);
  const auto canceled = Cancel("label.team = a");
  EXPECT_EQ(canceled.matched_count(), 1u);
  EXPECT_FALSE(canceled.more());
  ASSERT_THAT(canceled.jobs(), SizeIs(1));
  EXPECT_EQ(canceled.jobs(0).state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(broker_.Get(b).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Cancel("label.team = a").matched_count(), 0u) << "it has ended";
}

TEST_F(ChangesTest, OneCallChangesAThousandTheOldestFirst) {
  SubmitMany(1000);
  SubmitMany(5);
  const auto first = Cancel("state = QUEUED");
  EXPECT_THAT(first.jobs(), SizeIs(1000));
  EXPECT_EQ(first.jobs(0).id(), 1u);
  EXPECT_EQ(first.jobs(999).id(), 1000u);
  EXPECT_EQ(first.matched_count(), 1005u);
  EXPECT_TRUE(first.more());
  const auto rest = Cancel("state = QUEUED");
  EXPECT_THAT(rest.jobs(), SizeIs(5));
  EXPECT_FALSE(rest.more());
}

TEST_F(ChangesTest, HoldAndReleaseTakeFiltersToo) {
  const uint64_t a = broker_.Submit(Labelled("a"));
  broker_.Submit(Labelled("b"));
  v1::HoldJobsResponse held;
  const auto hold = ByFilter<v1::HoldJobsRequest>("label.team = a");
  ASSERT_TRUE(broker_.jobs().HoldJobs(Call().get(), hold, &held).ok());
  ASSERT_THAT(held.jobs(), SizeIs(1));
  EXPECT_TRUE(held.jobs(0).held());
  v1::ReleaseJobsResponse released;
  const auto release = ByFilter<v1::ReleaseJobsRequest>("id > 0");
  ASSERT_TRUE(broker_.jobs().ReleaseJobs(Call().get(), release, &released).ok());
  ASSERT_THAT(released.jobs(), SizeIs(1));
  EXPECT_EQ(released.jobs(0).id(), a);
  EXPECT_FALSE(broker_.Get(a).held());
}

TEST_F(ChangesTest, ATrialByNumberSaysWhatWouldBeWrong) {
  const uint64_t id = broker_.Submit();
  v1::HoldJobsRequest request;
  request.add_job_ids(id);
  request.set_validate_only(true);
  v1::HoldJobsResponse response;
  ASSERT_TRUE(broker_.jobs().HoldJobs(Call().get(), request, &response).ok());
  EXPECT_EQ(response.matched_count(), 1u);
  EXPECT_FALSE(broker_.Get(id).held());
  request.add_job_ids(id + 1);
  EXPECT_EQ(ReasonOf(broker_.jobs().HoldJobs(Call().get(), request, &response)), "UNKNOWN_JOB");
}

TEST_F(ChangesTest, BadChoicesAreNamed) {
  v1::CancelJobsResponse response;
  v1::CancelJobsRequest request;
  const auto cancel = [&] { return broker_.jobs().CancelJobs(Call().get(), request, &response); };
  EXPECT_EQ(FieldOf(cancel()), "job_ids");
  request.set_filter("  ");
  EXPECT_EQ(FieldOf(cancel()), "filter");
  request.set_filter("state = DONE");
  EXPECT_EQ(FieldOf(cancel()), "filter");
  request.add_job_ids(1);
  EXPECT_EQ(FieldOf(cancel()), "filter");
}

// ---- counts and histories

TEST_F(ChangesTest, CountsAreGrouped) {
  broker_.Submit(Labelled("a"));
  broker_.Submit(Labelled("a"));
  broker_.Submit();
  v1::CountJobsRequest request;
  request.add_group_by(v1::JOB_GROUPING_LABEL);
  v1::CountJobsResponse response;
  const auto count = [&] { return broker_.jobs().CountJobs(Call().get(), request, &response); };
  EXPECT_EQ(FieldOf(count()), "label");
  request.set_label("team");
  ASSERT_TRUE(count().ok());
  EXPECT_EQ(response.total(), 3u);
  ASSERT_THAT(response.counts(), SizeIs(2));
  EXPECT_EQ(response.counts(0).label_value(), "a");
  EXPECT_FALSE(response.counts(1).has_label_value());
  request.add_group_by(v1::JOB_GROUPING_LABEL);
  EXPECT_EQ(FieldOf(count()), "group_by[1]");
}

TEST_F(ChangesTest, AHistoryComesPageByPage) {
  const uint64_t id = broker_.Submit();
  v1::CancelJobsRequest cancel;
  cancel.add_job_ids(id);
  v1::CancelJobsResponse canceled;
  ASSERT_TRUE(broker_.jobs().CancelJobs(Call().get(), cancel, &canceled).ok());
  v1::ListTransitionsRequest request;
  request.set_job_id(id);
  request.set_page_size(1);
  std::vector<v1::TransitionKind> kinds;
  do {
    v1::ListTransitionsResponse page;
    ASSERT_TRUE(broker_.jobs().ListTransitions(Call().get(), request, &page).ok());
    ASSERT_THAT(page.transitions(), SizeIs(1));
    kinds.push_back(page.transitions(0).kind());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(kinds,
              ElementsAre(v1::TRANSITION_KIND_SUBMITTED, v1::TRANSITION_KIND_CANCEL_REQUESTED));
  v1::ListTransitionsResponse page;
  request.set_page_token("9_1");
  EXPECT_EQ(FieldOf(broker_.jobs().ListTransitions(Call().get(), request, &page)), "page_token");
  request.clear_page_token();
  request.set_job_id(99);
  EXPECT_EQ(ReasonOf(broker_.jobs().ListTransitions(Call().get(), request, &page)), "UNKNOWN_JOB");
}

// ---- updates

TEST_F(ChangesTest, AnUpdateShowsInTheJobItsSpecAndItsHistory) {
  const uint64_t id = broker_.Submit(Labelled("a"));
  v1::UpdateJobRequest request;
  request.set_job_id(id);
  request.set_priority(7);
  (*request.mutable_set_labels())["tier"] = "gold";
  request.add_remove_labels("team");
  request.set_reason("a demo");
  v1::UpdateJobResponse response;
  const grpc::Status status = broker_.jobs().UpdateJob(Call().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.job().priority(), 7);
  const v1::Job job = broker_.Get(id);
  EXPECT_EQ(job.spec().priority(), 7);
  EXPECT_EQ(job.spec().labels().at("tier"), "gold");
  EXPECT_EQ(job.labels_size(), 1);
  const auto steps = broker_.store().ListTransitions(store::Scope::All(), {id}, 0, 10);
  const v1::Evidence& evidence = steps->back().transition.evidence();
  EXPECT_THAT(evidence.detail(),
              HasSubstr("priority 7 instead of 0, label tier=gold, no label team"));
  EXPECT_THAT(evidence.detail(), HasSubstr(": a demo"));
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect());
  EXPECT_EQ(agent.ReadAssignments(1)[0].spec().priority(), 7);
}

TEST_F(ChangesTest, ANewPriorityOfAJobThatAClusterHasIsAnsweredWithAWarning) {
  const uint64_t id = broker_.Submit(Labelled("a"));
  v1::UpdateJobRequest request;
  request.set_job_id(id);
  request.set_priority(7);
  v1::UpdateJobResponse response;
  ASSERT_TRUE(broker_.jobs().UpdateJob(Call().get(), request, &response).ok());
  EXPECT_TRUE(response.warnings().empty()) << "it waits in the broker";
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect());
  agent.ReadAssignments(1);
  request.set_priority(8);
  ASSERT_TRUE(broker_.jobs().UpdateJob(Call().get(), request, &response).ok());
  ASSERT_EQ(response.warnings_size(), 1);
  EXPECT_EQ(response.warnings(0).code(), v1::SUBMIT_WARNING_CODE_RUN_KEEPS_PRIORITY);
  EXPECT_EQ(response.warnings(0).cluster(), response.job().cluster());
  EXPECT_EQ(response.job().priority(), 8);
  ASSERT_TRUE(broker_.jobs().UpdateJob(Call().get(), request, &response).ok());
  EXPECT_TRUE(response.warnings().empty()) << "nothing was changed";
  request.clear_priority();
  (*request.mutable_set_labels())["tier"] = "gold";
  ASSERT_TRUE(broker_.jobs().UpdateJob(Call().get(), request, &response).ok());
  EXPECT_TRUE(response.warnings().empty()) << "labels have no place in a queue";
}

TEST_F(ChangesTest, AnUpdateThatChangesNothingLeavesNoTrace) {
  const uint64_t id = broker_.Submit(Labelled("a"));
  v1::UpdateJobRequest request;
  request.set_job_id(id);
  request.set_priority(0);
  request.add_remove_labels("none");
  v1::UpdateJobResponse response;
  ASSERT_TRUE(broker_.jobs().UpdateJob(Call().get(), request, &response).ok());
  EXPECT_EQ(response.job().job_sequence(), 1u);
}

TEST_F(ChangesTest, BadUpdatesAreNamed) {
  const uint64_t id = broker_.Submit();
  v1::UpdateJobResponse response;
  v1::UpdateJobRequest request;
  const auto update = [&] { return broker_.jobs().UpdateJob(Call().get(), request, &response); };
  EXPECT_EQ(FieldOf(update()), "job_id");
  request.set_job_id(id);
  EXPECT_EQ(FieldOf(update()), "priority");
  request.set_priority(1001);
  EXPECT_EQ(FieldOf(update()), "priority");
  request.set_priority(1);
  (*request.mutable_set_labels())["NO"] = "x";
  EXPECT_EQ(FieldOf(update()), "set_labels[\"NO\"]");
  request.clear_set_labels();
  request.set_job_id(99);
  EXPECT_EQ(ReasonOf(update()), "UNKNOWN_JOB");
  Cancel("id > 0");
  request.set_job_id(id);
  EXPECT_EQ(ReasonOf(update()), "JOB_HAS_ENDED");
  request.clear_priority();
  (*request.mutable_set_labels())["kept"] = "yes";
  EXPECT_TRUE(update().ok());
  EXPECT_EQ(broker_.Get(id).labels().at("kept"), "yes");
}

// ---- reruns

TEST_F(ChangesTest, ARerunHasTheSpecAndRemembersWhose) {
  const uint64_t id = broker_.Submit(Labelled("a"));
  v1::RerunJobsRequest request;
  request.add_job_ids(id);
  v1::RerunJobsResponse response;
  EXPECT_EQ(ReasonOf(Rerun(request, &response)), "NOT_ENDED");
  Cancel("id > 0");
  request.set_validate_only(true);
  ASSERT_TRUE(Rerun(request, &response).ok());
  EXPECT_EQ(response.jobs(0).job_id(), 0u);
  request.set_validate_only(false);
  request.set_held(true);
  ASSERT_TRUE(Rerun(request, &response).ok());
  ASSERT_THAT(response.jobs(), SizeIs(1));
  EXPECT_EQ(response.jobs(0).source_job_id(), id);
  const v1::Job again = broker_.Get(response.jobs(0).job_id());
  EXPECT_EQ(again.rerun_of(), id);
  EXPECT_TRUE(again.held());
  EXPECT_EQ(again.spec().SerializeAsString(), broker_.Get(id).spec().SerializeAsString());
}

// The numbers after the new job's are those of others.
TEST_F(ChangesTest, ATaskThatRunsAgainIsAnArrayOfItsOwn) {
  v1::SubmitJobsRequest submit;
  for (uint32_t place = 0; place < 4; ++place) {
    v1::SubmitJobRequest& task = *submit.add_requests();
    task = SubmitTrue();
    task.mutable_spec()->mutable_command()->set_script("true");
    task.mutable_spec()->mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask(
        {.id = 1 + 2 * place, .count = 4, .min_id = 1, .max_id = 7, .step = 2, .place = place},
        task.mutable_spec());
  }
  v1::SubmitJobsResponse submitted;
  ASSERT_TRUE(broker_.jobs().SubmitJobs(Call().get(), submit, &submitted).ok());
  const uint64_t id = submitted.responses(3).job_id();
  EXPECT_EQ(contract::FindArrayTask(broker_.Get(id).spec())->place, 3u);
  Cancel("id > 0");
  v1::RerunJobsRequest request;
  request.add_job_ids(id);
  v1::RerunJobsResponse response;
  ASSERT_TRUE(Rerun(request, &response).ok());
  const auto task = contract::FindArrayTask(broker_.Get(response.jobs(0).job_id()).spec());
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->id, 7u);
  EXPECT_EQ(task->count, 1u);
  EXPECT_EQ(task->min_id, 7u);
  EXPECT_EQ(task->place, 0u);
}

TEST_F(ChangesTest, ARepeatedRerunByFilterGivesTheSameJobs) {
  broker_.Submit();
  broker_.Submit();
  Cancel("id > 0");
  v1::RerunJobsRequest request;
  request.set_filter("state = CANCELED");
  request.set_request_id("once");
  v1::RerunJobsResponse first, repeat;
  ASSERT_TRUE(Rerun(request, &first).ok());
  ASSERT_THAT(first.jobs(), SizeIs(2));
  // The new ones are among those of the filter now.
  Cancel("id > 0");
  ASSERT_TRUE(Rerun(request, &repeat).ok());
  EXPECT_EQ(repeat.SerializeAsString(), first.SerializeAsString());
  request.set_filter("state = FAILED");
  EXPECT_EQ(ReasonOf(Rerun(request, &repeat)), "REQUEST_ID_REUSED");
}

TEST_F(ChangesTest, AFilterThatTakesTooManyRunsNoneAgain) {
  SubmitMany(1000);
  SubmitMany(1);
  Cancel("id > 0");
  Cancel("id > 0");
  v1::RerunJobsRequest request;
  request.set_filter("state = CANCELED");
  v1::RerunJobsResponse response;
  EXPECT_EQ(ReasonOf(Rerun(request, &response)), "TOO_MANY_JOBS");
  request.set_validate_only(true);
  ASSERT_TRUE(Rerun(request, &response).ok()) << "a trial counts them";
  EXPECT_EQ(response.matched_count(), 1001u);
  EXPECT_TRUE(response.more());
  EXPECT_THAT(response.jobs(), SizeIs(1000));
  request.set_validate_only(false);
  request.set_filter("state = CANCELED id <= 3");
  ASSERT_TRUE(Rerun(request, &response).ok());
  EXPECT_THAT(response.jobs(), SizeIs(3));
  EXPECT_EQ(response.matched_count(), 3u);
  EXPECT_FALSE(response.more());
  request.set_filter("name = nobody");
  ASSERT_TRUE(Rerun(request, &response).ok());
  EXPECT_THAT(response.jobs(), IsEmpty());
}

TEST_F(ChangesTest, AJobThatCannotRunAgainIsNamedByItsOwnNumber) {
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect());
  v1::SubmitJobRequest elsewhere = SubmitTrue();
  v1::RerunJobsRequest request;
  request.add_job_ids(broker_.Submit());
  elsewhere.mutable_spec()->mutable_placement()->add_clusters("gpu");
  request.add_job_ids(broker_.Submit(elsewhere));
  Cancel("id > 0");
  for (const auto& assignment : agent.ReadAssignments(2)) {
    agent.Report(assignment.run_key(), v1::RUN_STATE_CANCELED);
  }
  agent.Finish();
  v1::ForgetClusterRequest forget;
  forget.set_name("gpu");
  v1::ForgetClusterResponse forgotten;
  ASSERT_TRUE(broker_.clusters().ForgetCluster(Call().get(), forget, &forgotten).ok());
  v1::RerunJobsResponse response;
  const grpc::Status status = Rerun(request, &response);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_CLUSTER");
  EXPECT_THAT(status.error_message(),
              testing::StartsWith(fmt::format("job {} cannot run again: the job names cluster ",
                                              request.job_ids(1))));
}

TEST_F(ChangesTest, SeveralJobsThatCannotBePlacedAreRefusedWithTheFactsOfTheClusters) {
  v1::SubmitJobsRequest submit;
  *submit.add_requests() = SubmitTrue();
  *submit.add_requests() = SubmitTrue();
  submit.mutable_requests(1)->mutable_spec()->set_nodes(5);
  v1::SubmitJobsResponse submitted;
  ASSERT_TRUE(broker_.jobs().SubmitJobs(Call().get(), submit, &submitted).ok());
  Cancel("id > 0");
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect()) << "it has four nodes";
  v1::RerunJobsRequest rerun;
  for (const auto& one : submitted.responses()) rerun.add_job_ids(one.job_id());
  v1::RerunJobsResponse rerun_jobs;
  for (const grpc::Status& status :
       {broker_.jobs().SubmitJobs(Call().get(), submit, &submitted), Rerun(rerun, &rerun_jobs)}) {
    EXPECT_EQ(ReasonOf(status), "CANNOT_BE_PLACED");
    const auto facts = contract::GetStateReason(rpc::FromGrpc(status));
    ASSERT_TRUE(facts.has_value());
    EXPECT_EQ(facts->code(), v1::STATE_REASON_CODE_DOES_NOT_FIT);
    ASSERT_EQ(facts->clusters_size(), 1);
    EXPECT_EQ(facts->clusters(0).cluster(), "gpu");
    EXPECT_EQ(facts->clusters(0).shortages_size(), 1);
  }
}

TEST_F(ChangesTest, BadRerunsAreNamed) {
  v1::RerunJobsResponse response;
  v1::RerunJobsRequest request;
  EXPECT_EQ(FieldOf(Rerun(request, &response)), "job_ids");
  request.add_job_ids(7);
  EXPECT_EQ(ReasonOf(Rerun(request, &response)), "UNKNOWN_JOB");
  request.add_job_ids(7);
  EXPECT_EQ(FieldOf(Rerun(request, &response)), "job_ids[1]");
}

// ---- orders

TEST_F(ChangesTest, ListsComeInTheOrderThatIsAskedFor) {
  for (const int priority : {1, 3, 2}) {
    v1::SubmitJobRequest request = SubmitTrue();
    request.mutable_spec()->set_priority(priority);
    broker_.Submit(request);
  }
  v1::ListJobsRequest request;
  request.set_page_size(2);
  request.set_order_by("priority desc");
  v1::ListJobsResponse page;
  ASSERT_TRUE(broker_.jobs().ListJobs(Call().get(), request, &page).ok());
  ASSERT_THAT(page.jobs(), SizeIs(2));
  EXPECT_EQ(page.jobs(0).id(), 2u);
  request.set_page_token(page.next_page_token());
  ASSERT_TRUE(broker_.jobs().ListJobs(Call().get(), request, &page).ok());
  EXPECT_EQ(page.jobs(0).id(), 1u);
  request.set_order_by("colour");
  EXPECT_EQ(FieldOf(broker_.jobs().ListJobs(Call().get(), request, &page)), "order_by");
}

}  // namespace
}  // namespace muster::broker
