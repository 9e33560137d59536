#include "broker/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "broker/replay/cluster.h"
#include "broker/replay/figures.h"

namespace muster::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Fleet TwoClusters() {
  return *ReadFleet(
      "clusters:\n"
      "- {name: a, nodes: [{cpus: 8, gpus: t4:1}]}\n"
      "- {name: b, nodes: [{cpus: 8, gpus: t4:1}]}\n");
}

TraceJob GpuJob(int arrival_s, int run_s, uint64_t gpu_millis = 1000) {
  TraceJob job;
  job.name = "train";
  job.arrival = absl::Seconds(arrival_s);
  job.run_time = absl::Seconds(run_s);
  job.cpu_millis = 1000;
  job.gpu_millis = gpu_millis;
  return job;
}

TEST(ReplayClusterTest, LetsSmallJobsOvertakeALargeOneForAnHour) {
  const Fleet fleet = *ReadFleet("clusters: [{name: a, nodes: [{cpus: 2}]}]");
  ReplayCluster cluster(fleet.clusters[0]);
  TraceJob small, large;
  small.cpu_millis = 1000;
  large.cpu_millis = 2000;
  const auto start = [&](int minute) { return cluster.StartWhatFits(absl::Minutes(minute)); };
  cluster.Submit(1, small, absl::ZeroDuration());
  EXPECT_EQ(start(0), std::vector<size_t>{1});
  cluster.Submit(2, large, absl::ZeroDuration());
  cluster.Submit(3, small, absl::ZeroDuration());
  EXPECT_EQ(start(0), std::vector<size_t>{3});
  cluster.End(3);
  cluster.Submit(4, small, absl::Minutes(60));
  EXPECT_EQ(start(60), std::vector<size_t>{}) << "the large one has waited for an hour";
  cluster.End(1);
  EXPECT_EQ(start(61), std::vector<size_t>{2});
}

TEST(ReplayClusterTest, PacksPartsOfGpusOnTheFullestDevice) {
  const Fleet fleet = *ReadFleet("clusters: [{name: a, nodes: [{cpus: 8, gpus: t4:2}]}]");
  Nodes nodes(fleet.clusters[0]);
  ASSERT_TRUE(nodes.Take(GpuJob(0, 1, 600)));
  ASSERT_TRUE(nodes.Take(GpuJob(0, 1, 400)));
  const auto whole = nodes.Take(GpuJob(0, 1));
  ASSERT_TRUE(whole) << "the second part should be on the device of the first";
  EXPECT_FALSE(nodes.Take(GpuJob(0, 1, 1)));
  nodes.Give(GpuJob(0, 1), *whole);
  EXPECT_TRUE(nodes.Take(GpuJob(0, 1)));
}

TEST(ReplayTest, TheBrokerUsesBothClusters) {
  Trace trace;
  trace.jobs = {GpuJob(0, 100), GpuJob(1, 100), GpuJob(2, 10)};
  const auto replayed = ReplayTrace(TwoClusters(), trace, Policy::kMuster, 1);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_EQ(replayed->outcomes[0].start, absl::ZeroDuration());
  EXPECT_EQ(replayed->outcomes[1].start, absl::Seconds(1)) << "the other cluster is free";
  EXPECT_NE(replayed->outcomes[0].cluster, replayed->outcomes[1].cluster);
  EXPECT_EQ(replayed->outcomes[2].start, absl::Seconds(100));
}

TEST(ReplayTest, TellsAJobThatFitsNowhere) {
  Trace trace;
  trace.jobs = {GpuJob(0, 10), GpuJob(0, 10, 2000)};
  const auto replayed = ReplayTrace(TwoClusters(), trace, Policy::kMuster, 1);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->outcomes[1].start);
  EXPECT_THAT(replayed->outcomes[1].refusal, HasSubstr("GPUs"));
}

TEST(ReplayTest, EachPolicyStartsEachJobOnceAndTheSameSeedGivesTheSame) {
  Trace trace;
  for (int i = 0; i < 50; ++i) trace.jobs.push_back(GpuJob(i, 7));
  for (const Policy policy : kPolicies) {
    const auto first = ReplayTrace(TwoClusters(), trace, policy, 7);
    const auto second = ReplayTrace(TwoClusters(), trace, policy, 7);
    ASSERT_TRUE(first.ok() && second.ok()) << NameOf(policy);
    for (size_t i = 0; i < trace.jobs.size(); ++i) {
      ASSERT_TRUE(first->outcomes[i].start) << NameOf(policy) << " job " << i;
      EXPECT_GE(*first->outcomes[i].start, trace.jobs[i].arrival);
      EXPECT_EQ(first->outcomes[i].start, second->outcomes[i].start);
    }
  }
}

TEST(FiguresTest, CountsWaitsUseAndIdleGpus) {
  Trace trace;
  // Both jobs go to one cluster, while the other one could have had the second.
  trace.jobs = {GpuJob(0, 100), GpuJob(0, 100), GpuJob(200, 10)};
  const auto replayed = ReplayTrace(TwoClusters(), trace, Policy::kStaticSplit, 1);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  const Figures figures = FiguresOf(TwoClusters(), trace, *replayed, "static-split");
  EXPECT_EQ(figures.jobs, 3u);
  EXPECT_DOUBLE_EQ(figures.mean_wait, 100.0 / 3);
  EXPECT_DOUBLE_EQ(figures.max_wait, 100);
  EXPECT_DOUBLE_EQ(figures.use, 0.5) << "200 of 400 GPU seconds";
  EXPECT_DOUBLE_EQ(figures.idle, 0.25) << "one GPU for 100 s";
  EXPECT_THAT(AsTable({figures}), HasSubstr("static-split"));
  EXPECT_THAT(AsJson({figures}), HasSubstr("\"mean_wait_s\": 33.3"));
  EXPECT_THAT(AsPicture({figures}), HasSubstr("<polyline"));
  EXPECT_THAT(AsPicture({}), Not(HasSubstr("<polyline")));
}

}  // namespace
}  // namespace muster::replay
