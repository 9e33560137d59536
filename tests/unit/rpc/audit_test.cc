// Tests the audit log of a whole broker: which calls leave a record, and what is in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker/app/audited_calls.h"
#include "broker/app/rights.h"
#include "broker/audit/audit_file.h"
#include "digest/token_text.h"
#include "muster/v1/audit_service.grpc.pb.h"
#include "muster/v1/identity_service.grpc.pb.h"
#include "tests/unit/rpc/any_call.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string PathOf(std::string_view rpc) {
  const size_t dot = rpc.find('.');
  return "/muster.v1." + std::string(rpc.substr(0, dot)) + "/" + std::string(rpc.substr(dot + 1));
}

class AuditTest : public ::testing::Test {
 protected:
  explicit AuditTest(std::function<void(BrokerOptions&)> adjust = nullptr)
      : broker_(std::move(adjust)),
        identity_(v1::IdentityService::NewStub(broker_.NewChannel())),
        audit_(v1::AuditService::NewStub(broker_.NewChannel())) {}

  v1::CreateTokenResponse Make(const std::string& name, v1::AccessRole role) {
    v1::CreateTokenRequest request;
    request.set_name(name);
    request.set_role(role);
    request.set_user("ada");
    v1::CreateTokenResponse made;
    EXPECT_TRUE(identity_->CreateToken(Call().get(), request, &made).ok());
    return made;
  }
  void Revoke(uint64_t id) {
    v1::RevokeTokenRequest request;
    request.set_id(id);
    v1::RevokeTokenResponse revoked;
    EXPECT_TRUE(identity_->RevokeToken(Call().get(), request, &revoked).ok());
  }

  // Makes every call of the table once.
  std::map<std::string, grpc::Status> CallAll(const std::string& token) {
    std::map<std::string, grpc::Status> ends;
    for (const RpcUseCase& rpc : RpcUseCases()) {
      ends[std::string(rpc.rpc)] = CallAny(broker_.NewChannel(), PathOf(rpc.rpc), token);
    }
    return ends;
  }

  // Returns the records that are on disk now.
  std::vector<audit::Record> OnDisk(const audit::RecordFilter& filter = {}) {
    const auto page = audit::ReadRecords(File(), filter, 100'000, 100'000);
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? page->records : std::vector<audit::Record>();
  }
  // All records, after the broker has ended.
  std::vector<audit::Record> AtTheEnd(const audit::RecordFilter& filter = {}) {
    broker_.broker().Shutdown();
    return OnDisk(filter);
  }
  std::string File() const { return broker_.directory() / "audit.db"; }

  TestBroker broker_;
  const std::unique_ptr<v1::IdentityService::Stub> identity_;
  const std::unique_ptr<v1::AuditService::Stub> audit_;
};

bool IsAlwaysAudited(std::string_view rpc) {
  return AuditRuleOf(PathOf(rpc), false) != AuditRule::kIfRefused;
}

TEST(AuditRule, ACallThatNobodyListedIsAuditedBeforeItsAnswer) {
  EXPECT_EQ(AuditRuleOf("/muster.v1.LaterService/Change", false), AuditRule::kBeforeAnswer);
  EXPECT_EQ(AuditRuleOf("/muster.agent.v1.EnrollmentService/Enroll", false),
            AuditRule::kBeforeAnswer);
  EXPECT_EQ(AuditRuleOf("/grpc.health.v1.Health/Check", false), AuditRule::kNever);
  EXPECT_EQ(AuditRuleOf("/muster.v1.JobsService/ReadLog", true), AuditRule::kAfterAnswer);
  EXPECT_EQ(AuditRuleOf("/muster.v1.JobsService/ReadLog", false), AuditRule::kIfRefused);
  EXPECT_EQ(AuditedAction("/muster.v1.JobsService/ReadLog"), "JobsService.ReadLog");
}

