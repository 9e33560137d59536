#include "broker/app/rights.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

constexpr Role kRoles[] = {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin};

Principal With(Role role) { return {"alice", KnownBy::kToken, role}; }

TEST(Rights, AnAdminMayDoEverythingWithEveryJob) {
  for (const RpcUseCase& rpc : RpcUseCases()) {
    const auto scope = Authorize(With(Role::kAdmin), rpc.use_case);
    ASSERT_TRUE(scope.ok()) << rpc.rpc << scope.status();
    EXPECT_TRUE(scope->is_all()) << rpc.rpc;
  }
}

TEST(Rights, AnOperatorMayDoEverythingButSayWhoComesInAndReadTheAuditLog) {
  for (const RpcUseCase& rpc : RpcUseCases()) {
    const auto scope = Authorize(With(Role::kOperator), rpc.use_case);
    const bool is_of_admins =
        rpc.use_case == UseCase::kAdmitClusters || rpc.use_case == UseCase::kManageMembers ||
        rpc.use_case == UseCase::kManageProjects || rpc.use_case == UseCase::kReadAudit;
    if (is_of_admins) {
      EXPECT_TRUE(absl::IsPermissionDenied(scope.status())) << rpc.rpc;
      continue;
    }
    ASSERT_TRUE(scope.ok()) << rpc.rpc << scope.status();
    const bool is_own =
        rpc.use_case == UseCase::kManageTokens || rpc.use_case == UseCase::kManageSecrets;
    EXPECT_NE(scope->is_all(), is_own) << rpc.rpc;
  }
}

TEST(Rights, AViewerSeesAllJobsAndChangesNone) {
  EXPECT_TRUE(Authorize(With(Role::kViewer), UseCase::kReadJobs)->is_all());
  EXPECT_TRUE(Authorize(With(Role::kViewer), UseCase::kReadLogs)->is_all());
  for (const UseCase use_case :
       {UseCase::kSubmitJobs, UseCase::kChangeJobs, UseCase::kBringFiles, UseCase::kForgetClusters,
        UseCase::kCordonClusters, UseCase::kAskClusters}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Authorize(With(Role::kViewer), use_case).status()));
  }
}

TEST(Rights, AnAgentReadsFilesThatJobsBringAlongAndNothingElse) {
  for (const RpcUseCase& rpc : RpcUseCases()) {
    EXPECT_EQ(Authorize(With(Role::kAgent), rpc.use_case).ok(),
              rpc.use_case == UseCase::kDownloadFiles)
        << rpc.rpc;
  }
}

TEST(Rights, AnAgentThatIsAlsoASubmitterReadsTheFilesOfAllJobs) {
  Principal agent = With(Role::kSubmitter);
  EXPECT_FALSE(Authorize(agent, UseCase::kDownloadFiles)->is_all());
  agent.is_agent = true;
  EXPECT_TRUE(Authorize(agent, UseCase::kDownloadFiles)->is_all());
  EXPECT_FALSE(Authorize(agent, UseCase::kBringFiles)->is_all());
  EXPECT_FALSE(Authorize(agent, UseCase::kReadJobs)->is_all());
}

TEST(Rights, ASubmitterReachesOwnJobsAlone) {
  const auto scope = Authorize(With(Role::kSubmitter), UseCase::kReadJobs);
  ASSERT_TRUE(scope.ok());
  EXPECT_TRUE(scope->Contains("", "alice"));
  EXPECT_FALSE(scope->Contains("", "bob"));
}

TEST(Rights, ARoleThatTheTableDoesNotKnowMayDoNothing) {
  for (const Role role : {Role::kNone, static_cast<Role>(200)}) {
    const Principal stranger{"mallory", KnownBy::kNobody, role};
    for (const RpcUseCase& rpc : RpcUseCases()) {
      const absl::Status status = Authorize(stranger, rpc.use_case).status();
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      EXPECT_EQ(contract::GetErrorInfo(status)->reason(), "NOT_ALLOWED");
    }
  }
}

TEST(Rights, ARefusalComesBeforeTheTable) {
  Principal refused = With(Role::kAdmin);
  refused.refusal = absl::UnauthenticatedError("no");
  EXPECT_TRUE(absl::IsUnauthenticated(Authorize(refused, UseCase::kWhoAmI).status()));
}

TEST(Rights, ARoleIncludesAnotherIfItReachesAllOfIt) {
  for (const Role role : kRoles) {
    EXPECT_TRUE(Includes(role, role));
    EXPECT_TRUE(Includes(Role::kAdmin, role));
    EXPECT_EQ(Includes(role, Role::kAdmin), role == Role::kAdmin);
    EXPECT_EQ(Includes(role, Role::kOperator), role == Role::kAdmin || role == Role::kOperator);
    EXPECT_TRUE(Includes(role, Role::kNone));
  }
  EXPECT_TRUE(Includes(Role::kOperator, Role::kViewer));
  EXPECT_TRUE(Includes(Role::kOperator, Role::kSubmitter));
  EXPECT_FALSE(Includes(Role::kSubmitter, Role::kViewer));
  EXPECT_FALSE(Includes(Role::kViewer, Role::kSubmitter));
  for (const Role role : kRoles) {
    EXPECT_TRUE(Includes(role, Role::kMember));
    EXPECT_FALSE(Includes(Role::kMember, role));
  }
}

}  // namespace
}  // namespace muster::broker
