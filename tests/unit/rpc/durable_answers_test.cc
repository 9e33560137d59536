// Tests that OK means on disk, and that a call which finds no room for its answer is refused before
// anything is done.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

std::string ReasonOf(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

grpc::Status Cancel(TestBroker& broker, uint64_t job, v1::CancelJobsResponse* response) {
  v1::CancelJobsRequest request;
  request.add_job_ids(job);
  return broker.jobs().CancelJobs(Call().get(), request, response);
}

grpc::Status Hold(TestBroker& broker, uint64_t job) {
  v1::HoldJobsRequest request;
  request.add_job_ids(job);
  v1::HoldJobsResponse response;
  return broker.jobs().HoldJobs(Call().get(), request, &response);
}

grpc::Status Get(TestBroker& broker, uint64_t job) {
  v1::GetJobRequest request;
  request.set_job_id(job);
  v1::GetJobResponse response;
  return broker.jobs().GetJob(Call().get(), request, &response);
}

TEST(DurableAnswers, AWishThatWouldFindNoReaderIsRefusedBeforeItIsDone) {
  TestBroker broker([](BrokerOptions& options) { options.readers.max_waiting_calls = 0; });
  const uint64_t id = broker.Submit();
  v1::CancelJobsResponse response;
  EXPECT_EQ(ReasonOf(Cancel(broker, id, &response)), "READERS_BUSY");
  EXPECT_EQ(ReasonOf(Hold(broker, id)), "READERS_BUSY");
  const auto job = broker.store().GetJob(store::Scope::All(), id);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(job->cancel_requested());
  EXPECT_FALSE(job->held());
}

TEST(DurableAnswers, AWishKeepsItsReaderUntilItIsOnDisk) {
  TestBroker broker([](BrokerOptions& options) { options.readers.max_waiting_calls = 1; });
  const uint64_t id = broker.Submit();
  broker.store().CloseGate();
  v1::CancelJobsResponse response;
  grpc::Status status;
  std::thread client([&] { status = Cancel(broker, id, &response); });
  broker.store().AwaitCommit();
  EXPECT_EQ(ReasonOf(Get(broker, id)), "READERS_BUSY") << "the place is the cancel's";
  broker.store().OpenGate();
  client.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.jobs_size(), 1);
  EXPECT_EQ(response.jobs(0).state(), v1::JOB_STATE_CANCELED);
  EXPECT_TRUE(Get(broker, id).ok()) << "the place is given back";
}

TEST(DurableAnswers, AWishThatIsRefusedGivesItsReaderBack) {
  TestBroker broker([](BrokerOptions& options) { options.readers.max_waiting_calls = 1; });
  const uint64_t id = broker.Submit();
  v1::CancelJobsResponse response;
  EXPECT_EQ(ReasonOf(Cancel(broker, id + 1, &response)), "UNKNOWN_JOB");
  EXPECT_TRUE(Cancel(broker, id, &response).ok());
}

TEST(DurableAnswers, AWishThatIsOnDiskIsAnsweredThoughItsJobCannotBeRead) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  broker.store().FailReadsOfMany();
  v1::CancelJobsResponse response;
  const grpc::Status status = Cancel(broker, id, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.jobs_size(), 1);
  EXPECT_EQ(response.jobs(0).id(), id);
  EXPECT_EQ(broker.Get(id).state(), v1::JOB_STATE_CANCELED);
}

}  // namespace
}  // namespace muster::broker