TEST_F(AuditTest, EachCallThatChangesSomethingLeavesOneRecord) {
  v1::WhoAmIResponse me;
  ASSERT_TRUE(identity_->WhoAmI(Call().get(), {}, &me).ok());
  CallAll("");
  broker_.broker().Shutdown();
  for (const RpcUseCase& rpc : RpcUseCases()) {
    const auto records = OnDisk({.action = std::string(rpc.rpc)});
    ASSERT_EQ(records.size(), IsAlwaysAudited(rpc.rpc) ? 1u : 0u) << rpc.rpc;
    if (records.empty()) continue;
    EXPECT_EQ(records[0].user, me.user()) << rpc.rpc;
    EXPECT_EQ(records[0].role, "admin") << rpc.rpc;
    EXPECT_EQ(records[0].credential, "socket") << rpc.rpc;
    EXPECT_THAT(records[0].origin, StartsWith("fd:")) << rpc.rpc;
    EXPECT_NE(records[0].result, "") << rpc.rpc;
    EXPECT_NE(records[0].micros, 0) << rpc.rpc;
  }
}

TEST_F(AuditTest, EachCallThatIsNotAllowedLeavesOneRecord) {
  const auto made = Make("eyes", v1::ACCESS_ROLE_VIEWER);
  const auto ends = CallAll(made.secret());
  broker_.broker().Shutdown();
  for (const RpcUseCase& rpc : RpcUseCases()) {
    const bool is_refused = ends.at(std::string(rpc.rpc)).error_code() == grpc::PERMISSION_DENIED;
    const auto records = OnDisk({.user = "ada", .action = std::string(rpc.rpc)});
    ASSERT_EQ(records.size(), is_refused || IsAlwaysAudited(rpc.rpc) ? 1u : 0u) << rpc.rpc;
    if (records.empty()) continue;
    EXPECT_EQ(records[0].result == "NOT_ALLOWED", is_refused) << rpc.rpc;
    EXPECT_EQ(records[0].credential, "token " + std::to_string(made.token().id())) << rpc.rpc;
    EXPECT_EQ(records[0].role, "viewer") << rpc.rpc;
  }
}

TEST_F(AuditTest, EachCallWithABadCredentialLeavesOneRecord) {
  const auto gone = Make("gone", v1::ACCESS_ROLE_ADMIN);
  Revoke(gone.token().id());
  CallAll(gone.secret());
  broker_.broker().Shutdown();
  const std::string credential = "revoked token " + std::to_string(gone.token().id());
  for (const RpcUseCase& rpc : RpcUseCases()) {
    const auto records = OnDisk({.user = "ada", .action = std::string(rpc.rpc)});
    ASSERT_EQ(records.size(), 1u) << rpc.rpc;
    EXPECT_EQ(records[0].credential, credential);
    EXPECT_EQ(records[0].role, "none");
    EXPECT_EQ(records[0].result, "CREDENTIAL_NOT_ACCEPTED");
  }
}

TEST_F(AuditTest, TriesOfManyCredentialsAreBoundedAndCounted) {
  constexpr uint64_t kTries = audit::kMaxRefusalsOfUser + 40;
  for (uint64_t i = 0; i < kTries; ++i) {
    CallAny(broker_.NewChannel(), PathOf("IdentityService.WhoAmI"), NewTokenText());
  }
  uint64_t recorded = 0;
  uint64_t left_out = 0;
  for (const audit::Record& record : AtTheEnd()) {
    if (record.action == "IdentityService.WhoAmI") ++recorded;
    left_out += record.left_out;
  }
  EXPECT_EQ(recorded + left_out, kTries);
  EXPECT_GE(recorded, audit::kMaxRefusalsOfUser);
  EXPECT_GT(left_out, 0u);
}

TEST_F(AuditTest, TheRecordOfAnAdminsCallIsOnDiskBeforeTheAnswer) {
  const auto made = Make("laptop", v1::ACCESS_ROLE_SUBMITTER);
  const auto records = OnDisk({.action = "IdentityService.CreateToken"});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].result, "OK");
  EXPECT_THAT(records[0].target, HasSubstr("name=\"laptop\""));
  EXPECT_THAT(records[0].target, HasSubstr("role=ACCESS_ROLE_SUBMITTER"));
  EXPECT_THAT(records[0].target, HasSubstr("token=" + std::to_string(made.token().id())));
}

