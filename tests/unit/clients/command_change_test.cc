// Tests verbs that change jobs against a fake broker: what they send, print and exit with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "contract/errors.h"
#include "contract/sentences.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(CommandTest, CancelSendsTheReasonAndShowsTheJobs) {
  v1::CancelJobsRequest seen;
  broker_.cancel_jobs =
      [&](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
    seen = request;
    v1::CancelJobsResponse response;
    for (uint64_t id : request.job_ids())
      *response.add_jobs() = JobInState(id, v1::JOB_STATE_CANCELED);
    return response;
  };
  const Outcome outcome = Run({"cancel", "1", "2", "--reason", "no more"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("CANCELED"));
  EXPECT_THAT(seen.job_ids(), ElementsAre(1, 2));
  EXPECT_EQ(seen.reason(), "no more");
  EXPECT_EQ(Run({"cancel", "-q", "1", "2"}).out, "1\n2\n");
}

TEST_F(CommandTest, CancelTellsWhichJobsWereCanceledBefore) {
  broker_.get_job = [](const v1::GetJobRequest& request) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    *response.mutable_job() = JobInState(
        request.job_id(), request.job_id() == 5 ? v1::JOB_STATE_CANCELED : v1::JOB_STATE_RUNNING);
    return response;
  };
  broker_.cancel_jobs =
      [](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
    v1::CancelJobsResponse response;
    for (uint64_t id : request.job_ids())
      *response.add_jobs() = JobInState(id, v1::JOB_STATE_CANCELED);
    return response;
  };
  const Outcome outcome = Run({"cancel", "4", "5"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("canceled: 4\n"));
  EXPECT_THAT(outcome.err, HasSubstr("had been canceled already: 5\n"));
}

TEST_F(CommandTest, CancelByFilterGoesOnUntilThereAreNoMore) {
  std::vector<v1::CancelJobsRequest> seen;
  broker_.cancel_jobs =
      [&](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
    seen.push_back(request);
    v1::CancelJobsResponse response;
    *response.add_jobs() = JobInState(seen.size(), v1::JOB_STATE_CANCELED);
    response.set_matched_count(4 - seen.size());
    response.set_more(seen.size() < 3);
    return response;
  };
  EXPECT_EQ(Run({"cancel", "-q", "--filter", "user = ada"}).out, "1\n2\n3\n");
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].filter(), "user = ada");
  EXPECT_FALSE(seen[0].validate_only());
  seen.clear();
  const Outcome trial = Run({"cancel", "--filter", "user = ada", "--dry-run"});
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen[0].validate_only());
  EXPECT_THAT(trial.err, HasSubstr("nothing was changed; cancel would concern 3 jobs\n"));
}

TEST_F(CommandTest, AChangeNeedsJobsOrAFilterAndNotBoth) {
  for (const char* verb : {"cancel", "hold", "release", "rerun"}) {
    EXPECT_THAT(Run({verb}).err,
                HasSubstr("name at least one job by its number, or give --filter"));
    EXPECT_THAT(Run({verb, "--filter", ""}).err, HasSubstr("--filter: is empty")) << verb;
    EXPECT_THAT(Run({verb, "1", "--filter", "id > 0"}).err,
                HasSubstr("give either jobs or --filter"));
  }
}

TEST_F(CommandTest, UpdateSendsWhatChanges) {
  std::vector<v1::UpdateJobRequest> seen;
  broker_.update_job =
      [&](const v1::UpdateJobRequest& request) -> absl::StatusOr<v1::UpdateJobResponse> {
    seen.push_back(request);
    v1::UpdateJobResponse response;
    *response.mutable_job() = JobInState(request.job_id(), v1::JOB_STATE_QUEUED);
    return response;
  };
  const Outcome outcome = Run({"update", "42", "43", "--priority", "5", "--label", "a=b=c",
                               "--remove-label", "d", "--reason", "urgent"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("QUEUED"));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].job_id(), 43u);
  EXPECT_EQ(seen[0].priority(), 5);
  EXPECT_EQ(seen[0].set_labels().at("a"), "b=c");
  EXPECT_THAT(seen[0].remove_labels(), ElementsAre("d"));
  EXPECT_EQ(seen[0].reason(), "urgent");
  Run({"update", "42", "--remove-label", "d"});
  EXPECT_FALSE(seen[2].has_priority());
  EXPECT_THAT(Run({"update", "42"}).err, HasSubstr("say what to change"));
  EXPECT_THAT(Run({"update", "42", "--label", "x"}).err, HasSubstr("is not KEY=VALUE"));
}

