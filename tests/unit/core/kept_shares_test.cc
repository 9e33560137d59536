// The use of projects, across restarts and clocks that are set.
#include <memory>
#include <string>
#include <variant>

#include "contract/project_shares.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

class KeptSharesTest : public CoreTest {
 protected:
  static v1::JobSpec SpecOf(const std::string& project) {
    v1::JobSpec spec = Spec();
    spec.set_project(project);
    return spec;
  }
  // A project has used the cluster for ten hours, until its last run ended.
  void UseTenHours(const std::string& project) {
    const SessionId a = ConnectOne();
    const uint64_t job = MustSubmit(SpecOf(project));
    now_ += absl::Hours(10);
    Report(a, {Event(1, Key(job), v1::RUN_STATE_FAILED)});
    Gone(a);
  }
  SessionId ConnectOne() {
    agent::v1::AgentHello hello = Hello("a");
    hello.set_max_active_runs(1);
    return Connect(hello);
  }
};

TEST_F(KeptSharesTest, ARestartedBrokerKnowsWhatProjectsHaveUsed) {
  contract::ProjectShares shares;
  shares.are_on = true;
  Share(shares);
  UseTenHours("vision");
  Tick();
  EXPECT_GE(CountChanges<PutUse>(), 1);
  MustSubmit(SpecOf("vision"));
  const uint64_t other = MustSubmit(SpecOf("speech"));
  Restart();
  EXPECT_THAT(Assigned(ConnectOne()), ::testing::ElementsAre(Key(other)));
}

TEST_F(KeptSharesTest, WithoutProjectsAgeCountsAlone) {
  UseTenHours("vision");
  const uint64_t first = MustSubmit(SpecOf("vision"));
  MustSubmit(SpecOf("speech"));
  EXPECT_THAT(Assigned(ConnectOne()), ::testing::ElementsAre(Key(first)));
}

TEST_F(KeptSharesTest, TheEndOfAProcessStoresWhatWasUsedUntilThen) {
  ConnectOne();
  MustSubmit(Spec());
  Tick();
  now_ += absl::Seconds(10);
  Do(KeepUse());
  ASSERT_EQ(CountChanges<PutUse>(), 1);
  const auto& kept = std::get<PutUse>(last_.changes.front());
  EXPECT_EQ(kept.user, "alice");
  EXPECT_NEAR(kept.used[0], 10'000, 1) << "one core, in thousandths, for ten seconds";
  EXPECT_EQ(kept.at, now_);
}

TEST_F(KeptSharesTest, AClockThatIsSetUsesNothing) {
  ConnectOne();
  MustSubmit(Spec());
  now_ += absl::Hours(5);
  Do(core::Tick{absl::Hours(5)});
  Do(KeepUse());
  ASSERT_GE(CountChanges<PutUse>(), 1);
  EXPECT_NEAR(std::get<PutUse>(last_.changes.front()).used[0], 0, 1);
}

TEST_F(KeptSharesTest, AnAccountOfNoWeightIsForgotten) {
  UseTenHours("vision");
  Tick();
  now_ += absl::Hours(24 * 7 * 40);
  Tick();
  EXPECT_EQ(CountChanges<RemoveUse>(), 1);
  EXPECT_TRUE(store_.Restore(now_)->uses.empty());
}

}  // namespace
}  // namespace muster::core
