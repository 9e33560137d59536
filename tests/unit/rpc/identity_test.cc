// Tests who asks: every call of every service with every role, and credentials that are not
// accepted.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/app/rights.h"
#include "broker/auth/tokens.h"
#include "contract/errors.h"
#include "digest/token_text.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "muster/v1/audit_service.pb.h"
#include "muster/v1/identity_service.grpc.pb.h"
#include "muster/v1/projects_service.pb.h"
#include "muster/v1/secrets_service.pb.h"
#include "muster/v1/usage_service.pb.h"
#include "rpc/status.h"
#include "tests/unit/rpc/any_call.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::string EndReason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

// Returns "JobsService.SubmitJob" of each call of the services for clients, from their descriptors.
std::vector<const google::protobuf::MethodDescriptor*> ClientCalls() {
  std::vector<const google::protobuf::MethodDescriptor*> calls;
  for (const auto* file :
       {v1::SubmitJobRequest::descriptor()->file(), v1::GetClusterRequest::descriptor()->file(),
        v1::FetchFilesRequest::descriptor()->file(), v1::WhoAmIRequest::descriptor()->file(),
        v1::SetSecretRequest::descriptor()->file(), v1::GetProjectRequest::descriptor()->file(),
        v1::VerifyAuditRequest::descriptor()->file(), v1::GetUsageRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        calls.push_back(file->service(s)->method(m));
      }
    }
  }
  return calls;
}

std::string CallName(const google::protobuf::MethodDescriptor& call) {
  return call.service()->name() + "." + call.name();
}

class IdentityTest : public ::testing::Test {
 protected:
  explicit IdentityTest(std::function<void(BrokerOptions&)> adjust = nullptr)
      : broker_(std::move(adjust)), identity_(v1::IdentityService::NewStub(broker_.NewChannel())) {}

  static std::unique_ptr<grpc::ClientContext> CallWith(const std::string& token) {
    auto context = Call();
    context->AddMetadata("authorization", "Bearer " + token);
    return context;
  }

  // Makes a token of the socket's owner, who is an admin.
  v1::CreateTokenResponse Make(const std::string& name, v1::AccessRole role,
                               const std::string& user = "ada") {
    v1::CreateTokenRequest request;
    request.set_name(name);
    request.set_role(role);
    request.set_user(user);
    v1::CreateTokenResponse made;
    const grpc::Status status = identity_->CreateToken(Call().get(), request, &made);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return made;
  }

  grpc::Status Create(const std::string& token, const v1::CreateTokenRequest& request,
                      v1::CreateTokenResponse* made) {
    return identity_->CreateToken(CallWith(token).get(), request, made);
  }
  grpc::Status WhoAmI(grpc::ClientContext* context, v1::WhoAmIResponse* me) {
    return identity_->WhoAmI(context, {}, me);
  }
  grpc::Status Revoke(uint64_t id, const std::string& token) {
    v1::RevokeTokenRequest request;
    request.set_id(id);
    v1::RevokeTokenResponse revoked;
    return identity_->RevokeToken(CallWith(token).get(), request, &revoked);
  }

  grpc::Status CallAny(const std::string& method, const std::string& token) {
    return broker::CallAny(broker_.NewChannel(), method, token);
  }

  TestBroker broker_;
  const std::unique_ptr<v1::IdentityService::Stub> identity_;
};

TEST_F(IdentityTest, EveryCallHasARowInTheTableOfRights) {
  std::set<std::string> in_table;
  for (const RpcUseCase& rpc : RpcUseCases()) in_table.emplace(rpc.rpc);
  std::set<std::string> in_services;
  for (const auto* call : ClientCalls()) in_services.insert(CallName(*call));
  EXPECT_EQ(in_table, in_services);
}

