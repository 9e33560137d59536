// The bounds of one user, and who speaks as an agent without a certificate.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "broker/app/rights.h"
#include "broker/app/user_meter.h"
#include "broker/rpc/users.h"
#include "contract/errors.h"
#include "digest/sha256.h"
#include "google/rpc/error_details.pb.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/agent/v1/enrollment.grpc.pb.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "muster/v1/identity_service.grpc.pb.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::string EndReasonOf(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

TEST(UserMeter, MakesOneWaitWhoTakesTooMuchAndNobodyElse) {
  UserMeter meter(20, absl::Seconds(10));
  const absl::Time start = absl::FromUnixSeconds(1'000'000);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(meter.Take("ada", 1, start), absl::ZeroDuration()) << i;
  EXPECT_EQ(meter.Take("ada", 1, start), absl::Milliseconds(500));
  EXPECT_EQ(meter.Take("grace", 1, start), absl::ZeroDuration());
  EXPECT_EQ(meter.Take("ada", 1, start + absl::Milliseconds(500)), absl::ZeroDuration());
  EXPECT_GT(meter.Take("ada", 1, start + absl::Milliseconds(500)), absl::ZeroDuration());
  // A clock that was put back gives nothing and takes nothing.
  EXPECT_GT(meter.Take("ada", 1, start - absl::Hours(1)), absl::ZeroDuration());
  EXPECT_EQ(meter.Take("ada", 1, start - absl::Hours(1) + absl::Seconds(1)), absl::ZeroDuration());
}

TEST(UserMeter, TakesMoreThanAllAsAll) {
  UserMeter meter(20, absl::Seconds(10));
  const absl::Time start = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(meter.Take("ada", 1000, start), absl::ZeroDuration());
  EXPECT_EQ(meter.Take("ada", ~uint64_t{0}, start), absl::Seconds(10));
}

TEST(UserMeter, RemembersABoundedNumberOfUsers) {
  UserMeter meter(10, absl::Seconds(10));
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  for (size_t i = 0; i < 3 * UserMeter::kMaxUsers; ++i) {
    now += absl::Milliseconds(2);
    EXPECT_EQ(meter.Take(std::to_string(i), 1, now), absl::ZeroDuration());
  }
}

TEST(Users, WhoSpeaksAsAnAgentWithoutACertificate) {
  Users users({.socket = Role::kNone, .agents = {"ada"}}, nullptr);
  users.Note(7, "root", true);
  users.Note(8, "ada", false);
  users.Note(9, "eve", false);
  EXPECT_TRUE(users.PrincipalOf("fd:7", {}).is_agent);
  EXPECT_TRUE(users.PrincipalOf("fd:8", {}).is_agent);
  EXPECT_FALSE(users.PrincipalOf("fd:9", {}).is_agent);
  EXPECT_FALSE(users.PrincipalOf("ipv4:127.0.0.1:7", {}).is_agent);
  // The agent fetches the files of its jobs, and has no other right of people.
  const Principal agent = users.PrincipalOf("fd:8", {});
  for (const RpcUseCase& rpc : RpcUseCases()) {
    EXPECT_EQ(Authorize(agent, rpc.use_case).ok(), rpc.use_case == UseCase::kDownloadFiles);
  }
  // A name on loopback is anybody's word.
  const Users loopback({.listen = Role::kOperator, .agents = {std::string(kLoopbackUser)}},
                       nullptr);
  EXPECT_FALSE(loopback.PrincipalOf("ipv4:127.0.0.1:7", {}).is_agent);
  EXPECT_TRUE(
      Users({.listen = Role::kAdmin}, nullptr).PrincipalOf("ipv4:127.0.0.1:7", {}).is_agent);
}

// The end of each service's stream that a caller on loopback begins as an agent.
class LoopbackAgent : public ::testing::TestWithParam<Role> {
 protected:
  TestBroker broker_{[](BrokerOptions& options) {
    options.listen = "127.0.0.1:0";
    options.roles.listen = GetParam();
  }};
  const std::shared_ptr<grpc::Channel> channel_ = grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(broker_.broker().port()), grpc::InsecureChannelCredentials());
};

