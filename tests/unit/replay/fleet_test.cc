#include "broker/replay/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::replay {
namespace {

using ::testing::HasSubstr;

TEST(ReadFleetTest, ReadsClustersByName) {
  const auto fleet = ReadFleet(
      "clusters:\n"
      "- {name: lab, kind: slurm, max_active_runs: 5, nodes: [{count: 4, cpus: 64, memory: 512Gi, "
      "gpus: a100:8}]}\n"
      "- {name: desk, nodes: [{cpus: 8}]}\n");
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  ASSERT_EQ(fleet->clusters.size(), 2u);
  EXPECT_EQ(fleet->clusters[0].name, "desk");
  EXPECT_EQ(fleet->clusters[0].kind, v1::CLUSTER_KIND_MACHINES);
  const FleetCluster& lab = fleet->clusters[1];
  EXPECT_EQ(lab.kind, v1::CLUSTER_KIND_SLURM);
  EXPECT_EQ(lab.max_active_runs, 5u);
  EXPECT_EQ(lab.nodes[0].gpus, 8u);
  EXPECT_EQ(lab.nodes[0].gpu_type, "a100");
  EXPECT_EQ(GpusOf(*fleet), 32u);
}

TEST(ReadFleetTest, NamesThePlaceOfWhatItCannotRead) {
  const struct {
    const char* yaml;
    const char* says;
  } cases[] = {
      {"clusters: []", "at least one is needed"},
      {"clusters: [{nodes: [{cpus: 1}]}]", "clusters[0].name"},
      {"clusters: [{name: a}]", "clusters[0].nodes"},
      {"clusters: [{name: a, kind: cloud, nodes: [{cpus: 1}]}]", "\"cloud\" is none"},
      {"clusters: [{name: a, nodes: [{count: -1}]}]", "clusters[0].nodes[0].count"},
      {"clusters: [{name: a, nodes: [{memory: much}]}]", "clusters[0].nodes[0].memory"},
      {"clusters: [{name: a, nodes: [{cpus: 1}]}, {name: a, nodes: [{cpus: 1}]}]",
       "two are called"},
      {"clusters: [", "no YAML of a fleet"},
  };
  for (const auto& bad : cases) {
    const auto fleet = ReadFleet(bad.yaml);
    EXPECT_EQ(fleet.status().code(), absl::StatusCode::kInvalidArgument) << bad.yaml;
    EXPECT_THAT(std::string(fleet.status().message()), HasSubstr(bad.says));
  }
}

TEST(FleetOfOpenbTest, SplitsTheNodesOverSixClustersOfUnlikeSize) {
  std::string csv = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int i = 0; i < 100; ++i) csv += "n,64000,1024,2,T4\n";
  const auto fleet = FleetOfOpenb(csv, 0);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  ASSERT_EQ(fleet->clusters.size(), 6u);
  EXPECT_EQ(GpusOf(*fleet), 200u);
  EXPECT_EQ(fleet->clusters[0].nodes[0].count, 34u);
  EXPECT_EQ(fleet->clusters[5].nodes[0].count, 4u);
  EXPECT_EQ(fleet->clusters[0].nodes[0].gpu_type, "t4");
  EXPECT_EQ(GpusOf(*FleetOfOpenb(csv, 50)), 100u);
}

TEST(StretchToLoadTest, MovesArrivalsUntilTheJobsAskForThatPart) {
  const auto fleet = ReadFleet("clusters: [{name: a, nodes: [{count: 1, cpus: 8, gpus: t4:2}]}]");
  ASSERT_TRUE(fleet.ok());
  Trace trace;
  for (const int second : {0, 10}) {
    TraceJob& job = trace.jobs.emplace_back();
    job.arrival = absl::Seconds(second);
    job.run_time = absl::Seconds(100);
    job.gpu_millis = 1000;
  }
  ASSERT_TRUE(StretchToLoad(0.5, *fleet, &trace).ok());
  // 200 GPU seconds are half of what two GPUs give in 200 s.
  EXPECT_EQ(trace.jobs[1].arrival, absl::Seconds(200));
  trace.jobs[1].arrival = absl::ZeroDuration();
  EXPECT_EQ(StretchToLoad(0.5, *fleet, &trace).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace muster::replay
