#include "agents/slurm/shell_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/slurm/inventory.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(ShellLimitsTest, TheClusterSaysWhichLimitsGoAlong) {
  EXPECT_THAT(TakenLimits("ALL", "(null)"), SizeIs(9)) << "all that ulimit sets";
  EXPECT_THAT(TakenLimits("NONE", "(null)"), IsEmpty());
  EXPECT_THAT(TakenLimits("CORE,RLIMIT_NOFILE", "(null)"), UnorderedElementsAre("CORE", "NOFILE"));
  EXPECT_THAT(TakenLimits("(null)", "MEMLOCK,STACK"), SizeIs(7));
  EXPECT_THAT(TakenLimits("(null)", "MEMLOCK"), Not(::testing::Contains("MEMLOCK")));
}

TEST(ShellLimitsTest, TheClustersRuleIsInItsSettings) {
  const auto settings = ParseSettings(
      "ClusterName = lab\nPropagateResourceLimits = (null)\n"
      "PropagateResourceLimitsExcept = AS,CORE,CPU,DATA,FSIZE,MEMLOCK,NPROC,STACK\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->taken_limits, ElementsAre("NOFILE"));
}

TEST(ShellLimitsTest, TheFileHasWhatIsTakenOrAskedForInUlimitsUnits) {
  const contract::ShellVariables variables = {
      {"SLURM_UMASK", "0027"},           {"SLURM_RLIMIT_NOFILE", "500"},
      {"SLURM_RLIMIT_STACK", "4194304"}, {"SLURM_RLIMIT_CORE", "U18446744073709551615"},
      {"SLURM_RLIMIT_MEMLOCK", "1024"},  {"SLURM_RLIMIT_RSS", "U1"},
      {"SLURM_RLIMIT_CPU", "x; id"},     {"A", "1"}};
  EXPECT_EQ(LimitsFile(variables, {"NOFILE", "STACK"}),
            "umask 0027\nc unlimited CORE unlimited 1\nn 500 NOFILE 500 0\n"
            "s 4096 STACK 4194304 0\n");
  EXPECT_EQ(LimitsFile({{"A", "1"}}, {"NOFILE"}), "") << "of an earlier release of the client";
  for (const char* umask : {"", "1777", "8", "$(id)"})
    EXPECT_EQ(LimitsFile({{"SLURM_UMASK", umask}}, {}), "") << umask;
}

}  // namespace
}  // namespace muster::slurm
