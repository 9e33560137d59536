// The jobs of a project go only where the project may, whatever changes meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

contract::PlaceLimit OnlyClusters(std::vector<std::string> clusters) {
  contract::PlaceLimit limit;
  limit.clusters = std::move(clusters);
  return limit;
}

contract::PlaceLimit OnlyPools(std::vector<std::string> pools) {
  contract::PlaceLimit limit;
  limit.pools = std::move(pools);
  return limit;
}

contract::PlaceLimit NeedsAccount() {
  contract::PlaceLimit limit;
  limit.needs_account = true;
  return limit;
}

class PlaceLimitsTest : public CoreTest {
 protected:
  static v1::JobSpec SpecOf(const std::string& project) {
    v1::JobSpec spec = Spec();
    spec.set_project(project);
    return spec;
  }
  static agent::v1::AgentHello WithPools(const std::string& cluster, const std::string& pool,
                                         const std::string& other) {
    agent::v1::AgentHello hello = Hello(cluster);
    hello.mutable_inventory()->clear_pools();
    *hello.mutable_inventory()->add_pools() = PoolOf(pool, {}, true);
    *hello.mutable_inventory()->add_pools() = PoolOf(other, {}, false);
    return hello;
  }
};

TEST_F(PlaceLimitsTest, AJobGoesToAClusterOfItsProjectAlone) {
  Limit({{"vision", OnlyClusters({"b"})}});
  const SessionId a = Connect("a");
  const SessionId b = Connect("b");
  const uint64_t limited = MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(a), IsEmpty());
  EXPECT_THAT(Assigned(b), ElementsAre(Key(limited)));
  const uint64_t free = MustSubmit(SpecOf("speech"));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(free)));
}

TEST_F(PlaceLimitsTest, AJobThatWaitsGoesByNewLimits) {
  Limit({{"vision", OnlyClusters({"b", "c"})}});
  Gone(Connect("b"));
  const SessionId a = Connect("a");
  const uint64_t job = MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(a), IsEmpty());
  Limit({{"vision", OnlyClusters({"a"})}});
  EXPECT_THAT(Assigned(a), ElementsAre(Key(job)));
}

TEST_F(PlaceLimitsTest, AJobThatWaitsIsNotPlacedWhereItsProjectMayNotGoAnyMore) {
  Gone(Connect("a"));
  const uint64_t job = MustSubmit(SpecOf("vision"));
  Limit({{"vision", OnlyClusters({"b"})}});
  const SessionId a = Connect("a");
  EXPECT_THAT(Assigned(a), IsEmpty());
  Restart();
  const SessionId again = Connect("a");
  EXPECT_THAT(Assigned(again), IsEmpty()) << "nor after a restart";
  const v1::StateReason reason = Explain(job);
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_DOES_NOT_FIT);
  ASSERT_EQ(reason.shortages_size(), 1);
  EXPECT_EQ(reason.shortages(0).resource(), "project");
  EXPECT_THAT(reason.message(), HasSubstr("the project \"vision\" may not use it"));
}

TEST_F(PlaceLimitsTest, AJobThatNoClusterOfItsProjectCanTakeIsRefused) {
  Limit({{"vision", OnlyClusters({"b"})}});
  Connect("a");
  const absl::Status refused = SubmitOne(SpecOf("vision")).status();
  EXPECT_EQ(ReasonOf(refused), "CANNOT_BE_PLACED");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("may not use it"));
}

TEST_F(PlaceLimitsTest, AJobWithoutAPoolNeedsTheRightToTheDefaultOne) {
  Limit({{"vision", OnlyPools({"gpu"})}, {"speech", OnlyPools({"cpu"})}});
  const SessionId a = Connect(WithPools("a", "cpu", "gpu"));
  const absl::Status refused = SubmitOne(SpecOf("vision")).status();
  EXPECT_EQ(ReasonOf(refused), "CANNOT_BE_PLACED");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("placement.pool"));
  v1::JobSpec named = SpecOf("vision");
  named.mutable_placement()->set_pool("gpu");
  const uint64_t job = MustSubmit(named);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(job)));
  const uint64_t other = MustSubmit(SpecOf("speech"));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(other)));
}

TEST_F(PlaceLimitsTest, JobsWithoutAnAccountGoToNoSlurmIfTheirProjectHasAccounts) {
  Limit({{"vision", NeedsAccount()}});
  agent::v1::AgentHello slurm = Hello("a");
  slurm.set_kind(v1::CLUSTER_KIND_SLURM);
  agent::v1::AgentHello machines = Hello("b");
  machines.set_kind(v1::CLUSTER_KIND_MACHINES);
  const SessionId a = Connect(slurm);
  const SessionId b = Connect(machines);
  const uint64_t job = MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(b), ElementsAre(Key(job)));
  v1::JobSpec named = SpecOf("vision");
  named.mutable_slurm()->set_account("v1");
  const uint64_t with_account = MustSubmit(named);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(with_account)));
}

TEST_F(PlaceLimitsTest, ARetryGoesByTheLimitsOfItsTime) {
  v1::JobSpec spec = SpecOf("vision");
  spec.mutable_retry()->set_max_runs(3);
  const SessionId a = Connect("a");
  const uint64_t job = MustSubmit(spec);
  ASSERT_THAT(Assigned(a), ElementsAre(Key(job)));
  Limit({{"vision", OnlyClusters({"b"})}});
  Report(a, {InfraFailure(1, Key(job)), LogsComplete(2, Key(job), v1::RUN_STATE_FAILED)});
  now_ += absl::Hours(2);
  Tick();
  EXPECT_THAT(Assigned(a), IsEmpty());
  const SessionId b = Connect("b");
  EXPECT_THAT(Assigned(b), ElementsAre(Key(job, 2)));
}

TEST_F(PlaceLimitsTest, APlanAsksTheClustersOfTheProjectAlone) {
  Connect("a");
  Connect("b");
  core::ListClusters which;
  which.that_could_take = std::make_shared<const v1::JobSpec>(SpecOf("vision"));
  which.limits = std::make_shared<const contract::PlaceLimits>(
      contract::PlaceLimits{{"vision", OnlyClusters({"b"})}});
  const ClustersReply reply = ListClusters(which);
  ASSERT_EQ(reply.clusters.size(), 1u);
  EXPECT_EQ(reply.clusters[0].name(), "b");
}

}  // namespace
}  // namespace muster::core
