#include "agents/slurm/pool_limits.h"

#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Pool MakePool(const char* name, int64_t max_seconds, bool is_default = false) {
  v1::Pool pool;
  pool.set_name(name);
  pool.set_is_default(is_default);
  pool.set_available(true);
  if (max_seconds > 0) pool.mutable_max_time_limit()->set_seconds(max_seconds);
  return pool;
}

const std::vector<v1::Pool>& Pools() {
  static const auto* pools = new std::vector<v1::Pool>{
      MakePool("debug", 3600, true), MakePool("gpu", 4 * 3600), MakePool("long", 0)};
  return *pools;
}

v1::JobSpec Spec(int64_t seconds, const char* partition = "") {
  v1::JobSpec spec;
  if (seconds > 0) spec.mutable_time_limit()->set_seconds(seconds);
  spec.mutable_slurm()->set_partition(partition);
  return spec;
}

TEST(CheckTimeLimitTest, WhatThePartitionAllowsIsGood) {
  for (const v1::JobSpec& spec : {Spec(0), Spec(3600), Spec(4 * 3600, "gpu"), Spec(86400, "long"),
                                  Spec(4 * 3600, "debug,gpu")}) {
    EXPECT_TRUE(CheckTimeLimit(spec, Pools()).ok()) << spec.DebugString();
  }
}

TEST(CheckTimeLimitTest, MoreIsRefusedWithWhatIsAllowedAndWhere) {
  const absl::Status status = CheckTimeLimit(Spec(2 * 3600), Pools());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(contract::GetBadRequest(status)->field_violations(0).field(), "time_limit");
  const std::string words(status.message());
  EXPECT_THAT(words, HasSubstr("2h is more than partition debug allows; ask for at most 1h"));
  EXPECT_THAT(words, HasSubstr("a partition that allows more: gpu, long"));

  const std::string of_two(CheckTimeLimit(Spec(5 * 3600, "debug,gpu"), Pools()).message());
  EXPECT_THAT(of_two, HasSubstr("partition gpu allows; ask for at most 4h"));
  EXPECT_THAT(of_two, HasSubstr("allows more: long"));
}

TEST(CheckTimeLimitTest, TheLimitIsComparedAsSlurmCountsIt) {
  // 60 minutes and one second are 61 minutes for Slurm.
  EXPECT_FALSE(CheckTimeLimit(Spec(3601), Pools()).ok());
}

TEST(CheckTimeLimitTest, ThePoolOfThePlacementCounts) {
  v1::JobSpec spec = Spec(2 * 3600);
  spec.mutable_placement()->set_pool("gpu");
  EXPECT_TRUE(CheckTimeLimit(spec, Pools()).ok());
  spec.mutable_slurm()->set_partition("debug");
  EXPECT_FALSE(CheckTimeLimit(spec, Pools()).ok()) << "slurm.partition overrides it";
}

TEST(CheckTimeLimitTest, WhatIsNotKnownIsLeftToSbatch) {
  EXPECT_TRUE(CheckTimeLimit(Spec(86400), {}).ok());
  EXPECT_TRUE(CheckTimeLimit(Spec(86400, "nosuch"), Pools()).ok());
  EXPECT_TRUE(CheckTimeLimit(Spec(86400, "debug,nosuch"), Pools()).ok());
  v1::JobSpec qos = Spec(86400);
  qos.mutable_slurm()->set_qos("long");
  EXPECT_TRUE(CheckTimeLimit(qos, Pools()).ok());
}

TEST(CheckTimeLimitTest, APartitionThatIsAwayIsNotOffered) {
  std::vector<v1::Pool> pools = {MakePool("debug", 3600, true), MakePool("long", 0)};
  pools[1].set_available(false);
  EXPECT_THAT(std::string(CheckTimeLimit(Spec(7200), pools).message()), Not(HasSubstr("long")));
}

}  // namespace
}  // namespace muster::slurm
