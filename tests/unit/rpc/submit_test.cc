#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <future>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

// Returns the fields that a refusal names.
std::vector<std::string> BadFields(const grpc::Status& status) {
  std::vector<std::string> fields;
  const auto bad = contract::GetBadRequest(rpc::FromGrpc(status));
  if (!bad) return fields;
  for (const auto& violation : bad->field_violations()) fields.push_back(violation.field());
  return fields;
}

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

TEST(Submit, AnAcceptedJobCanBeRead) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  const v1::Job job = broker.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job.spec().name(), "true") << "defaults are filled in";
  EXPECT_EQ(job.state_reason().code(), v1::STATE_REASON_CODE_NO_CLUSTERS)
      << "a job that waits says why";
}

TEST(Submit, TheUserIsWhoTheKernelSays) {
  TestBroker broker;
  const v1::Job job = broker.Get(broker.Submit());
  EXPECT_EQ(job.user(), getpwuid(getuid())->pw_name);
}

TEST(Submit, NothingIsAnsweredBeforeItIsOnDisk) {
  TestBroker broker;
  broker.Submit();
  broker.store().CloseGate();
  auto id = std::async(std::launch::async, [&] { return broker.Submit(); });
  broker.store().AwaitCommit();
  EXPECT_EQ(id.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  broker.store().OpenGate();
  EXPECT_GT(id.get(), 1u);
}

TEST(Submit, AFailedCommitIsNeverAcknowledged) {
  TestBroker broker;
  broker.Submit();
  broker.store().FailCommits(absl::ResourceExhaustedError("disk full"));
  auto answer = std::async(std::launch::async, [&] {
    v1::SubmitJobResponse response;
    return broker.jobs().SubmitJob(Call().get(), SubmitTrue(), &response);
  });
  EXPECT_EQ(broker.AwaitFailure().message(), "disk full");
  broker.broker().Shutdown();
  EXPECT_EQ(answer.get().error_code(), grpc::UNAVAILABLE);
}

TEST(Submit, ARepeatedRequestIdGetsTheSameJob) {
  TestBroker broker;
  const uint64_t id = broker.Submit(SubmitTrue("once"));
  v1::SubmitJobResponse response;
  ASSERT_TRUE(broker.jobs().SubmitJob(Call().get(), SubmitTrue("once"), &response).ok());
  EXPECT_EQ(response.job_id(), id);
  EXPECT_TRUE(response.repeated_request());
}

TEST(Submit, AUsedRequestIdWithAnotherSpecIsRefused) {
  TestBroker broker;
  broker.Submit(SubmitTrue("once"));
  v1::SubmitJobRequest other = SubmitTrue("once");
  other.mutable_spec()->mutable_command()->mutable_argv()->add_args("now");
  v1::SubmitJobResponse response;
  const grpc::Status status = broker.jobs().SubmitJob(Call().get(), other, &response);
  EXPECT_EQ(status.error_code(), grpc::ALREADY_EXISTS);
  EXPECT_NE(Reason(status), "");
}

TEST(Submit, ABadFieldIsNamedByItsPathInTheRequest) {
  TestBroker broker;
  v1::SubmitJobRequest request = SubmitTrue();
  request.mutable_spec()->set_nodes(1'000'000);
  v1::SubmitJobResponse response;
  grpc::Status status = broker.jobs().SubmitJob(Call().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(BadFields(status), ::testing::ElementsAre("spec.nodes"));

  v1::SubmitJobsRequest batch;
  *batch.add_requests() = SubmitTrue();
  *batch.add_requests() = request;
  v1::SubmitJobsResponse responses;
  status = broker.jobs().SubmitJobs(Call().get(), batch, &responses);
  EXPECT_THAT(BadFields(status), ::testing::ElementsAre("requests[1].spec.nodes"));
}

TEST(Submit, AFieldOfALaterVersionIsRefusedByName) {
  TestBroker broker;
  v1::SubmitJobRequest request = SubmitTrue();
  v1::JobSpec& spec = *request.mutable_spec();
  spec.GetReflection()->MutableUnknownFields(&spec)->AddVarint(999, 1);
  v1::SubmitJobResponse response;
  const grpc::Status status = broker.jobs().SubmitJob(Call().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED);
  EXPECT_EQ(contract::GetErrorInfo(rpc::FromGrpc(status))->metadata().at("field"), "spec.999");
}

TEST(Submit, ARequestWithoutASpecIsRefused) {
  TestBroker broker;
  v1::SubmitJobResponse response;
  const grpc::Status status = broker.jobs().SubmitJob(Call().get(), {}, &response);
  EXPECT_THAT(BadFields(status), ::testing::ElementsAre("spec"));
}

TEST(Submit, ABatchIsAcceptedWholeOrNotAtAll) {
  TestBroker broker;
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < 100; ++i) *batch.add_requests() = SubmitTrue();
  v1::SubmitJobsResponse responses;
  ASSERT_TRUE(broker.jobs().SubmitJobs(Call().get(), batch, &responses).ok());
  EXPECT_EQ(responses.responses_size(), 100);

  batch.mutable_requests(99)->mutable_spec()->clear_command();
  EXPECT_FALSE(broker.jobs().SubmitJobs(Call().get(), batch, &responses).ok());
  v1::ListJobsRequest list;
  list.set_page_size(1000);
  v1::ListJobsResponse page;
  ASSERT_TRUE(broker.jobs().ListJobs(Call().get(), list, &page).ok());
  EXPECT_EQ(page.jobs_size(), 100);
}

TEST(Cancel, TheAnswerOfAThousandJobsIsSmallEnoughForGrpc) {
  TestBroker broker;
  v1::SubmitJobsRequest batch;
  v1::SubmitJobRequest request = SubmitTrue();
  for (int i = 10; i < 74; ++i) {
    (*request.mutable_spec()->mutable_labels())[std::to_string(i) + std::string(61, 'k')] =
        std::string(63, 'v');
  }
  for (int i = 0; i < 1000; ++i) *batch.add_requests() = request;
  v1::SubmitJobsResponse submitted;
  const grpc::Status taken = broker.jobs().SubmitJobs(Call().get(), batch, &submitted);
  ASSERT_TRUE(taken.ok()) << taken.error_message();
  v1::CancelJobsRequest cancel;
  for (const auto& job : submitted.responses()) cancel.add_job_ids(job.job_id());
  v1::CancelJobsResponse response;
  const grpc::Status status = broker.jobs().CancelJobs(Call().get(), cancel, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.jobs_size(), 1000);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(response.jobs(i).id(), cancel.job_ids(i));
    EXPECT_EQ(response.jobs(i).state(), v1::JOB_STATE_CANCELED);
  }
  EXPECT_EQ(response.jobs(0).labels_size(), 64) << "the first ones are whole";
}