TEST_F(AuditTest, ARecordNamesTheJobs) {
  const uint64_t job = broker_.Submit();
  v1::CancelJobsRequest request;
  request.add_job_ids(job);
  v1::CancelJobsResponse response;
  ASSERT_TRUE(broker_.jobs().CancelJobs(Call().get(), request, &response).ok());
  const auto records = AtTheEnd({.job = job});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].action, "JobsService.SubmitJob");
  EXPECT_EQ(records[1].action, "JobsService.CancelJobs");
  EXPECT_EQ(records[1].jobs, std::to_string(job));
}

TEST_F(AuditTest, NoSecretIsInTheFile) {
  const auto made = Make("laptop", v1::ACCESS_ROLE_SUBMITTER);
  v1::SubmitJobRequest request = SubmitTrue();
  (*request.mutable_spec()->mutable_env())["KEY"] = "canary-value";
  request.mutable_spec()->mutable_command()->mutable_argv()->add_args("canary-argument");
  broker_.Submit(request);
  CallAny(broker_.NewChannel(), PathOf("IdentityService.WhoAmI"), "mst_canary-token");
  CallAny(broker_.NewChannel(), PathOf("IdentityService.WhoAmI"), NewTokenText());
  AtTheEnd();
  for (const std::string& name : {File(), File() + "-wal"}) {
    std::ifstream file(name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes.find(made.secret()), bytes.npos);
    EXPECT_EQ(bytes.find("canary"), bytes.npos);
    EXPECT_EQ(bytes.find("mst_"), bytes.npos);
  }
}

TEST_F(AuditTest, TheBrokersStartAndStopAreRecorded) {
  const auto records = AtTheEnd();
  ASSERT_GE(records.size(), 2u);
  EXPECT_EQ(records.front().action, "broker.start");
  EXPECT_THAT(records.front().target, StartsWith("version="));
  EXPECT_EQ(records.back().action, "broker.stop");
}

TEST_F(AuditTest, AdminsListAndVerifyIt) {
  Make("laptop", v1::ACCESS_ROLE_SUBMITTER);
  v1::ListAuditRecordsRequest request;
  request.set_page_size(1);
  std::vector<v1::AuditRecord> all;
  do {
    v1::ListAuditRecordsResponse page;
    ASSERT_TRUE(audit_->ListAuditRecords(Call().get(), request, &page).ok());
    all.insert(all.end(), page.records().begin(), page.records().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].action(), "IdentityService.CreateToken");
  v1::VerifyAuditRequest known;
  known.set_known_seq(all[0].seq());
  known.set_known_hash(all[0].hash());
  v1::VerifyAuditResponse found;
  ASSERT_TRUE(audit_->VerifyAudit(Call().get(), known, &found).ok());
  EXPECT_TRUE(found.intact()) << found.problem();
  EXPECT_EQ(found.head_seq(), 2u);
  EXPECT_EQ(found.head_hash(), all[1].hash());
}

TEST_F(AuditTest, ABadQuestionIsRefused) {
  v1::ListAuditRecordsRequest request;
  v1::ListAuditRecordsResponse page;
  request.set_page_token("x");
  EXPECT_EQ(audit_->ListAuditRecords(Call().get(), request, &page).error_code(),
            grpc::INVALID_ARGUMENT);
  request.Clear();
  request.mutable_since()->set_seconds(INT64_MAX);
  EXPECT_EQ(audit_->ListAuditRecords(Call().get(), request, &page).error_code(),
            grpc::INVALID_ARGUMENT);
  v1::VerifyAuditRequest known;
  v1::VerifyAuditResponse found;
  known.set_known_seq(1);
  known.set_known_hash("short");
  EXPECT_EQ(audit_->VerifyAudit(Call().get(), known, &found).error_code(), grpc::INVALID_ARGUMENT);
}

class AuditLogReadsTest : public AuditTest {
 protected:
  AuditLogReadsTest() : AuditTest([](BrokerOptions& o) { o.audit.log_reads = true; }) {}
};

TEST_F(AuditLogReadsTest, ReadsOfLogsAreRecordedIfTheSettingSaysSo) {
  CallAny(broker_.NewChannel(), PathOf("JobsService.ReadLog"), "");
  EXPECT_EQ(AtTheEnd({.action = "JobsService.ReadLog"}).size(), 1u);
}

}  // namespace
}  // namespace muster::broker
