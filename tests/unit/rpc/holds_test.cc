#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::string ReasonOf(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

grpc::Status Hold(TestBroker& broker, uint64_t job, v1::HoldJobsResponse* response,
                  const std::string& reason = "") {
  v1::HoldJobsRequest request;
  request.add_job_ids(job);
  request.set_reason(reason);
  return broker.jobs().HoldJobs(Call().get(), request, response);
}

grpc::Status Release(TestBroker& broker, uint64_t job, v1::ReleaseJobsResponse* response) {
  v1::ReleaseJobsRequest request;
  request.add_job_ids(job);
  return broker.jobs().ReleaseJobs(Call().get(), request, response);
}

TEST(Holds, AHeldJobSaysByWhomAndGoesOnWhenItIsReleased) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  v1::HoldJobsResponse held;
  ASSERT_TRUE(Hold(broker, id, &held, "the data is late").ok());
  ASSERT_EQ(held.jobs_size(), 1);
  EXPECT_TRUE(held.jobs(0).held());
  EXPECT_THAT(broker.Get(id).state_reason().message(), HasSubstr("held by "));
  EXPECT_THAT(broker.Get(id).state_reason().message(), HasSubstr(": the data is late"));
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  v1::ReleaseJobsResponse released;
  ASSERT_TRUE(Release(broker, id, &released).ok());
  EXPECT_FALSE(released.jobs(0).held());
  EXPECT_EQ(agent.ReadAssignments(1)[0].job_id(), id);
}

TEST(Holds, TheAgentOfAPendingRunIsToldOfTheHoldAndOfTheRelease) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const uint64_t id = broker.Submit();
  const std::string key = agent.ReadAssignments(1)[0].run_key();
  v1::HoldJobsResponse held;
  ASSERT_TRUE(Hold(broker, id, &held).ok());
  v1::ReleaseJobsResponse released;
  ASSERT_TRUE(Release(broker, id, &released).ok());
  std::vector<bool> told;
  while (told.size() < 2) {
    const auto message = agent.Read();
    ASSERT_TRUE(message.has_value());
    if (!message->has_holds()) continue;
    EXPECT_EQ(message->holds().run_keys(0), key);
    told.push_back(message->holds().held());
  }
  EXPECT_EQ(told, (std::vector<bool>{true, false}));
}

TEST(Holds, AJobThatHasEndedCannotBeHeldAndIsNamed) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const uint64_t id = broker.Submit();
  agent.Succeed(agent.ReadAssignments(1)[0].run_key());
  v1::HoldJobsResponse held;
  const grpc::Status status = Hold(broker, id, &held);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "NOT_WAITING");
  EXPECT_THAT(status.error_message(), HasSubstr("1 (has ended)"));
  v1::ReleaseJobsResponse released;
  EXPECT_TRUE(Release(broker, id, &released).ok());
}

TEST(Holds, RequestsThatSayNothingOrTooMuchAreRefused) {
  TestBroker broker;
  v1::HoldJobsResponse held;
  v1::ReleaseJobsResponse released;
  const auto invalid = grpc::INVALID_ARGUMENT;
  EXPECT_EQ(broker.jobs().HoldJobs(Call().get(), {}, &held).error_code(), invalid);
  EXPECT_EQ(broker.jobs().ReleaseJobs(Call().get(), {}, &released).error_code(), invalid);
  EXPECT_EQ(Hold(broker, 0, &held).error_code(), invalid);
  EXPECT_EQ(Hold(broker, 7, &held).error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Release(broker, 7, &released).error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Hold(broker, 7, &held, std::string(257, 'x')).error_code(), invalid);
}

}  // namespace
}  // namespace muster::broker