TEST(Submit, MoreThanTheInboxHoldsIsRefusedWithATimeToRetry) {
  TestBroker broker([](BrokerOptions& options) {
    options.engine.max_waiting_jobs = 10;
    options.engine.committer.max_waiting_rows = 1;
  });
  broker.store().CloseGate();
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < 10; ++i) *batch.add_requests() = SubmitTrue();
  // One call is at the gate, one in the committer, one in the core thread's hands, one in the
  // inbox: with 20 some must find it full.
  std::vector<std::future<grpc::Status>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      v1::SubmitJobsResponse responses;
      return broker.jobs().SubmitJobs(Call().get(), batch, &responses);
    }));
  }
  const auto refused = [](const grpc::Status& status) {
    return status.error_code() == grpc::RESOURCE_EXHAUSTED &&
           contract::GetRetryDelay(rpc::FromGrpc(status)).has_value();
  };
  broker.store().AwaitCommit();
  // The first refusal comes while the gate is closed; only then the others may go on.
  for (auto& call : calls) {
    if (call.wait_for(std::chrono::milliseconds(200)) == std::future_status::ready) break;
  }
  broker.store().OpenGate();
  int refusals = 0;
  for (auto& call : calls) {
    const grpc::Status status = call.get();
    EXPECT_TRUE(status.ok() || refused(status)) << status.error_message();
    refusals += refused(status);
  }
  EXPECT_GT(refusals, 0);
}

TEST(Submit, ValidateOnlyKeepsNothing) {
  TestBroker broker;
  v1::SubmitJobRequest request = SubmitTrue();
  request.set_validate_only(true);
  EXPECT_EQ(broker.Submit(request), 0u);
  EXPECT_EQ(broker.Submit(), 1u);
}

TEST(Cancel, AQueuedJobEndsAtOnce) {
  TestBroker broker;
  v1::CancelJobsRequest request;
  request.add_job_ids(broker.Submit());
  request.set_reason("changed my mind");
  v1::CancelJobsResponse response;
  ASSERT_TRUE(broker.jobs().CancelJobs(Call().get(), request, &response).ok());
  ASSERT_EQ(response.jobs_size(), 1);
  EXPECT_EQ(response.jobs(0).state(), v1::JOB_STATE_CANCELED);
}

TEST(Cancel, AnUnknownJobCancelsNone) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  v1::CancelJobsRequest request;
  request.add_job_ids(id);
  request.add_job_ids(id + 1);
  v1::CancelJobsResponse response;
  const grpc::Status status = broker.jobs().CancelJobs(Call().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(broker.Get(id).state(), v1::JOB_STATE_QUEUED);
}

TEST(GetJob, AnUnknownJobIsNotFound) {
  TestBroker broker;
  v1::GetJobRequest request;
  request.set_job_id(42);
  v1::GetJobResponse response;
  const grpc::Status status = broker.jobs().GetJob(Call().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("42"));
}

TEST(ListJobs, ABadFilterAndANegativePageSizeAreRefused) {
  TestBroker broker;
  v1::ListJobsRequest request;
  request.set_filter("state =");
  v1::ListJobsResponse response;
  EXPECT_THAT(BadFields(broker.jobs().ListJobs(Call().get(), request, &response)),
              ::testing::ElementsAre("filter"));
  request.clear_filter();
  request.set_page_size(-1);
  EXPECT_THAT(BadFields(broker.jobs().ListJobs(Call().get(), request, &response)),
              ::testing::ElementsAre("page_size"));
}

}  // namespace
}  // namespace muster::broker
