#include "contract/issues.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::contract {
namespace {

TEST(ClusterIssue, APoolThatIsMissingTakesNoJobs) {
  const v1::ClusterIssue issue =
      PoolShut({.name = "lab", .state = "missing", .detail = "there is none"});
  EXPECT_EQ(issue.code(), v1::CLUSTER_ISSUE_CODE_POOL_MISSING);
  EXPECT_EQ(issue.message(), "namespace lab is missing: there is none; its pool takes no jobs");
  EXPECT_EQ(issue.pool(), "lab");
  EXPECT_TRUE(issue.remedy().starts_with("make it (kubectl create namespace lab) and give"));
}

TEST(ClusterIssue, APoolThatIsForbiddenNeedsRightsFirst) {
  const v1::ClusterIssue issue =
      PoolShut({.name = "lab", .state = "forbidden", .detail = "no rights", .is_forbidden = true});
  EXPECT_EQ(issue.code(), v1::CLUSTER_ISSUE_CODE_POOL_FORBIDDEN);
  EXPECT_TRUE(issue.remedy().starts_with("give the agent's account its rights there"));
}

TEST(ClusterIssue, SaysWhatIsNotEnforcedAndWhy) {
  EXPECT_EQ(LimitsNotEnforced({.memory = true, .cores = false}, "no delegation").message(),
            "memory is shared out but not enforced, a run that uses more than it asked for is not "
            "stopped by Muster: no delegation");
  EXPECT_TRUE(LimitsNotEnforced({.memory = false, .cores = true}, "x")
                  .message()
                  .starts_with("cores are shared"));
  const v1::ClusterIssue unwanted = LimitsNotEnforced({.memory = true, .cores = true}, "");
  EXPECT_TRUE(unwanted.message().starts_with("memory and cores are shared"));
  EXPECT_TRUE(unwanted.message().ends_with("machines.limits is no"));
  EXPECT_EQ(unwanted.remedy(), "");
}

TEST(ClusterIssue, NamesThreeJobsAndTheFirstAsItsSubject) {
  const v1::ClusterIssue few = UnknownRuns({"a", "b"});
  EXPECT_EQ(few.subject(), "a");
  EXPECT_NE(few.message().find("for them: a, b; they"), std::string::npos) << few.message();
  const v1::ClusterIssue many = UnknownRuns({"a", "b", "c", "d"});
  EXPECT_NE(many.message().find("for them: a, b, c, ...; they"), std::string::npos)
      << many.message();
}

TEST(ClusterIssue, OfAHostIsSaidOfTheHost) {
  const v1::ClusterIssue issue = OfHost("gpu1", NoGpus("nvidia-smi", "no driver"));
  EXPECT_EQ(issue.subject(), "gpu1");
  EXPECT_EQ(issue.message(),
            "host gpu1: no GPUs of nvidia-smi are offered, because they cannot be listed: no "
            "driver");
}

// Programs read codes and fields; each issue has a sentence for people.
TEST(ClusterIssue, HasACodeAndASentence) {
  const v1::ClusterIssue issues[] = {
      QuotaUsedUp("lab", "q/pods", "quota q: 4 of 4 pods used"),
      QueuesUnseen("lab", "forbidden"),
      NodesUnknown("forbidden"),
      UseUnknown(true, "forbidden"),
      UseUnknown(false, "forbidden"),
      NoNodes(),
      NoPartitions(),
      NoGpus("", "no tool"),
      NoGpuResources(),
      NoContainers("no podman"),
      HostDown("a", "no route"),
      HostStartsNothing("a", "disk full"),
      HostNotAdded("a", "bad key"),
      HostsFileUnread("no such file"),
      HostTwice({"a", "b"}, "c:22"),
      LessThanConfigured("cpus: 64", "32"),
      CallsHeldBack(3, 60, absl::FromUnixSeconds(600)),
      CallsHeldBack(3, 0, absl::FromUnixSeconds(600)),
      CallsWithoutTurn(3, "slurm.max_polls_per_minute", 60, absl::FromUnixSeconds(600)),
      NoAccounting(),
      TlsUnverified(),
      SameCluster("other"),
      AgentCloned("gpu", absl::FromUnixSeconds(600)),
      AgentTrouble("logs", "disk full"),
  };
  for (const v1::ClusterIssue& issue : issues) {
    EXPECT_NE(issue.code(), v1::CLUSTER_ISSUE_CODE_UNSPECIFIED);
    EXPECT_FALSE(issue.message().empty()) << issue.DebugString();
    EXPECT_FALSE(issue.message().ends_with('.')) << issue.message();
    EXPECT_FALSE(issue.message().ends_with(": ")) << issue.message();
  }
}

TEST(ClusterIssue, WhatPassesByItselfSaysUntilWhenItIsSaid) {
  EXPECT_EQ(CallsHeldBack(3, 60, absl::FromUnixSeconds(600)).until().seconds(), 600);
  EXPECT_EQ(CallsWithoutTurn(3, "slurm.max_polls_per_minute", 60, absl::FromUnixSeconds(600))
                .until()
                .seconds(),
            600);
}

}  // namespace
}  // namespace muster::contract