TEST_F(IdentityTest, EveryCallIsAnsweredAsTheTableSays) {
  std::map<std::string, UseCase> use_cases;
  for (const RpcUseCase& rpc : RpcUseCases()) use_cases[std::string(rpc.rpc)] = rpc.use_case;
  const std::pair<v1::AccessRole, Role> roles[] = {{v1::ACCESS_ROLE_MEMBER, Role::kMember},
                                                   {v1::ACCESS_ROLE_VIEWER, Role::kViewer},
                                                   {v1::ACCESS_ROLE_SUBMITTER, Role::kSubmitter},
                                                   {v1::ACCESS_ROLE_OPERATOR, Role::kOperator},
                                                   {v1::ACCESS_ROLE_ADMIN, Role::kAdmin}};
  for (const auto& [wire, role] : roles) {
    const std::string token = Make("of-" + std::to_string(wire), wire).secret();
    for (const auto* call : ClientCalls()) {
      const std::string name = CallName(*call);
      ASSERT_TRUE(use_cases.contains(name)) << name;
      const bool may = Authorize({"ada", KnownBy::kToken, role}, use_cases[name]).status().ok();
      const grpc::Status status =
          CallAny("/" + call->service()->full_name() + "/" + call->name(), token);
      EXPECT_EQ(EndReason(status) == "NOT_ALLOWED", !may)
          << name << " " << auth::NameOf(role) << ": " << status.error_message();
      EXPECT_EQ(status.error_code() == grpc::PERMISSION_DENIED, !may) << name;
    }
  }
}

TEST_F(IdentityTest, NoCallIsAnsweredWithATokenThatIsNotAccepted) {
  const auto made = Make("gone", v1::ACCESS_ROLE_ADMIN);
  ASSERT_TRUE(Revoke(made.token().id(), made.secret()).ok());
  for (const std::string& token : {made.secret(), NewTokenText(), std::string("x")}) {
    for (const auto* call : ClientCalls()) {
      const grpc::Status status =
          CallAny("/" + call->service()->full_name() + "/" + call->name(), token);
      EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED) << CallName(*call);
    }
  }
}

TEST_F(IdentityTest, TheOwnerOfTheSocketIsAnAdmin) {
  v1::WhoAmIResponse me;
  ASSERT_TRUE(WhoAmI(Call().get(), &me).ok());
  EXPECT_EQ(me.role(), v1::ACCESS_ROLE_ADMIN);
  EXPECT_EQ(me.credential(), v1::CREDENTIAL_KIND_SOCKET);
  EXPECT_FALSE(me.has_token());
}

TEST_F(IdentityTest, ATokenDecidesWhoAsks) {
  const auto made = Make("laptop", v1::ACCESS_ROLE_SUBMITTER);
  EXPECT_TRUE(IsTokenText(made.secret()));
  v1::WhoAmIResponse me;
  ASSERT_TRUE(WhoAmI(CallWith(made.secret()).get(), &me).ok());
  EXPECT_EQ(me.user(), "ada");
  EXPECT_EQ(me.role(), v1::ACCESS_ROLE_SUBMITTER);
  EXPECT_EQ(me.credential(), v1::CREDENTIAL_KIND_TOKEN);
  EXPECT_EQ(me.token().name(), "laptop");
  v1::SubmitJobResponse job;
  ASSERT_TRUE(broker_.jobs().SubmitJob(CallWith(made.secret()).get(), SubmitTrue(), &job).ok());
  EXPECT_EQ(broker_.Get(job.job_id()).user(), "ada");
}

TEST_F(IdentityTest, EverybodyIsToldHowToLogInButWithABadToken) {
  v1::GetLoginInfoResponse info;
  ASSERT_TRUE(identity_->GetLoginInfo(Call().get(), {}, &info).ok());
  EXPECT_EQ(info.issuer(), "");
  const grpc::Status refused = identity_->GetLoginInfo(CallWith(NewTokenText()).get(), {}, &info);
  EXPECT_EQ(EndReason(refused), "CREDENTIAL_NOT_ACCEPTED");
}

TEST_F(IdentityTest, AServiceAccountHasANameOfItsOwn) {
  EXPECT_EQ(Make("ci", v1::ACCESS_ROLE_SUBMITTER, "sa:build").token().user(), "sa:build");
  v1::CreateTokenRequest request;
  request.set_name("ci");
  for (const char* user : {"sa:", "sa:-x", "sa:a:b", "sa:../x", "sa:\xc3\xa4"}) {
    request.set_user(user);
    v1::CreateTokenResponse made;
    EXPECT_EQ(identity_->CreateToken(Call().get(), request, &made).error_code(),
              grpc::INVALID_ARGUMENT)
        << user;
  }
}

