#include "contract/slurm_reasons.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(SlurmReasonTest, PlainWordsKeepSlurmsOwnBehindThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"Priority", "other jobs are ahead"},
      {"Resources", "free nodes"},
      {"Dependency", "another job to end"},
      {"DependencyNeverSatisfied", "can no longer fulfil the dependency"},
      {"ReqNodeNotAvail, UnavailableNodes:n[1-2]", "down, drained or reserved"},
      {"PartitionTimeLimit", "ask for less time"},
      {"QOSMaxCpuPerUserLimit", "one user"},
      {"QOSMaxJobsPerUserLimit", "one user"},
      {"QOSGrpCPUMinutes", "budget of its QOS"},
      {"QOSGrpCpuLimit", "share its QOS"},
      {"AssocGrpGRESMinutes", "budget of its account"},
      {"AssocGrpGRES", "share its account"},
      {"AssocMaxJobsLimit", "other jobs"},
      {"AssocMaxWallDurationPerJobLimit",
       "the job itself asks for more time than its account allows one job"},
      {"AssocMaxWallDurationPerJobLimit", "ask for less, or use another account"},
      {"AssocMaxNodePerJobLimit", "the job itself asks for more nodes"},
      {"QOSMaxMemoryPerJob", "the job itself asks for more memory than its QOS allows one job"},
      {"QOSMaxMemoryPerJob", "ask for less, or use another QOS (slurm.qos, --qos)"},
      {"QOSMaxCpuPerJobLimit", "the job itself asks for more CPUs"},
      {"QOSMaxGRESPerJob", "the job itself asks for more GPUs or other generic resources"},
      {"QOSMaxCpuMinutesPerJobLimit", "more resource minutes than its QOS allows one job"},
      {"QOSMaxCpuPerNode", "the job itself asks for more CPUs on a node than its QOS allows"},
      {"AssocMaxUnknownPerJob", "more of a resource than its account allows one job"},
      {"QOSMaxGRESPerUser", "with its user's other jobs it asks for more GPUs"},
      {"QOSMinGRES", "ask for more"},
      {"launch failed requeued held", "Slurm holds it"},
      {"Job's account not permitted to use this partition (lab allows other not test)",
       "its account may not use the partition"},
      {"Job's account not permitted to use this partition (deny denies test including test)",
       "use another account (slurm.account, --account) or partition"},
      {"Job's QOS not permitted to use this partition (hiq allows high not normal)",
       "use another QOS (slurm.qos, --qos) or partition"},
  };
  for (const auto& [word, words] : cases) {
    const v1::StateReason reason = SlurmReason(word);
    EXPECT_THAT(reason.message() + "; " + reason.remedy(), HasSubstr(words)) << word;
    EXPECT_THAT(reason.message(), EndsWith(std::string("(") + word + ")"));
    EXPECT_EQ(reason.scheduler_reason(), word);
  }
}

// The reasons that squeue of Slurm 22.05 can print.
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

TEST(SlurmReasonTest, EveryReasonOfSlurmHasPlainWords) {
  for (const char* word : kKnown) EXPECT_NE(SlurmReason(word).message(), word);
}

TEST(SlurmReasonTest, ProgramsReadTheCode) {
  const std::pair<const char*, v1::StateReasonCode> cases[] = {
      {"Resources", v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES},
      {"Priority", v1::STATE_REASON_CODE_WAITS_FOR_TURN},
      {"JobHeldUser", v1::STATE_REASON_CODE_HELD},
      {"JobHeldAdmin", v1::STATE_REASON_CODE_HELD},
      {"QOSMaxJobsPerUserLimit", v1::STATE_REASON_CODE_LIMIT_REACHED},
      {"AssocGrpGRES", v1::STATE_REASON_CODE_LIMIT_REACHED},
      {"QOSMaxMemoryPerJob", v1::STATE_REASON_CODE_CANNOT_START},
      {"QOSMaxGRESPerUser", v1::STATE_REASON_CODE_LIMIT_REACHED},
      {"AssocMaxWallDurationPerJobLimit", v1::STATE_REASON_CODE_CANNOT_START},
      {"PartitionTimeLimit", v1::STATE_REASON_CODE_CANNOT_START},
      {"PartitionDown", v1::STATE_REASON_CODE_POOL_UNAVAILABLE},
      {"Dependency", v1::STATE_REASON_CODE_DEPENDENCY},
      {"DependencyNeverSatisfied", v1::STATE_REASON_CODE_CANNOT_START},
      {"BeginTime", v1::STATE_REASON_CODE_BEGIN_TIME},
      {"FluxCapacitorNotCharged", v1::STATE_REASON_CODE_OTHER},
  };
  for (const auto& [word, code] : cases) EXPECT_EQ(SlurmReason(word).code(), code) << word;
}

