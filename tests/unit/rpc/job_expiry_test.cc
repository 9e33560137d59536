// Jobs that are kept no longer, and clusters that are forgotten, end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::string WhyNot(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

// Keeps no job after its end, except for the time between two rounds of housekeeping.
class JobExpiryTest : public ::testing::Test {
 protected:
  uint64_t Ended() {
    const uint64_t id = broker_.Submit();
    v1::CancelJobsRequest request;
    request.add_job_ids(id);
    v1::CancelJobsResponse response;
    EXPECT_TRUE(broker_.jobs().CancelJobs(Call().get(), request, &response).ok());
    return id;
  }
  grpc::Status TryGet(uint64_t id) {
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    return broker_.jobs().GetJob(Call().get(), request, &response);
  }
  // Does so once a minute in a broker of its own.
  void HousekeepUntilGone(uint64_t id) {
    const absl::Time patience = absl::Now() + absl::Seconds(60);
    while (TryGet(id).ok() && absl::Now() < patience) broker_.broker().Housekeep();
  }

  TestBroker broker_{[](BrokerOptions& options) {
    options.job_retention = absl::Nanoseconds(1);
    options.core.request_memory = absl::Nanoseconds(1);
  }};
};

TEST_F(JobExpiryTest, AJobThatEndedLongAgoIsDeletedAndSaysSo) {
  const uint64_t waits = broker_.Submit();
  const uint64_t old = Ended();
  HousekeepUntilGone(old);
  const grpc::Status status = TryGet(old);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(WhyNot(status), "JOB_DELETED");
  EXPECT_THAT(status.error_message(), HasSubstr("jobs.retention"));
  EXPECT_EQ(WhyNot(TryGet(old + 1)), "UNKNOWN_JOB");
  EXPECT_TRUE(TryGet(waits).ok());
  EXPECT_EQ(broker_.Submit(), old + 1) << "its number is not used again";
}

TEST_F(JobExpiryTest, APassTakesMoreThanOneSlice) {
  uint64_t last = 0;
  for (int i = 0; i < 500; ++i) last = Ended();
  HousekeepUntilGone(last);
  for (uint64_t id = 1; id <= last; ++id) EXPECT_EQ(WhyNot(TryGet(id)), "JOB_DELETED") << id;
}

TEST_F(JobExpiryTest, AWatcherFromTheBeginningSeesWhatIsStillThere) {
  const uint64_t waits = broker_.Submit();
  HousekeepUntilGone(Ended());
  v1::WatchJobsRequest request;
  request.mutable_beginning();
  auto context = Call();
  auto stream = broker_.jobs().WatchJobs(context.get(), request);
  v1::WatchJobsResponse response;
  while (stream->Read(&response) && response.changes().empty()) {
  }
  EXPECT_EQ(response.changes(0).job().id(), waits);
  context->TryCancel();
  while (stream->Read(&response)) {
  }
}

TEST(JobRetention, ZeroKeepsAllJobs) {
  TestBroker broker([](BrokerOptions& options) {
    options.job_retention = absl::ZeroDuration();
    options.core.request_memory = absl::Nanoseconds(1);
  });
  const uint64_t id = broker.Submit();
  v1::CancelJobsRequest request;
  request.add_job_ids(id);
  v1::CancelJobsResponse response;
  EXPECT_TRUE(broker.jobs().CancelJobs(Call().get(), request, &response).ok());
  broker.broker().Housekeep();
  EXPECT_EQ(broker.Get(id).state(), v1::JOB_STATE_CANCELED);
}

grpc::Status Forget(TestBroker& broker, const std::string& name) {
  v1::ForgetClusterRequest request;
  request.set_name(name);
  v1::ForgetClusterResponse response;
  return broker.clusters().ForgetCluster(Call().get(), request, &response);
}

// The broker hears a moment later that the agent has gone.
grpc::Status ForgetOnceItIsAway(TestBroker& broker, const std::string& name) {
  const absl::Time patience = absl::Now() + absl::Seconds(60);
  grpc::Status status = Forget(broker, name);
  while (WhyNot(status) == "CLUSTER_CONNECTED" && absl::Now() < patience) {
    status = Forget(broker, name);
  }
  return status;
}

TEST(ForgetCluster, OnlyAClusterWithoutItsAgentIsForgotten) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  EXPECT_EQ(WhyNot(Forget(broker, "gpu")), "CLUSTER_CONNECTED");
  EXPECT_EQ(WhyNot(Forget(broker, "other")), "NO_SUCH_CLUSTER");
  EXPECT_EQ(Forget(broker, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(agent.Finish().ok());
  EXPECT_TRUE(ForgetOnceItIsAway(broker, "gpu").ok());
  v1::ListClustersResponse clusters;
  ASSERT_TRUE(broker.clusters().ListClusters(Call().get(), {}, &clusters).ok());
  EXPECT_EQ(clusters.clusters_size(), 0);
}

TEST(ForgetCluster, IsOnDiskWhenItIsAnswered) {
  TestBroker broker;
  {
    FakeAgent agent(broker);
    ASSERT_TRUE(agent.Connect());
    EXPECT_TRUE(agent.Finish().ok());
  }
  EXPECT_TRUE(ForgetOnceItIsAway(broker, "gpu").ok());
  const auto restored = broker.store().Restore(absl::Now());
  ASSERT_TRUE(restored.ok());
  EXPECT_TRUE(restored->clusters.empty());
}

}  // namespace
}  // namespace muster::broker