TEST_F(IdentityTest, AJobOfAnotherUserIsNotFoundByASubmitter) {
  const uint64_t job = broker_.Submit();
  const auto made = Make("laptop", v1::ACCESS_ROLE_SUBMITTER);
  v1::GetJobRequest request;
  request.set_job_id(job);
  v1::GetJobResponse response;
  EXPECT_EQ(broker_.jobs().GetJob(CallWith(made.secret()).get(), request, &response).error_code(),
            grpc::NOT_FOUND);
  const auto viewer = Make("eyes", v1::ACCESS_ROLE_VIEWER);
  EXPECT_TRUE(broker_.jobs().GetJob(CallWith(viewer.secret()).get(), request, &response).ok());
}

TEST_F(IdentityTest, WhatIsNoTokenIsRefusedAndNeverFallsBackToTheSocketsUser) {
  const std::string good = Make("laptop", v1::ACCESS_ROLE_ADMIN).secret();
  std::string typo = good;
  typo[20] = typo[20] == 'a' ? 'b' : 'a';
  const std::vector<std::vector<std::string>> malformed = {
      {""},
      {"Bearer"},
      {"Bearer "},
      {"Bearer  " + good},
      {"Bearer " + good + " "},
      {"Bearer " + typo},
      {"Bearer " + good.substr(0, 39)},
      {"Bearer " + good + good},
      {"Basic " + good},
      {good},
      {"Bearer eyJhbGciOiJub25lIn0.e30."},
      {"Bearer " + std::string(4000, 'a')},
      {"Bearer " + good, "Bearer " + good},
      {"Bearer " + good, ""},
  };
  for (const auto& headers : malformed) {
    auto context = Call();
    for (const std::string& header : headers) context->AddMetadata("authorization", header);
    v1::WhoAmIResponse me;
    const grpc::Status status = WhoAmI(context.get(), &me);
    EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED) << headers.front();
    EXPECT_EQ(EndReason(status), "CREDENTIAL_MALFORMED") << headers.front();
    EXPECT_THAT(status.error_message(), Not(HasSubstr(good)));
  }
  // RFC 9110 takes the scheme in any case.
  auto context = Call();
  context->AddMetadata("authorization", "bearer " + good);
  v1::WhoAmIResponse me;
  EXPECT_TRUE(WhoAmI(context.get(), &me).ok());
}

TEST_F(IdentityTest, UnknownAndRevokedTokensAreToldAlike) {
  const auto made = Make("laptop", v1::ACCESS_ROLE_SUBMITTER);
  ASSERT_TRUE(Revoke(made.token().id(), made.secret()).ok());
  v1::WhoAmIResponse me;
  const grpc::Status revoked = WhoAmI(CallWith(made.secret()).get(), &me);
  const grpc::Status unknown = WhoAmI(CallWith(NewTokenText()).get(), &me);
  EXPECT_EQ(EndReason(revoked), "CREDENTIAL_NOT_ACCEPTED");
  EXPECT_EQ(revoked.error_message(), unknown.error_message());
  EXPECT_EQ(revoked.error_details(), unknown.error_details());
}

TEST_F(IdentityTest, ATokenMakesNoGreaterOne) {
  const std::string submitter = Make("s", v1::ACCESS_ROLE_SUBMITTER).secret();
  const std::string viewer = Make("v", v1::ACCESS_ROLE_VIEWER).secret();
  v1::CreateTokenRequest request;
  v1::CreateTokenResponse made;
  const std::pair<std::string, v1::AccessRole> greater[] = {
      {submitter, v1::ACCESS_ROLE_VIEWER}, {submitter, v1::ACCESS_ROLE_OPERATOR},
      {submitter, v1::ACCESS_ROLE_ADMIN},  {viewer, v1::ACCESS_ROLE_SUBMITTER},
      {viewer, v1::ACCESS_ROLE_ADMIN},     {viewer, v1::ACCESS_ROLE_UNSPECIFIED}};
  request.set_name("child");
  for (const auto& [token, role] : greater) {
    request.set_role(role);
    EXPECT_EQ(EndReason(Create(token, request, &made)), "ROLE_TOO_GREAT") << role;
  }
  request.set_role(v1::ACCESS_ROLE_SUBMITTER);
  ASSERT_TRUE(Create(submitter, request, &made).ok());
  EXPECT_EQ(made.token().user(), "ada");
  EXPECT_NE(made.token().maker_id(), 0u);
}

