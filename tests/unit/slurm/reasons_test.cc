#include "agents/slurm/reasons.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(ExplainReasonTest, PlainWordsKeepSlurmsOwnBehindThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"Priority", "other jobs are ahead"},
      {"Resources", "free nodes"},
      {"Dependency", "another job to end"},
      {"DependencyNeverSatisfied", "never end as it should"},
      {"ReqNodeNotAvail, UnavailableNodes:n[1-2]", "down, drained or reserved"},
      {"PartitionTimeLimit", "ask for less time"},
      {"QOSMaxCpuPerUserLimit", "one user"},
      {"QOSMaxJobsPerUserLimit", "one user"},
      {"QOSGrpCPUMinutes", "budget of its QOS"},
      {"QOSGrpCpuLimit", "share its QOS"},
      {"AssocGrpGRESMinutes", "budget of its account"},
      {"AssocGrpGRES", "share its account"},
      {"AssocMaxJobsLimit", "other jobs"},
      {"AssocMaxWallDurationPerJobLimit", "ask for less"},
      {"QOSMaxMemoryPerJob", "ask for less"},
      {"QOSMinGRES", "ask for more"},
      {"launch failed requeued held", "Slurm holds it"},
  };
  for (const auto& [reason, words] : cases) {
    EXPECT_THAT(ExplainReason(reason), HasSubstr(words)) << reason;
    EXPECT_THAT(ExplainReason(reason), EndsWith(std::string("(") + reason + ")"));
  }
}

// Those that squeue of Slurm 22.05 can print.
constexpr const char* kKnown[] = {"Priority",
                                  "Dependency",
                                  "Resources",
                                  "PartitionNodeLimit",
                                  "PartitionTimeLimit",
                                  "PartitionDown",
                                  "PartitionInactive",
                                  "JobHeldAdmin",
                                  "JobHeldUser",
                                  "BeginTime",
                                  "Licenses",
                                  "AssociationJobLimit",
                                  "AssociationResourceLimit",
                                  "AssociationTimeLimit",
                                  "Reservation",
                                  "ReqNodeNotAvail",
                                  "FrontEndDown",
                                  "SchedDefer",
                                  "NodeDown",
                                  "BadConstraints",
                                  "SystemFailure",
                                  "JobLaunchFailure",
                                  "NonZeroExitCode",
                                  "TimeLimit",
                                  "InactiveLimit",
                                  "InvalidAccount",
                                  "InvalidQOS",
                                  "QOSUsageThreshold",
                                  "QOSJobLimit",
                                  "QOSResourceLimit",
                                  "QOSTimeLimit",
                                  "BlockMaxError",
                                  "BlockFreeAction",
                                  "RaisedSignal",
                                  "Cleaning",
                                  "Prolog",
                                  "QOSNotAllowed",
                                  "AccountNotAllowed",
                                  "DependencyNeverSatisfied",
                                  "QOSGrpCpuLimit",
                                  "QOSGrpCPUMinutesLimit",
                                  "QOSGrpCPURunMinutesLimit",
                                  "QOSGrpJobsLimit",
                                  "QOSGrpMemLimit",
                                  "QOSGrpNodeLimit",
                                  "QOSGrpSubmitJobsLimit",
                                  "QOSGrpWallLimit",
                                  "QOSMaxCpuPerJobLimit",
                                  "QOSMaxCpuMinutesPerJobLimit",
                                  "QOSMaxNodePerJobLimit",
                                  "QOSMaxWallDurationPerJobLimit",
                                  "QOSMaxCpuPerUserLimit",
                                  "QOSMaxJobsPerUserLimit",
                                  "QOSMaxNodePerUserLimit",
                                  "QOSMaxSubmitJobPerUserLimit",
                                  "QOSMinCpuNotSatisfied",
                                  "AssocGrpCpuLimit",
                                  "AssocGrpCPUMinutesLimit",
                                  "AssocGrpCPURunMinutesLimit",
                                  "AssocGrpJobsLimit",
                                  "AssocGrpMemLimit",
                                  "AssocGrpNodeLimit",
                                  "AssocGrpSubmitJobsLimit",
                                  "AssocGrpWallLimit",
                                  "AssocMaxJobsLimit",
                                  "AssocMaxCpuPerJobLimit",
                                  "AssocMaxCpuMinutesPerJobLimit",
                                  "AssocMaxNodePerJobLimit",
                                  "AssocMaxSubmitJobLimit",
                                  "AssocMaxWallDurationPerJobLimit",
                                  "JobHoldMaxRequeue",
                                  "JobArrayTaskLimit",
                                  "BurstBufferResources",
                                  "BurstBufferStageIn",
                                  "BurstBufferOperation",
                                  "PowerNotAvail",
                                  "PowerReserved",
                                  "AssocGrpUnknown",
                                  "AssocMaxUnknownPerJob",
                                  "AssocMaxMemPerNode",
                                  "AssocGrpNodeRunMinutes",
                                  "AssocMaxGRESMinutesPerJob",
                                  "AssocGrpLicense",
                                  "AssocGrpBilling",
                                  "QOSGrpBB",
                                  "QOSMaxGRESPerUser",
                                  "QOSMinEnergy",
                                  "QOSMaxBillingPerNode",
                                  "ReservationDeleted",
                                  "ReservationInvalid",
                                  "DeadLine",
                                  "MaxBBPerAccount",
                                  "MaxCpuPerAccount",
                                  "MaxGRESPerAccount",
                                  "MaxJobsPerAccount",
                                  "MaxSubmitJobsPerAccount",
                                  "PartitionConfig",
                                  "AccountingPolicy",
                                  "FedJobLock",
                                  "OutOfMemory",
                                  "MaxMemPerLimit",
                                  "MaxPoweredUpNodes",
                                  "MpiPortsBusy",
                                  "NvidiaImexChannels",
                                  "Constraints"};

TEST(ExplainReasonTest, EveryReasonOfSlurmHasPlainWords) {
  for (const char* reason : kKnown) EXPECT_NE(MeaningOfReason(reason), "") << reason;
}

TEST(ExplainReasonTest, ABudgetThatIsUsedUpIsNotTakenForOneThatIsOnlyLent) {
  EXPECT_THAT(ExplainReason("QOSGrpCPUMinutesLimit"), HasSubstr("budget of its QOS"));
  EXPECT_THAT(ExplainReason("AssocGrpCPUMinutesLimit"), HasSubstr("budget of its account"));
  EXPECT_THAT(ExplainReason("QOSGrpCPURunMinutesLimit"), HasSubstr("starts when some end"));
  EXPECT_THAT(ExplainReason("AssocGrpMemRunMinutes"), HasSubstr("starts when some end"));
}

TEST(ExplainReasonTest, WhatCanBeDoneIsSaidApart) {
  EXPECT_EQ(RemedyOfReason("JobHeldUser"), "let it go on with muster release");
  EXPECT_EQ(RemedyOfReason("Priority"), "");
  EXPECT_EQ(RemedyOfReason("Nonsense"), "");
}

TEST(ExplainReasonTest, AReasonThatIsNotKnownIsShownAsItCame) {
  EXPECT_EQ(ExplainReason("FluxCapacitorNotCharged"), "FluxCapacitorNotCharged");
  EXPECT_EQ(MeaningOfReason("FluxCapacitorNotCharged"), "");
}

TEST(ExplainReasonTest, NoReasonIsNoText) {
  EXPECT_EQ(ExplainReason("None"), "");
  EXPECT_EQ(ExplainReason(""), "");
}

}  // namespace
}  // namespace muster::slurm