TEST_P(LoopbackAgent, IsLetInOnlyIfLoopbackIsAnAdmins) {
  const bool may = GetParam() == Role::kAdmin;
  const auto check = [&](const grpc::Status& end) {
    EXPECT_EQ(EndReasonOf(end) == "NOT_AN_AGENT", !may) << end.error_message();
    EXPECT_EQ(end.error_code() == grpc::PERMISSION_DENIED, !may) << end.error_message();
  };
  const auto link_stub = agent::v1::AgentLinkService::NewStub(channel_);
  const auto link_call = Call();
  const auto link = link_stub->Connect(link_call.get());
  link->WritesDone();
  check(link->Finish());
  const auto logs_stub = agent::v1::LogLinkService::NewStub(channel_);
  const auto logs_call = Call();
  const auto logs = logs_stub->Push(logs_call.get());
  logs->WritesDone();
  check(logs->Finish());
  const auto files_stub = agent::v1::FileLinkService::NewStub(channel_);
  const auto files_call = Call();
  agent::v1::SendFilesResponse answer;
  const auto files = files_stub->SendFiles(files_call.get(), &answer);
  files->WritesDone();
  check(files->Finish());
  const auto enrollment = agent::v1::EnrollmentService::NewStub(channel_);
  agent::v1::RenewResponse renewed;
  check(enrollment->Renew(Call().get(), {}, &renewed));
}

INSTANTIATE_TEST_SUITE_P(Roles, LoopbackAgent,
                         ::testing::Values(Role::kNone, Role::kViewer, Role::kSubmitter,
                                           Role::kOperator, Role::kAdmin));

class BoundsOfUsers : public ::testing::Test {
 protected:
  explicit BoundsOfUsers(UserBounds bounds = {.max_calls_in_flight = 1})
      : broker_([bounds](BrokerOptions& options) { options.user = bounds; }) {}

  std::unique_ptr<grpc::ClientContext> As(const std::string& user) {
    auto context = Call();
    std::string& secret = secrets_[user];
    if (secret.empty()) {
      v1::CreateTokenRequest request;
      request.set_name(user);
      request.set_user(user);
      v1::CreateTokenResponse made;
      EXPECT_TRUE(identity_->CreateToken(Call().get(), request, &made).ok());
      secret = made.secret();
    }
    context->AddMetadata("authorization", "Bearer " + secret);
    return context;
  }

  TestBroker broker_;
  const std::unique_ptr<v1::IdentityService::Stub> identity_ =
      v1::IdentityService::NewStub(broker_.NewChannel());
  std::map<std::string, std::string> secrets_;
};

// Opens a stream; it is open, or refused, at the return.
class Watch {
 public:
  Watch(TestBroker& broker, std::unique_ptr<grpc::ClientContext> context)
      : context_(std::move(context)), stream_(broker.jobs().WatchJobs(context_.get(), {})) {
    stream_->WaitForInitialMetadata();
  }
  ~Watch() { Cancel(); }

  grpc::Status Cancel() {
    context_->TryCancel();
    return End();
  }
  grpc::Status End() {
    if (!std::exchange(has_ended_, true)) status_ = stream_->Finish();
    return status_;
  }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReader<v1::WatchJobsResponse>> stream_;
  bool has_ended_ = false;
  grpc::Status status_;
};