TEST_F(IdentityTest, OnlyAnAdminReachesTheTokensOfOthers) {
  const auto mine = Make("mine", v1::ACCESS_ROLE_OPERATOR, "ada");
  const auto others = Make("others", v1::ACCESS_ROLE_SUBMITTER, "grace");
  v1::CreateTokenRequest request;
  request.set_name("x");
  request.set_user("grace");
  v1::CreateTokenResponse made;
  EXPECT_EQ(EndReason(Create(mine.secret(), request, &made)), "NOT_ALLOWED");
  EXPECT_EQ(EndReason(Revoke(others.token().id(), mine.secret())), "NO_SUCH_TOKEN");
  EXPECT_EQ(EndReason(Revoke(999, mine.secret())), "NO_SUCH_TOKEN");
  v1::ListTokensResponse list;
  ASSERT_TRUE(identity_->ListTokens(CallWith(mine.secret()).get(), {}, &list).ok());
  ASSERT_EQ(list.tokens_size(), 1);
  EXPECT_EQ(list.tokens(0).name(), "mine");
  ASSERT_TRUE(identity_->ListTokens(Call().get(), {}, &list).ok());
  EXPECT_EQ(list.tokens_size(), 2);
  EXPECT_TRUE(Revoke(mine.token().id(), mine.secret()).ok());
}

TEST_F(IdentityTest, ListsPageByPage) {
  for (int i = 0; i < 5; ++i) Make(std::to_string(i), v1::ACCESS_ROLE_VIEWER);
  v1::ListTokensRequest request;
  request.set_page_size(2);
  std::string names;
  do {
    v1::ListTokensResponse page;
    ASSERT_TRUE(identity_->ListTokens(Call().get(), request, &page).ok());
    for (const v1::Token& token : page.tokens()) names += token.name();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names, "01234");
  request.set_page_token("x");
  v1::ListTokensResponse page;
  EXPECT_EQ(identity_->ListTokens(Call().get(), request, &page).error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_F(IdentityTest, ABadRequestNamesEachField) {
  v1::CreateTokenRequest request;
  request.set_name("-x");
  request.set_user("a b");
  request.set_role(static_cast<v1::AccessRole>(77));
  request.mutable_lifetime()->set_seconds(367LL * 24 * 3600);
  v1::CreateTokenResponse made;
  const grpc::Status status = identity_->CreateToken(Call().get(), request, &made);
  const auto bad = contract::GetBadRequest(rpc::FromGrpc(status));
  ASSERT_TRUE(bad.has_value()) << status.error_message();
  std::string fields;
  for (const auto& violation : bad->field_violations()) fields += violation.field() + " ";
  EXPECT_EQ(fields, "name user role lifetime ");
}

TEST_F(IdentityTest, AStreamEndsWhenItsTokenIsRevoked) {
  const auto made = Make("watcher", v1::ACCESS_ROLE_VIEWER);
  auto context = CallWith(made.secret());
  auto watch = broker_.jobs().WatchJobs(context.get(), {});
  watch->WaitForInitialMetadata();
  auto open = Call();
  auto other = broker_.jobs().WatchJobs(open.get(), {});
  other->WaitForInitialMetadata();
  ASSERT_TRUE(Revoke(made.token().id(), made.secret()).ok());
  v1::WatchJobsResponse ignored;
  while (watch->Read(&ignored)) {
  }
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(EndReason(status), "CREDENTIAL_NOT_ACCEPTED");
  // The stream of another caller goes on.
  broker_.Submit();
  EXPECT_TRUE(other->Read(&ignored));
  open->TryCancel();
  other->Finish();
}

TEST_F(IdentityTest, AStreamAndATokenEndAtTheirTime) {
  v1::CreateTokenRequest request;
  request.set_name("short");
  request.set_role(v1::ACCESS_ROLE_VIEWER);
  request.mutable_lifetime()->set_seconds(2);
  v1::CreateTokenResponse made;
  ASSERT_TRUE(identity_->CreateToken(Call().get(), request, &made).ok());
  auto context = CallWith(made.secret());
  auto watch = broker_.jobs().WatchJobs(context.get(), {});
  v1::WatchJobsResponse ignored;
  while (watch->Read(&ignored)) {
  }
  EXPECT_EQ(EndReason(watch->Finish()), "CREDENTIAL_NOT_ACCEPTED");
  v1::WhoAmIResponse me;
  EXPECT_EQ(EndReason(WhoAmI(CallWith(made.secret()).get(), &me)), "CREDENTIAL_NOT_ACCEPTED");
}

TEST_F(IdentityTest, NobodySpeaksAsAnAgentWithAToken) {
  const std::string token = Make("agent", v1::ACCESS_ROLE_ADMIN).secret();
  for (const auto* file : {agent::v1::ConnectRequest::descriptor()->file(),
                           agent::v1::PushRequest::descriptor()->file(),
                           agent::v1::SendFilesRequest::descriptor()->file()}) {
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string method = "/" + service->full_name() + "/" + service->method(i)->name();
      for (const std::string& with : {token, std::string("x")}) {
        const grpc::Status status = CallAny(method, with);
        EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED) << method;
        EXPECT_EQ(EndReason(status), "TOKEN_NOT_FOR_AGENTS") << method;
      }
    }
  }
}

