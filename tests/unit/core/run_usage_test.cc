// The use of runs that have ended, by days.
#include "broker/core/run_usage.h"

#include <gmock/gmock.h>

#include <string>
#include <variant>
#include <vector>

#include "broker/core/timestamps.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

// A Monday in UTC.
const absl::Time kMidnight = absl::FromUnixSeconds(int64_t{20'000} * 86'400);

v1::Run RunBetween(absl::Time start, absl::Time end) {
  v1::Run run;
  run.set_cluster("lab");
  SetTimestamp(start, run.mutable_start_time());
  SetTimestamp(end, run.mutable_end_time());
  return run;
}

Requirements TwoNodes() {
  Requirements requirements;
  requirements.project = "vision";
  requirements.nodes = 2;
  requirements.cpu_millis = 4000;
  requirements.gpu_millis = 500;
  requirements.gpu_type = "A100";
  return requirements;
}

std::vector<AddUsage> UsageOf(const v1::Run& run) {
  RunUsage usage;
  usage.Add(run, TwoNodes(), "ada");
  return usage.Take();
}

TEST(RunUsageTest, ARunUsesItsCoresAndGpusOnAllNodesForAsLongAsItsCommandRan) {
  const auto rows = UsageOf(RunBetween(kMidnight, kMidnight + absl::Hours(1)));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].day, 20'000);
  EXPECT_EQ(rows[0].project, "vision");
  EXPECT_EQ(rows[0].user, "ada");
  EXPECT_EQ(rows[0].cluster, "lab");
  EXPECT_EQ(rows[0].gpu_type, "a100");
  EXPECT_EQ(rows[0].runs, 1);
  EXPECT_EQ(rows[0].run_ms, 3'600'000);
  EXPECT_EQ(rows[0].core_ms, 8 * 3'600'000);
  EXPECT_EQ(rows[0].gpu_ms, 3'600'000);
}

TEST(RunUsageTest, TheTimeOfARunBelongsToTheDaysThatItCovered) {
  const auto rows = UsageOf(RunBetween(kMidnight - absl::Minutes(1), kMidnight + absl::Hours(25)));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].day, 19'999);
  EXPECT_EQ(rows[0].run_ms, 60'000);
  EXPECT_EQ(rows[0].runs, 0);
  EXPECT_EQ(rows[1].run_ms, 24 * 3'600'000);
  EXPECT_EQ(rows[2].run_ms, 3'600'000);
  EXPECT_EQ(rows[2].runs, 1) << "it ended on this day";
}

TEST(RunUsageTest, AWrongStartTimeCostsABoundedNumberOfDays) {
  const auto rows = UsageOf(RunBetween(absl::UnixEpoch(), kMidnight));
  EXPECT_EQ(rows.size(), static_cast<size_t>(kMaxDaysOfRun));
  EXPECT_EQ(UsageOf(RunBetween(kMidnight, kMidnight - absl::Hours(5))).front().run_ms, 0);
}

TEST(RunUsageTest, ARunThatNeverStartedHasUsedNothing) {
  v1::Run run = RunBetween(kMidnight, kMidnight);
  run.clear_start_time();
  EXPECT_TRUE(UsageOf(run).empty());
}

TEST(RunUsageTest, RunsThatAreAlikeShareARow) {
  RunUsage usage;
  const v1::Run run = RunBetween(kMidnight, kMidnight + absl::Seconds(1));
  usage.Add(run, TwoNodes(), "ada");
  usage.Add(run, TwoNodes(), "ada");
  usage.Add(run, TwoNodes(), "bob");
  const auto rows = usage.Take();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].runs, 2);
  EXPECT_EQ(rows[0].run_ms, 2000);
  EXPECT_TRUE(usage.Take().empty());
}

TEST(RunUsageTest, DaysBefore1970AreCountedDown) {
  EXPECT_EQ(DayOf(-1), -1);
  EXPECT_EQ(DayOf(0), 0);
}

class UsageOfRunsTest : public CoreTest {
 protected:
  agent::v1::RunEvent Started(uint64_t sequence, const std::string& run_key) {
    agent::v1::RunEvent event = Event(sequence, run_key, v1::RUN_STATE_RUNNING);
    SetTimestamp(now_, event.mutable_start_time());
    return event;
  }
  agent::v1::RunEvent Ended(agent::v1::RunEvent event) {
    SetTimestamp(now_, event.mutable_end_time());
    return event;
  }
  std::vector<AddUsage> Added() const {
    std::vector<AddUsage> added;
    for (const Change& change : last_.changes) {
      if (const auto* usage = std::get_if<AddUsage>(&change)) added.push_back(*usage);
    }
    return added;
  }
};

TEST_F(UsageOfRunsTest, EachRunIsCountedOnceInTheCommitOfItsEnd) {
  agent::v1::AgentHello hello = Hello("a");
  *hello.mutable_inventory()->mutable_pools(0) = PoolOf("default", {.gpus = {{"h100", 8}}});
  const SessionId a = Connect(hello);
  const uint64_t job = MustSubmit(SpecWithGpus("h100", 1));
  Report(a, {Event(1, Key(job), v1::RUN_STATE_LAUNCHING), Started(2, Key(job))});
  EXPECT_THAT(Added(), ::testing::IsEmpty());
  now_ += absl::Seconds(90);
  Report(a, {Ended(Event(3, Key(job), v1::RUN_STATE_SUCCEEDED))});
  ASSERT_EQ(Added().size(), 1u);
  EXPECT_EQ(Added()[0].runs, 1);
  EXPECT_EQ(Added()[0].run_ms, 90'000);
  EXPECT_EQ(Added()[0].gpu_ms, 90'000);
  EXPECT_EQ(Added()[0].gpu_type, "h100");
  EXPECT_EQ(Added()[0].user, "alice");
  EXPECT_EQ(CountChanges<UpdateJob>(), 1) << "the end is in the same commit";
  Report(a, {LogsComplete(4, Key(job), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_THAT(Added(), ::testing::IsEmpty());
}

TEST_F(UsageOfRunsTest, ARunThatIsFollowedByAnotherOneIsCounted) {
  const SessionId a = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  Report(a, {Event(1, Key(job), v1::RUN_STATE_LAUNCHING), Started(2, Key(job))});
  now_ += absl::Seconds(1);
  Report(a, {Ended(InfraFailure(3, Key(job)))});
  EXPECT_EQ(Job(job).state(), v1::JOB_STATE_QUEUED);
  ASSERT_EQ(Added().size(), 1u);
  EXPECT_EQ(Added()[0].run_ms, 1000);
}

}  // namespace
}  // namespace muster::core
