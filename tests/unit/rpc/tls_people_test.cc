// Tests people over the network: every call with every credential.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "broker/app/rights.h"
#include "broker/auth/role.h"
#include "contract/errors.h"
#include "digest/token_text.h"
#include "muster/v1/identity_service.grpc.pb.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/status.h"
#include "tests/unit/rpc/tls_fixture.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

constexpr std::pair<v1::AccessRole, Role> kRoles[] = {{v1::ACCESS_ROLE_VIEWER, Role::kViewer},
                                                      {v1::ACCESS_ROLE_SUBMITTER, Role::kSubmitter},
                                                      {v1::ACCESS_ROLE_OPERATOR, Role::kOperator},
                                                      {v1::ACCESS_ROLE_ADMIN, Role::kAdmin}};

// Returns the use cases of the calls for people, by "/muster.v1.SERVICE/METHOD".
std::map<std::string, UseCase> UseCases() {
  std::map<std::string, UseCase> all;
  for (const RpcUseCase& rpc : RpcUseCases()) {
    std::string path = "/muster.v1." + std::string(rpc.rpc);
    path[path.rfind('.')] = '/';
    all[path] = rpc.use_case;
  }
  return all;
}

bool IsForAnyone(const std::string& method) {
  return method == "/muster.agent.v1.EnrollmentService/Enroll";
}

class TlsPeople : public TlsListener {
 protected:
  const std::map<std::string, UseCase> use_cases_ = UseCases();
};

TEST_F(TlsPeople, AreLetInAsTheTableOfRightsSaysAndNowhereElse) {
  const auto channel = Channel();
  for (const auto& [wire, role] : kRoles) {
    const std::string token = MakeToken("of-" + std::to_string(wire), wire).secret();
    for (const std::string& method : AllMethods()) {
      if (IsForAnyone(method)) continue;
      const grpc::Status status = Try(channel, method, token);
      const std::string what =
          method + " as " + std::string(auth::NameOf(role)) + ": " + status.error_message();
      const auto use_case = use_cases_.find(method);
      if (use_case != use_cases_.end()) {
        const bool may = Authorize({"ada", KnownBy::kToken, role}, use_case->second).ok();
        EXPECT_EQ(status.error_code() == grpc::PERMISSION_DENIED, !may) << what;
        EXPECT_NE(status.error_code(), grpc::UNAUTHENTICATED) << what;
      } else if (method.starts_with("/grpc.reflection.")) {
        EXPECT_TRUE(status.ok()) << what;
      } else {
        EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED) << what;
        EXPECT_THAT(status.error_message(), HasSubstr("a token opens what is for people")) << what;
      }
    }
  }
}

TEST_F(TlsPeople, AreOutWithATokenThatIsNotAccepted) {
  const auto revoked = MakeToken("revoked", v1::ACCESS_ROLE_ADMIN);
  v1::RevokeTokenRequest request;
  request.set_id(revoked.token().id());
  v1::RevokeTokenResponse response;
  const auto identity = v1::IdentityService::NewStub(broker_->NewChannel());
  ASSERT_TRUE(identity->RevokeToken(Call().get(), request, &response).ok());
  const auto expired = MakeToken("expired", v1::ACCESS_ROLE_ADMIN, 1);
  const auto channel = Channel();
  while (Try(channel, "/muster.v1.IdentityService/WhoAmI", expired.secret()).ok()) {
  }
  const std::string half = expired.secret().substr(0, 39);
  const std::string none = "eyJhbGciOiJub25lIn0.e30.";
  for (const std::string& token :
       {revoked.secret(), expired.secret(), NewTokenText(), half, none}) {
    const bool is_whole = IsTokenText(token);
    for (const std::string& method : AllMethods()) {
      if (IsForAnyone(method)) continue;
      const grpc::Status status = Try(channel, method, token);
      EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED)
          << method << " " << token << ": " << status.error_message();
      // One answer for all that have the right form.
      EXPECT_THAT(status.error_message(),
                  HasSubstr(is_whole ? "it is unknown here, has expired or was revoked"
                                     : "the credential is not one token"));
    }
  }
}

TEST_F(TlsPeople, WhoShowsACertificateAndATokenIsRefused) {
  const auto channel = Channel(Enroll("lab"));
  for (const std::string& token :
       {MakeToken("admin", v1::ACCESS_ROLE_ADMIN).secret(), std::string("x")}) {
    for (const std::string& method : AllMethods()) {
      if (IsForAnyone(method)) continue;
      const grpc::Status status = Try(channel, method, token);
      EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED) << method;
      EXPECT_THAT(status.error_message(), HasSubstr("a certificate")) << method;
    }
  }
}

TEST_F(TlsPeople, SubmitAndSeeTheirJobs) {
  const auto token = MakeToken("laptop", v1::ACCESS_ROLE_SUBMITTER).secret();
  const auto jobs = v1::JobsService::NewStub(Channel());
  const auto with = [&token] {
    auto context = Call();
    context->AddMetadata("authorization", "Bearer " + token);
    return context;
  };
  v1::SubmitJobResponse submitted;
  const grpc::Status status = jobs->SubmitJob(with().get(), SubmitTrue(), &submitted);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(broker_->Get(submitted.job_id()).user(), "ada");
  const uint64_t other = broker_->Submit();
  v1::GetJobRequest request;
  request.set_job_id(other);
  v1::GetJobResponse response;
  EXPECT_EQ(jobs->GetJob(with().get(), request, &response).error_code(), grpc::NOT_FOUND);
}

TEST_F(TlsPeople, AStreamEndsWithItsToken) {
  const auto made = MakeToken("watcher", v1::ACCESS_ROLE_VIEWER);
  const auto jobs = v1::JobsService::NewStub(Channel());
  auto context = Call();
  context->AddMetadata("authorization", "Bearer " + made.secret());
  const auto watch = jobs->WatchJobs(context.get(), {});
  watch->WaitForInitialMetadata();
  v1::RevokeTokenRequest request;
  request.set_id(made.token().id());
  v1::RevokeTokenResponse response;
  const auto identity = v1::IdentityService::NewStub(broker_->NewChannel());
  ASSERT_TRUE(identity->RevokeToken(Call().get(), request, &response).ok());
  v1::WatchJobsResponse ignored;
  while (watch->Read(&ignored)) {
  }
  const grpc::Status ended = watch->Finish();
  EXPECT_EQ(ended.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(contract::GetErrorInfo(rpc::FromGrpc(ended))->reason(), "CREDENTIAL_NOT_ACCEPTED");
}

TEST_F(TlsPeople, AreToldTheAddressAndTheCa) {
  v1::WhoAmIResponse me;
  const auto identity = v1::IdentityService::NewStub(broker_->NewChannel());
  ASSERT_TRUE(identity->WhoAmI(Call().get(), {}, &me).ok());
  EXPECT_EQ(me.network().address(), "tls:" + Address());
  EXPECT_EQ(me.network().ca_certificate(), ReadFile(ca_.certificate(), 1 << 20).value());
  EXPECT_EQ(me.network().ca_fingerprint(),
            pki::ReadCertificate(me.network().ca_certificate())->fingerprint);
}

}  // namespace
}  // namespace muster::broker
