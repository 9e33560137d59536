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

TEST(CheckTimeLimitTest, AnyOfTheDefaultPartitionsWillDo) {
  const std::vector<v1::Pool> pools = {MakePool("a", 3600, true), MakePool("b", 7200, true)};
  EXPECT_TRUE(CheckTimeLimit(Spec(7200), pools).ok());
  EXPECT_FALSE(CheckTimeLimit(Spec(7201), pools).ok());
}

Partition Limited(const char* name, std::vector<std::string> limits, bool is_default = false) {
  return {MakePool(name, 0, is_default), std::move(limits)};
}

// The user's default account is "test", whose default QOS is "normal".
Rights MakeRights() {
  Rights rights;
  rights.partitions = {Limited("debug", {"MinNodes=2"}, true),
                       Limited("lab", {"AllowAccounts=vision,other"}),
                       Limited("deny", {"DenyAccounts=test"}), Limited("hiq", {"AllowQos=high"}),
                       Limited("grp", {"AllowGroups=staff"})};
  rights.associations = {{"test", "", {"normal", "high"}, true, "normal"},
                         {"other", "", {"normal"}, false, ""}};
  rights.groups = {"users"};
  return rights;
}

v1::JobSpec On(const char* partition, const char* account = "", const char* qos = "") {
  v1::JobSpec spec = Spec(0, partition);
  spec.mutable_slurm()->set_account(account);
  spec.mutable_slurm()->set_qos(qos);
  return spec;
}

std::string WhyNot(const v1::JobSpec& spec, const Rights& rights) {
  const absl::Status status = CheckRights(spec, rights);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CheckRightsTest, APartitionThatIsClosedToTheJobsAccountQosOrUserIsRefused) {
  const Rights rights = MakeRights();
  const std::string lab = WhyNot(On("lab"), rights);
  EXPECT_THAT(lab, HasSubstr("slurm.account: partition lab is closed to account \"test\" "
                             "(AllowAccounts=vision,other)"));
  EXPECT_THAT(lab, HasSubstr("use another account (slurm.account, --account), or a partition that "
                             "is open to it (pool, --partition): debug"));
  EXPECT_THAT(WhyNot(On("deny"), rights), HasSubstr("DenyAccounts=test"));
  EXPECT_THAT(WhyNot(On("hiq"), rights),
              HasSubstr("slurm.qos: partition hiq is closed to QOS \"normal\" (AllowQos=high)"));
  EXPECT_THAT(WhyNot(On("grp"), rights), HasSubstr("closed to the agent's user (AllowGroups="));
  Rights root = rights;
  root.is_privileged = true;
  EXPECT_TRUE(CheckRights(On("grp"), root).ok());
  EXPECT_THAT(WhyNot(On("lab,deny"), rights), HasSubstr("partition lab"));
  v1::JobSpec pool = On("");
  pool.mutable_placement()->set_pool("lab");
  EXPECT_FALSE(CheckRights(pool, rights).ok());
}

TEST(CheckRightsTest, OneOpenPartitionOfTheListWillDo) {
  const Rights rights = MakeRights();
  EXPECT_TRUE(CheckRights(On("lab,debug"), rights).ok());
  EXPECT_TRUE(CheckRights(On(""), rights).ok());
}

TEST(CheckRightsTest, TheAccountAndTheQosOfTheJobCount) {
  const Rights rights = MakeRights();
  EXPECT_TRUE(CheckRights(On("lab", "Other"), rights).ok()) << "Slurm has accounts in lower case";
  EXPECT_FALSE(CheckRights(On("lab", "physics"), rights).ok());
  EXPECT_TRUE(CheckRights(On("deny", "other"), rights).ok());
  EXPECT_TRUE(CheckRights(On("hiq", "", "high"), rights).ok());
  EXPECT_FALSE(CheckRights(On("hiq", "other"), rights).ok());
}

TEST(CheckRightsTest, WhatIsNotKnownKeepsNobodyOut) {
  Rights rights = MakeRights();
  rights.groups.clear();
  EXPECT_TRUE(CheckRights(On("grp"), rights).ok());
  EXPECT_TRUE(CheckRights(On("nosuch"), rights).ok());
  EXPECT_TRUE(CheckRights(On("lab,nosuch"), rights).ok());
  rights.associations[0].is_default = false;
  EXPECT_TRUE(CheckRights(On("lab"), rights).ok()) << "any of its accounts may be the default";
  rights.associations.clear();
  for (const char* name : {"lab", "deny", "hiq"})
    EXPECT_TRUE(CheckRights(On(name), rights).ok()) << name;
  EXPECT_TRUE(CheckRights(On("lab"), {}).ok());
}

TEST(CheckRightsTest, WhereAListOfThoseWhoMayIsThereTheOtherOneIsNotHeeded) {
  Rights rights = MakeRights();
  rights.partitions = {Limited("both", {"AllowAccounts=test", "DenyAccounts=test"})};
  EXPECT_TRUE(CheckRights(On("both"), rights).ok());
}

TEST(CheckRightsTest, FromSlurm23OnAListStandsForTheAccountsBelowToo) {
  ClusterSettings settings;
  for (const auto& [version, does] : {std::pair("22.05.8", false), {"24.11.5", true}, {"", true}}) {
    settings.version = version;
    EXPECT_EQ(ListsSubaccounts(settings), does) << version;
  }
  Rights rights = MakeRights();
  rights.lists_subaccounts = true;
  EXPECT_TRUE(CheckRights(On("lab"), rights).ok()) << "what is above its account is not known";
  EXPECT_FALSE(CheckRights(On("hiq"), rights).ok());
  for (Association& one : rights.associations) one.line = {one.account, "faculty"};
  EXPECT_THAT(WhyNot(On("lab"), rights), HasSubstr("closed to account \"test\""));
  EXPECT_TRUE(CheckRights(On("lab", "unheard"), rights).ok());
  rights.partitions = {Limited("lab", {"AllowAccounts=faculty"}),
                       Limited("deny", {"DenyAccounts=faculty"})};
  EXPECT_TRUE(CheckRights(On("lab"), rights).ok());
  EXPECT_FALSE(CheckRights(On("deny"), rights).ok());
}

}  // namespace
}  // namespace muster::slurm