TEST_F(CommandTest, UpdateShowsItsWarningsBesideTheJobs) {
  broker_.update_job =
      [&](const v1::UpdateJobRequest& request) -> absl::StatusOr<v1::UpdateJobResponse> {
    v1::UpdateJobResponse response;
    *response.mutable_job() = JobInState(request.job_id(), v1::JOB_STATE_PENDING);
    response.mutable_job()->set_cluster("lab");
    *response.add_warnings() = contract::RunKeepsPriority(response.job());
    return response;
  };
  const Outcome outcome = Run({"update", "42", "--priority", "5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: the new priority of job 42 does not move its "
                                     "present run: cluster \"lab\" has that"));
  EXPECT_THAT(outcome.err, HasSubstr("cancel the job and submit it again"));
  EXPECT_THAT(outcome.out, HasSubstr("PENDING"));
}

TEST_F(CommandTest, RerunPrintsTheNewJobs) {
  v1::RerunJobsRequest seen;
  broker_.rerun_jobs =
      [&](const v1::RerunJobsRequest& request) -> absl::StatusOr<v1::RerunJobsResponse> {
    seen = request;
    v1::RerunJobsResponse response;
    response.set_matched_count(static_cast<uint32_t>(request.job_ids_size()));
    for (const uint64_t id : request.job_ids()) {
      v1::RerunJob* job = response.add_jobs();
      job->set_source_job_id(id);
      job->set_job_id(request.validate_only() ? 0 : id + 100);
    }
    return response;
  };
  const Outcome outcome = Run({"rerun", "42", "43", "--hold"});
  EXPECT_EQ(outcome.out, "142\n143\n");
  EXPECT_TRUE(seen.held());
  EXPECT_EQ(seen.request_id().size(), 36u);
  EXPECT_EQ(Run({"rerun", "-q", "42", "--request-id", "r"}).out, "142\n");
  EXPECT_EQ(seen.request_id(), "r");
  EXPECT_THAT(Run({"rerun", "--dry-run", "42"}).err, HasSubstr("1 job would run again"));
  EXPECT_THAT(Run({"rerun", "--filter", "state = FAILED"}).err, HasSubstr("no job of the filter"));
  broker_.rerun_jobs = [](const auto&) -> absl::StatusOr<v1::RerunJobsResponse> {
    v1::RerunJobsResponse response;
    for (int i = 0; i < 1000; ++i) response.add_jobs();
    response.set_matched_count(1200);
    response.set_more(true);
    return response;
  };
  EXPECT_THAT(
      Run({"rerun", "--dry-run", "--filter", "state = FAILED"}).err,
      HasSubstr("1200 jobs of the filter have ended, more than one call runs again (1000 jobs"));
}

TEST_F(CommandTest, CountShowsGroupsAndTheirTotal) {
  v1::CountJobsRequest seen;
  broker_.count_jobs =
      [&](const v1::CountJobsRequest& request) -> absl::StatusOr<v1::CountJobsResponse> {
    seen = request;
    v1::CountJobsResponse response;
    v1::JobCount* count = response.add_counts();
    count->set_count(3);
    count->set_state(v1::JOB_STATE_RUNNING);
    count->set_label_value("a");
    count = response.add_counts();
    count->set_count(1);
    count->set_state(v1::JOB_STATE_QUEUED);
    response.set_total(4);
    return response;
  };
  const Outcome outcome =
      Run({"count", "--by", "state,label=team", "--user", "x", "--filter", "id > 1"});
  EXPECT_EQ(outcome.code, 2) << "there is no such flag";
  const Outcome good = Run({"count", "--by", "state,label=team", "--filter", "id > 1"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out,
            "STATE    team  JOBS\nRUNNING  a        3\nQUEUED   -        1\ntotal             4\n");
  EXPECT_EQ(seen.label(), "team");
  EXPECT_EQ(seen.filter(), "id > 1");
  EXPECT_EQ(Run({"count", "-q"}).out, "4\n");
  EXPECT_THAT(Run({"count", "--by", "colour"}).err, HasSubstr("cannot count by \"colour\""));
}

}  // namespace
}  // namespace muster::cli
