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

TEST(ExplainReasonTest, AReasonThatIsNotKnownIsShownAsItCame) {
  EXPECT_EQ(ExplainReason("NvidiaImexChannels"), "NvidiaImexChannels");
}

TEST(ExplainReasonTest, NoReasonIsNoText) {
  EXPECT_EQ(ExplainReason("None"), "");
  EXPECT_EQ(ExplainReason(""), "");
}

}  // namespace
}  // namespace muster::slurm
