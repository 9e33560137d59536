#include "broker/app/rights.h"

#include <gtest/gtest.h>

#include "contract/errors.h"

namespace muster::broker {
namespace {

TEST(Rights, AnOwnerMayDoEverythingWithEveryJob) {
  const Principal owner{"alice", KnownBy::kSocket, Role::kOwner};
  for (const UseCase use_case :
       {UseCase::kSubmitJobs, UseCase::kReadJobs, UseCase::kChangeJobs, UseCase::kReadLogs,
        UseCase::kReadFiles, UseCase::kReadClusters, UseCase::kAskClusters,
        UseCase::kForgetClusters, UseCase::kAdmitClusters, UseCase::kBringFiles,
        UseCase::kDownloadFiles}) {
    const auto scope = Authorize(owner, use_case);
    ASSERT_TRUE(scope.ok()) << scope.status();
    EXPECT_TRUE(scope->is_all());
  }
}

TEST(Rights, ARoleThatTheTableDoesNotKnowMayDoNothing) {
  const Principal stranger{"mallory", KnownBy::kNobody, static_cast<Role>(200)};
  const absl::Status status = Authorize(stranger, UseCase::kReadJobs).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_EQ(contract::GetErrorInfo(status)->reason(), "NOT_ALLOWED");
}

}  // namespace
}  // namespace muster::broker