TEST_F(BoundsOfUsers, OneWhoLeavesStreamsOpenGetsNoMoreAndOthersDo) {
  Watch first(broker_, As("ada"));
  const grpc::Status refused = Watch(broker_, As("ada")).End();
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(EndReasonOf(refused), "TOO_MANY_CALLS_IN_FLIGHT");
  EXPECT_THAT(refused.error_message(), HasSubstr("ada has 1 calls and streams in flight"));
  EXPECT_TRUE(contract::GetRetryDelay(rpc::FromGrpc(refused)).has_value());
  v1::WhoAmIResponse me;
  EXPECT_EQ(EndReasonOf(identity_->WhoAmI(As("ada").get(), {}, &me)), "TOO_MANY_CALLS_IN_FLIGHT");
  EXPECT_TRUE(identity_->WhoAmI(As("grace").get(), {}, &me).ok());
  // The owner of the socket has no bound.
  Watch owners(broker_, Call()), another(broker_, Call());
  EXPECT_EQ(owners.Cancel().error_code(), grpc::CANCELLED);
  // A stream that ends makes room for another call.
  first.Cancel();
  grpc::Status again = refused;
  while (EndReasonOf(again) == "TOO_MANY_CALLS_IN_FLIGHT")
    again = identity_->WhoAmI(As("ada").get(), {}, &me);
  EXPECT_TRUE(again.ok()) << again.error_message();
}

TEST_F(BoundsOfUsers, ARefusalNamesTheUserAndTheBoundForPrograms) {
  Watch first(broker_, As("ada"));
  const absl::Status refused = rpc::FromGrpc(Watch(broker_, As("ada")).End());
  const auto failure = refused.GetPayload("type.googleapis.com/google.rpc.QuotaFailure");
  ASSERT_TRUE(failure.has_value());
  google::rpc::QuotaFailure quota;
  ASSERT_TRUE(quota.ParseFromString(std::string(*failure)));
  EXPECT_EQ(quota.violations(0).subject(), "user:ada");
  EXPECT_THAT(quota.violations(0).description(), HasSubstr("max_calls_in_flight"));
}

class UploadsOfUsers : public BoundsOfUsers {
 protected:
  UploadsOfUsers() : BoundsOfUsers({.max_upload_bytes_per_hour = 100}) {}
};

TEST_F(UploadsOfUsers, OneWhoUploadsTooMuchWaitsAndOthersDoNot) {
  const auto upload = [&](const std::string& content,
                          std::unique_ptr<grpc::ClientContext> context) {
    v1::UploadFilesResponse answer;
    const auto stream = broker_.files().UploadFiles(context.get(), &answer);
    v1::UploadFilesRequest head, chunk;
    head.mutable_head()->set_sha256(Sha256Of(content));
    head.mutable_head()->set_size_bytes(content.size());
    chunk.set_chunk(content);
    stream->Write(head);
    stream->Write(chunk);
    stream->WritesDone();
    return stream->Finish();
  };
  EXPECT_TRUE(upload(std::string(60, 'a'), As("ada")).ok());
  const grpc::Status refused = upload(std::string(60, 'b'), As("ada"));
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(EndReasonOf(refused), "TOO_MANY_UPLOAD_BYTES");
  EXPECT_THAT(refused.error_message(), HasSubstr("files.max_user_bytes_per_hour"));
  EXPECT_TRUE(upload(std::string(60, 'b'), As("grace")).ok());
  EXPECT_TRUE(upload(std::string(60, 'c'), Call()).ok());
  EXPECT_TRUE(upload(std::string(90, 'd'), Call()).ok());
}

class RatesOfUsers : public BoundsOfUsers {
 protected:
  RatesOfUsers() : BoundsOfUsers({.max_calls_per_second = 1}) {}
};

TEST_F(RatesOfUsers, OneWhoCallsTooOftenWaitsAndOthersDoNot) {
  v1::WhoAmIResponse me;
  grpc::Status status;
  while (status.ok()) status = identity_->WhoAmI(As("ada").get(), {}, &me);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(EndReasonOf(status), "TOO_MANY_CALLS");
  EXPECT_TRUE(contract::GetRetryDelay(rpc::FromGrpc(status)).has_value());
  EXPECT_TRUE(identity_->WhoAmI(As("grace").get(), {}, &me).ok());
  // The owner of the socket has no bound.
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(identity_->WhoAmI(Call().get(), {}, &me).ok());
}

}  // namespace
}  // namespace muster::broker
