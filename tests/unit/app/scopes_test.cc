// A job outside of a principal's scope does not exist, whatever is asked.
#include <gtest/gtest.h>

#include <functional>

#include "absl/time/time.h"
#include "broker/app/change_jobs.h"
#include "broker/app/check_cluster.h"
#include "broker/app/cordon_cluster.h"
#include "broker/app/count_jobs.h"
#include "broker/app/fetch_files.h"
#include "broker/app/forget_cluster.h"
#include "broker/app/get_job.h"
#include "broker/app/list_jobs.h"
#include "broker/app/list_transitions.h"
#include "broker/app/plan_job.h"
#include "broker/app/read_log.h"
#include "broker/app/rerun_jobs.h"
#include "broker/app/run_logs.h"
#include "broker/app/show_clusters.h"
#include "broker/app/submit_jobs.h"
#include "broker/app/update_job.h"
#include "broker/app/upload_files.h"
#include "broker/app/watch_jobs.h"
#include "contract/errors.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

class ScopesTest : public AppTest {
 protected:
  // Alice's, and nobody else's.
  void SetUp() override {
    AppTest::SetUp();
    SubmitJobs(2);
  }

  absl::StatusOr<ChangedJobs> Change(const Principal& who, ChangeRequest request) {
    return Await<ChangedJobs>(
        [&](ChangeDone done) { ChangeJobs(who, services_, std::move(request), std::move(done)); });
  }

  absl::StatusOr<v1::UpdateJobResponse> Update(const Principal& who, uint64_t id) {
    return Await<v1::UpdateJobResponse>([&](UpdateDone done) {
      v1::UpdateJobRequest request;
      request.set_job_id(id);
      request.set_priority(7);
      UpdateJob(who, services_, request, std::move(done));
    });
  }

  absl::Status Rerun(const Principal& who, uint64_t id) {
    return Await<v1::RerunJobsResponse>([&](RerunDone done) {
             v1::RerunJobsRequest request;
             request.add_job_ids(id);
             RerunJobs(who, services_, request, std::move(done));
           })
        .status();
  }

  absl::Status Transitions(const Principal& who, uint64_t id) {
    v1::ListTransitionsRequest request;
    request.set_job_id(id);
    return ListTransitions(who, services_, request).status();
  }

  absl::Status Logs(const Principal& who, uint64_t id) {
    v1::ListLogsRequest request;
    request.set_job_id(id);
    return ListLogs(who, services_, request).status();
  }

  // Returns the first result of a stream that shows the job.
  template <typename Source>
  static absl::Status Begin(absl::StatusOr<std::unique_ptr<Source>> source) {
    if (!source.ok()) return source.status();
    return (*source)->Next().final_status.value_or(absl::OkStatus());
  }
  absl::Status Watch(const Principal& who, uint64_t id) {
    v1::WatchJobsRequest request;
    request.add_job_ids(id);
    return Begin(WatchJobs(who, services_, request));
  }
  absl::Status Log(const Principal& who, uint64_t id) {
    v1::ReadLogRequest request;
    request.set_job_id(id);
    return Begin(ReadLog(who, services_, request));
  }

  absl::Status Fetch(const Principal& who, uint64_t id) {
    return Await<bool>([&](const std::function<void(absl::StatusOr<bool>)>& done) {
             v1::FetchFilesRequest request;
             request.set_job_id(id);
             AskForFiles(who, services_, request, "ticket",
                         [done](const absl::Status& status) { done(status); });
           })
        .status();
  }
};

TEST_F(ScopesTest, OneThatIsShownToItsOwnerIsNotFoundByOthers) {
  v1::GetJobRequest request;
  request.set_job_id(1);
  const auto shown = GetJob(alice_, services_, request);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->job().id(), 1u);
  EXPECT_NE(shown->job().state_reason().code(), v1::STATE_REASON_CODE_UNSPECIFIED)
      << "with why it waits";
  EXPECT_TRUE(absl::IsNotFound(GetJob(carol_, services_, request).status()));
}

TEST_F(ScopesTest, ListsAndCountsLeaveOutTheJobsOfOthers) {
  EXPECT_EQ(ListJobs(alice_, services_, {})->jobs_size(), 2);
  EXPECT_EQ(ListJobs(carol_, services_, {})->jobs_size(), 0);
  EXPECT_EQ(CountJobs(alice_, services_, {})->total(), 2u);
  EXPECT_EQ(CountJobs(carol_, services_, {})->total(), 0u);
}

TEST_F(ScopesTest, NobodyChangesAJobOfOthersByItsNumber) {
  for (const JobChange change : {JobChange::kCancel, JobChange::kHold, JobChange::kRelease}) {
    EXPECT_TRUE(absl::IsNotFound(Change(carol_, {.change = change, .jobs = {1, 2}}).status()));
  }
  EXPECT_TRUE(absl::IsNotFound(Update(carol_, 1).status()));
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_QUEUED);
  EXPECT_FALSE(Read(1).held());
  EXPECT_EQ(Read(1).priority(), 0);
}

