// Tests the network listener: who may call what over TLS.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "broker/audit/audit_file.h"
#include "broker/auth/cluster_access.h"
#include "daemon/read_file.h"
#include "muster/agent/v1/enrollment.grpc.pb.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "pki/certificates.h"
#include "tests/unit/rpc/harness.h"
#include "tests/unit/rpc/tls_fixture.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

TEST_F(TlsListener, RefusedCallsCertificatesAndKeysAreInTheAuditLog) {
  EXPECT_EQ(Try(Channel(), "/muster.v1.JobsService/CancelJobs").error_code(),
            grpc::UNAUTHENTICATED);
  Enroll("gpu");
  broker_->broker().Shutdown();
  const auto page = audit::ReadRecords(broker_->directory() / "audit.db", {}, 100, 100);
  ASSERT_TRUE(page.ok()) << page.status();
  std::map<std::string, audit::Record> by_action;
  for (const audit::Record& record : page->records) by_action[record.action] = record;
  EXPECT_EQ(by_action["JobsService.CancelJobs"].origin, "tls");
  EXPECT_EQ(by_action["JobsService.CancelJobs"].credential, "none");
  EXPECT_EQ(by_action["JobsService.CancelJobs"].result, "NO_CREDENTIAL");
  EXPECT_EQ(by_action["ClustersService.InviteCluster"].target, "name=\"gpu\"");
  EXPECT_EQ(by_action["EnrollmentService.Enroll"].target, "cluster=\"gpu\"");
  EXPECT_EQ(by_action["EnrollmentService.Enroll"].result, "OK");
  EXPECT_THAT(by_action["tls.identity"].target, HasSubstr("sha256="));
}