class ClosedIdentityTest : public IdentityTest {
 protected:
  ClosedIdentityTest()
      : IdentityTest([](BrokerOptions& options) {
          options.listen = "127.0.0.1:0";
          options.roles.listen = Role::kNone;
        }),
        loopback_(grpc::CreateChannel("127.0.0.1:" + std::to_string(broker_.broker().port()),
                                      grpc::InsecureChannelCredentials())),
        stub_(v1::IdentityService::NewStub(loopback_)) {}

  const std::shared_ptr<grpc::Channel> loopback_;
  const std::unique_ptr<v1::IdentityService::Stub> stub_;
};

TEST_F(ClosedIdentityTest, AListenerWithoutARoleLetsInTokensAlone) {
  v1::WhoAmIResponse me;
  const grpc::Status status = stub_->WhoAmI(Call().get(), {}, &me);
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(EndReason(status), "CREDENTIAL_MISSING");
  const auto made = Make("laptop", v1::ACCESS_ROLE_VIEWER);
  ASSERT_TRUE(stub_->WhoAmI(CallWith(made.secret()).get(), {}, &me).ok());
  EXPECT_EQ(me.user(), "ada");
}

class OpenIdentityTest : public IdentityTest {
 protected:
  OpenIdentityTest()
      : IdentityTest([](BrokerOptions& options) { options.listen = "127.0.0.1:0"; }) {}
};

TEST_F(OpenIdentityTest, WhomNobodyKnowsGetsNoToken) {
  auto stub = v1::IdentityService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(broker_.broker().port()), grpc::InsecureChannelCredentials()));
  v1::WhoAmIResponse me;
  ASSERT_TRUE(stub->WhoAmI(Call().get(), {}, &me).ok());
  EXPECT_EQ(me.credential(), v1::CREDENTIAL_KIND_NONE);
  EXPECT_EQ(me.role(), v1::ACCESS_ROLE_OPERATOR);
  v1::CreateTokenRequest request;
  request.set_name("x");
  v1::CreateTokenResponse made;
  EXPECT_EQ(EndReason(stub->CreateToken(Call().get(), request, &made)), "NOT_ALLOWED");
}

}  // namespace
}  // namespace muster::broker