TEST_F(ScopesTest, AFilterFindsNoJobsOfOthersToChange) {
  const auto canceled = Change(carol_, {.change = JobChange::kCancel, .filter = "state = QUEUED"});
  ASSERT_TRUE(canceled.ok()) << canceled.status();
  EXPECT_EQ(canceled->matched_count, 0u);
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(ScopesTest, SubmittersChangeTheirOwnJobsByTheirNumbers) {
  const auto submitted = Await<v1::SubmitJobResponse>([&](SubmitJobDone done) {
    v1::SubmitJobRequest request;
    request.mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
    SubmitJob(carol_, services_, request, std::move(done));
  });
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const uint64_t id = submitted->job_id();
  EXPECT_EQ(ListJobs(carol_, services_, {})->jobs_size(), 1);
  ASSERT_TRUE(Change(carol_, {.change = JobChange::kHold, .jobs = {id}}).ok());
  EXPECT_TRUE(Read(id).held());
  EXPECT_TRUE(
      absl::IsNotFound(Change(carol_, {.change = JobChange::kHold, .jobs = {id, 1}}).status()))
      << "one of them is another's";
  EXPECT_FALSE(Read(1).held());
}

TEST_F(ScopesTest, FilesOfTheJobsOfOthersAreNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Fetch(carol_, 1)));
  EXPECT_EQ(contract::GetErrorInfo(Fetch(carol_, 1))->reason(),
            contract::GetErrorInfo(Fetch(carol_, 99))->reason())
      << "that the job is there is not told";
}

TEST_F(ScopesTest, NeitherHistoryNorLogsNorChangesOfTheJobsOfOthersAreThere) {
  using Ask = std::function<absl::Status(const Principal&)>;
  const Ask asks[] = {
      [this](const Principal& who) { return Transitions(who, 1); },
      [this](const Principal& who) { return Logs(who, 1); },
      [this](const Principal& who) { return Watch(who, 1); },
      [this](const Principal& who) { return Log(who, 1); },
      [this](const Principal& who) { return Rerun(who, 1); },
  };
  for (const Ask& ask : asks) {
    const absl::Status refused = ask(carol_);
    EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
    EXPECT_FALSE(absl::IsNotFound(ask(alice_)));
    EXPECT_TRUE(absl::IsPermissionDenied(ask(stranger_)));
  }
}

TEST_F(ScopesTest, OnlyThoseWithTheRightForgetOrCordonClustersOrAskTheirAgents) {
  const auto checked = Await<v1::CheckClusterResponse>([&](CheckClusterDone done) {
    CheckCluster(carol_, services_, {}, absl::InfiniteFuture(), std::move(done));
  });
  EXPECT_TRUE(absl::IsPermissionDenied(checked.status())) << checked.status();
  const auto forgotten = Await<v1::ForgetClusterResponse>(
      [&](ForgetDone done) { ForgetCluster(carol_, services_, {}, std::move(done)); });
  EXPECT_TRUE(absl::IsPermissionDenied(forgotten.status())) << forgotten.status();
  const auto cordoned = Await<v1::CordonClusterResponse>(
      [&](CordonDone done) { CordonCluster(carol_, services_, {}, std::move(done)); });
  EXPECT_TRUE(absl::IsPermissionDenied(cordoned.status())) << cordoned.status();
  const auto uncordoned = Await<v1::UncordonClusterResponse>(
      [&](UncordonDone done) { UncordonCluster(carol_, services_, {}, std::move(done)); });
  EXPECT_TRUE(absl::IsPermissionDenied(uncordoned.status())) << uncordoned.status();
}

TEST_F(ScopesTest, WhoHasNoRoleIsRefusedByEachUseCase) {
  EXPECT_TRUE(absl::IsPermissionDenied(GetJob(stranger_, services_, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(ListJobs(stranger_, services_, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(CountJobs(stranger_, services_, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Update(stranger_, 1).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(ListClusters(stranger_, services_, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(GetCluster(stranger_, services_, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(UploadFiles(stranger_, services_).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckFetch(stranger_, {})));
  EXPECT_TRUE(absl::IsPermissionDenied(Fetch(stranger_, 1)));
  const auto planned = Await<v1::PlanJobResponse>([&](PlanJobDone done) {
    PlanJob(stranger_, services_, {}, absl::InfiniteFuture(), std::move(done));
  });
  EXPECT_TRUE(absl::IsPermissionDenied(planned.status())) << planned.status();
  const auto described = Await<v1::DescribeClusterResponse>([&](DescribeClusterDone done) {
    DescribeCluster(stranger_, services_, {}, absl::InfiniteFuture(), std::move(done));
  });
  EXPECT_TRUE(absl::IsPermissionDenied(described.status())) << described.status();
}

}  // namespace
}  // namespace muster::broker