TEST_F(TlsListener, RefusesEveryCallWithoutACredential) {
  const auto channel = Channel();
  for (const std::string& method : AllMethods()) {
    const bool is_for_anyone = method == "/muster.agent.v1.EnrollmentService/Enroll" ||
                               method == "/muster.v1.IdentityService/GetLoginInfo";
    if (is_for_anyone) continue;
    const grpc::Status status = Try(channel, method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << method << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("does not know who calls")) << method;
  }
  EXPECT_TRUE(Try(channel, "/muster.v1.IdentityService/GetLoginInfo").ok());
  EXPECT_TRUE(Try(channel, "/grpc.health.v1.Health/Check").ok());
  EXPECT_FALSE(Try(channel, "/grpc.health.v1.Health/Watch").ok());
  // It is open, and wants a token.
  const grpc::Status enroll = Try(channel, "/muster.agent.v1.EnrollmentService/Enroll");
  EXPECT_EQ(enroll.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(enroll.error_message(), HasSubstr("does not know this token"));
}

TEST_F(TlsListener, LetsAClustersCertificateCallWhatAgentsNeedAlone) {
  const auto channel = Channel(Enroll("lab"));
  for (const std::string& method : AllMethods()) {
    const bool is_for_agents =
        method.starts_with("/muster.agent.v1.") || method == "/muster.v1.FilesService/DownloadFile";
    if (is_for_agents) continue;
    const grpc::Status status = Try(channel, method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << method << ": " << status.error_message();
  }
  const grpc::Status download = Try(channel, "/muster.v1.FilesService/DownloadFile");
  EXPECT_EQ(download.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << download.error_message();
}

TEST_F(TlsListener, LetsAnAgentSpeakForItsClusterAlone) {
  const auto channel = Channel(Enroll("lab"));
  EXPECT_TRUE(Hello(channel, "lab").ok());
  const grpc::Status other = Hello(channel, "other");
  EXPECT_EQ(other.error_code(), grpc::StatusCode::PERMISSION_DENIED) << other.error_message();
  EXPECT_THAT(other.error_message(), HasSubstr("is of the cluster \"lab\""));

  const auto logs_stub = agent::v1::LogLinkService::NewStub(channel);
  const auto logs_context = Call(20);
  const auto logs = logs_stub->Push(logs_context.get());
  agent::v1::PushRequest push;
  push.mutable_hello()->set_protocol_version(1);
  push.mutable_hello()->set_cluster("other");
  logs->Write(push);
  EXPECT_EQ(logs->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);

  const auto files_stub = agent::v1::FileLinkService::NewStub(channel);
  const auto files_context = Call(20);
  agent::v1::SendFilesResponse answer;
  const auto files = files_stub->SendFiles(files_context.get(), &answer);
  agent::v1::SendFilesRequest send;
  send.mutable_hello()->set_protocol_version(1);
  send.mutable_hello()->set_cluster("other");
  files->Write(send);
  EXPECT_EQ(files->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(TlsListener, SaysWhatIsWrongWithACertificate) {
  const absl::Time now = absl::Now();
  const pki::Identity other =
      pki::MakeCa("Muster broker CA", {now - absl::Hours(2), now + absl::Hours(2)});
  const pki::Identity ca{ReadFile(ca_.key(), 1 << 20).value(),
                         ReadFile(ca_.certificate(), 1 << 20).value()};
  const std::string key = pki::MakeKey();
  const auto with = [&](const pki::Identity& by, const pki::Validity& validity) {
    return Channel(
        {key, pki::SignRequest(by, pki::MakeRequest(key).value(), "lab", validity).value()});
  };
  const pki::Validity good = {now - absl::Hours(1), now + absl::Hours(1)};
  const grpc::Status foreign = Hello(with(other, good), "lab");
  EXPECT_EQ(foreign.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(foreign.error_message(), HasSubstr("not signed by the CA"));
  const grpc::Status expired = Hello(with(ca, {now - absl::Hours(2), now - absl::Hours(1)}), "lab");
  EXPECT_EQ(expired.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(expired.error_message(), HasSubstr("has expired"));
  // It is signed by the right key, but was never given out.
  const grpc::Status unknown = Hello(with(ca, good), "lab");
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(unknown.error_message(), HasSubstr("has not given this certificate"));
}

TEST_F(TlsListener, EndsTheLinkOfARevokedClusterAndRefusesTheNextOne) {
  const auto channel = Channel(Enroll("lab"));
  const auto stub = agent::v1::LogLinkService::NewStub(channel);
  const auto context = Call();
  const auto logs = stub->Push(context.get());
  logs->WaitForInitialMetadata();
  v1::RevokeClusterRequest request;
  request.set_name("lab");
  v1::RevokeClusterResponse response;
  ASSERT_TRUE(broker_->clusters().RevokeCluster(Call().get(), request, &response).ok());
  EXPECT_EQ(response.certificates(), 1);
  const grpc::Status ended = logs->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(ended.error_message(), HasSubstr("was revoked"));
  EXPECT_EQ(Hello(channel, "lab").error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsListener, RenewsACertificateForTheClusterOfItsCaller) {
  const auto channel = Channel(Enroll("lab"));
  const std::string key = pki::MakeKey();
  agent::v1::RenewRequest request;
  request.set_certificate_request(pki::MakeRequest(key).value());
  agent::v1::RenewResponse response;
  const grpc::Status status =
      agent::v1::EnrollmentService::NewStub(channel)->Renew(Call().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(Hello(Channel({key, response.certificate()}), "lab").ok());
}

TEST_F(TlsListener, ServesNoPlainText) {
  const auto channel = Open(Address(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(Try(channel, "/grpc.health.v1.Health/Check").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsListener, LeavesTheUnixSocketAsItWas) {
  const uint64_t id = broker_->Submit();
  EXPECT_GT(id, 0u);
}

TEST(TlsListenerStart, NeedsAnIdentity) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "tls_listener_start";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  ClusterAccess::Options options;
  options.files.ca_directory = directory / "ca";
  options.database = directory / "auth.db";
  options.now = absl::Now;
  const absl::Status status = ClusterAccess::Open(options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("run muster-broker init"));
}

TEST(TlsListenerStart, WithoutItNobodyIsInvited) {
  TestBroker broker;
  v1::InviteClusterRequest request;
  request.set_name("lab");
  v1::InviteClusterResponse response;
  const grpc::Status status = broker.clusters().InviteCluster(Call().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("set tls.listen"));
}

}  // namespace
}  // namespace muster::broker
