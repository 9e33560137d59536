// Sets up a broker with a network listener, and callers with this or that credential.
#ifndef MUSTER_TESTS_UNIT_RPC_TLS_FIXTURE_H_
#define MUSTER_TESTS_UNIT_RPC_TLS_FIXTURE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "broker/auth/ca_directory.h"
#include "daemon/read_file.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/agent/v1/enrollment.grpc.pb.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "muster/agent/v1/secret_link.pb.h"
#include "muster/v1/audit_service.pb.h"
#include "muster/v1/identity_service.grpc.pb.h"
#include "muster/v1/projects_service.pb.h"
#include "muster/v1/secrets_service.pb.h"
#include "muster/v1/usage_service.pb.h"
#include "pki/certificates.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {

// Returns every method of every service that the broker serves, by the descriptors of the services.
inline std::vector<std::string> AllMethods() {
  const google::protobuf::FileDescriptor* const files[] = {
      v1::SubmitJobRequest::descriptor()->file(),
      v1::GetClusterRequest::descriptor()->file(),
      v1::DownloadFileRequest::descriptor()->file(),
      v1::WhoAmIRequest::descriptor()->file(),
      v1::GetProjectRequest::descriptor()->file(),
      v1::SetSecretRequest::descriptor()->file(),
      v1::VerifyAuditRequest::descriptor()->file(),
      v1::GetUsageRequest::descriptor()->file(),
      agent::v1::ConnectRequest::descriptor()->file(),
      agent::v1::PushRequest::descriptor()->file(),
      agent::v1::SendFilesRequest::descriptor()->file(),
      agent::v1::FetchRunSecretsRequest::descriptor()->file(),
      agent::v1::EnrollRequest::descriptor()->file()};
  std::vector<std::string> methods = {
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/muster.v1.Later/Method"};
  for (const auto* file : files) {
    for (int s = 0; s < file->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        methods.push_back("/" + service.full_name() + "/" + service.method(m)->name());
      }
    }
  }
  return methods;
}

class TlsListener : public ::testing::Test {
 protected:
  TlsListener() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    EXPECT_TRUE(ca_.Init({"localhost", "127.0.0.1"}, absl::Now()).ok());
    broker_ = std::make_unique<TestBroker>([this](BrokerOptions& options) {
      options.tls.listen = "127.0.0.1:0";
      options.tls.files.ca_directory = directory_ / "ca";
      options.tls.database = directory_ / "auth.db";
    });
  }

  std::string Address() const {
    return "127.0.0.1:" + std::to_string(broker_->broker().tls_port());
  }

  static std::shared_ptr<grpc::Channel> Open(
      const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, credentials, arguments);
  }

  std::shared_ptr<grpc::Channel> Channel(const pki::Identity& identity = {}) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadFile(ca_.certificate(), 1 << 20).value();
    options.pem_private_key = identity.key;
    options.pem_cert_chain = identity.certificate;
    return Open(Address(), grpc::SslCredentials(options));
  }

  std::string Token(const std::string& cluster) {
    v1::InviteClusterRequest request;
    request.set_name(cluster);
    v1::InviteClusterResponse response;
    const grpc::Status status = broker_->clusters().InviteCluster(Call().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.address(), Address());
    return response.token();
  }

  pki::Identity Enroll(const std::string& cluster) {
    const std::string key = pki::MakeKey();
    agent::v1::EnrollRequest request;
    request.set_token(Token(cluster));
    request.set_certificate_request(pki::MakeRequest(key).value());
    agent::v1::EnrollResponse response;
    const grpc::Status status =
        agent::v1::EnrollmentService::NewStub(Channel())->Enroll(Call().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {key, response.certificate()};
  }

  // Makes a call with an empty request and returns how it ends; OK: it was let in and goes on.
  static grpc::Status Try(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                          const std::string& token = "") {
    grpc::GenericStub stub(channel);
    const auto context = Call(20);
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    grpc::CompletionQueue queue;
    auto call = stub.PrepareCall(context.get(), method, &queue);
    const auto await = [&queue](void* wanted) {
      void* tag = nullptr;
      bool ok = false;
      do {
        if (!queue.Next(&tag, &ok)) return false;
      } while (tag != wanted);
      return ok;
    };
    int steps[4];
    call->StartCall(&steps[0]);
    await(&steps[0]);
    const grpc::Slice nothing;
    call->Write(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions().set_last_message(), &steps[1]);
    await(&steps[1]);
    grpc::ByteBuffer answer;
    call->Read(&answer, &steps[2]);
    const bool is_let_in = await(&steps[2]);
    if (is_let_in) context->TryCancel();
    grpc::Status status;
    call->Finish(&status, &steps[3]);
    await(&steps[3]);
    queue.Shutdown();
    return is_let_in ? grpc::Status::OK : status;
  }

  // Makes a token of the socket's owner's making.
  v1::CreateTokenResponse MakeToken(const std::string& name, v1::AccessRole role,
                                    int64_t lifetime_s = 3600) {
    v1::CreateTokenRequest request;
    request.set_name(name);
    request.set_user("ada");
    request.set_role(role);
    request.mutable_lifetime()->set_seconds(lifetime_s);
    v1::CreateTokenResponse made;
    const grpc::Status status = v1::IdentityService::NewStub(broker_->NewChannel())
                                    ->CreateToken(Call().get(), request, &made);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return made;
  }

  // Returns the end of a link that says hello for the cluster; OK: it was welcomed.
  static grpc::Status Hello(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& cluster) {
    const auto stub = agent::v1::AgentLinkService::NewStub(channel);
    const auto context = Call(20);
    const auto stream = stub->Connect(context.get());
    agent::v1::ConnectRequest request;
    agent::v1::AgentHello& hello = *request.mutable_hello();
    hello.set_protocol_version(1);
    hello.set_cluster(cluster);
    hello.set_kind(v1::CLUSTER_KIND_MACHINES);
    hello.set_journal_id("journal");
    hello.set_max_active_runs(1);
    hello.mutable_inventory()->set_identity("identity");
    stream->Write(request);
    agent::v1::ConnectResponse response;
    if (stream->Read(&response) && response.has_welcome()) {
      context->TryCancel();
      return grpc::Status::OK;
    }
    return stream->Finish();
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const CaDirectory ca_{directory_ / "ca"};
  std::unique_ptr<TestBroker> broker_;
};

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_RPC_TLS_FIXTURE_H_