TEST(SlurmReasonTest, ABudgetThatIsUsedUpIsNotTakenForOneThatIsOnlyLent) {
  EXPECT_THAT(ExplainSlurmReason("QOSGrpCPUMinutesLimit"), HasSubstr("budget of its QOS"));
  EXPECT_THAT(ExplainSlurmReason("AssocGrpCPUMinutesLimit"), HasSubstr("budget of its account"));
  EXPECT_THAT(ExplainSlurmReason("QOSGrpCPURunMinutesLimit"), HasSubstr("starts when some end"));
  EXPECT_THAT(ExplainSlurmReason("AssocGrpMemRunMinutes"), HasSubstr("starts when some end"));
}

TEST(SlurmReasonTest, AJobThatWasMeasuredByItselfBlamesNoOthers) {
  const std::pair<const char*, const char*> cases[] = {
      {"QOSMaxCpuPerUserLimit", "the job itself asks for more CPUs than its QOS allows one user"},
      {"QOSMaxNodePerUserLimit", "more nodes than its QOS allows one user"},
      {"MaxGRESPerAccount", "more GPUs or other generic resources than its QOS allows one account"},
      {"QOSGrpMemLimit", "more memory than its QOS allows all who share it"},
      {"AssocGrpGRES", "than its account allows all who share it"},
      {"QOSMaxCpuPerJobLimit", "the job itself asks for more CPUs than its QOS allows one job"},
  };
  for (const auto& [word, words] : cases) {
    const v1::StateReason reason = SlurmReasonAlone(word);
    EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_CANNOT_START) << word;
    EXPECT_THAT(reason.message(), HasSubstr(words)) << word;
    EXPECT_THAT(reason.message(), EndsWith(std::string("(") + word + ")"));
    EXPECT_THAT(reason.remedy(), HasSubstr("ask for less, or use another")) << word;
  }
}

TEST(SlurmReasonTest, TheNumberOfJobsAndABudgetAreNeverTheJobsAlone) {
  for (const char* word : {"QOSMaxJobsPerUserLimit", "QOSMaxSubmitJobPerUserLimit",
                           "QOSGrpSubmitJobsLimit", "QOSGrpCPUMinutesLimit", "QOSGrpWallLimit",
                           "MaxSubmitJobsPerAccount", "Priority", "FluxCapacitorNotCharged"}) {
    EXPECT_EQ(SlurmReasonAlone(word).SerializeAsString(), SlurmReason(word).SerializeAsString())
        << word;
  }
}

TEST(SlurmReasonTest, WhatCanBeDoneIsSaidApart) {
  EXPECT_EQ(SlurmReason("JobHeldUser").remedy(), "let it go on with muster release");
  EXPECT_EQ(SlurmReason("Priority").remedy(), "");
}

TEST(SlurmReasonTest, AReasonThatIsNotKnownIsShownAsItCame) {
  EXPECT_EQ(SlurmReason("FluxCapacitorNotCharged").message(), "FluxCapacitorNotCharged");
  EXPECT_EQ(ExplainSlurmReason("FluxCapacitorNotCharged"), "FluxCapacitorNotCharged");
}

TEST(SlurmReasonTest, NoReasonIsNoFact) {
  for (const char* word : {"None", ""}) {
    EXPECT_EQ(SlurmReason(word).ByteSizeLong(), 0u);
    EXPECT_EQ(ExplainSlurmReason(word), "");
  }
}

}  // namespace
}  // namespace muster::contract
