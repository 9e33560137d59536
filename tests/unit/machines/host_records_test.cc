// Tests the messages between agent and hosts, and the agent's records about hosts.
#include <filesystem>
#include <fstream>

#include "agents/machines/host_report.h"
#include "agents/machines/remote/launch_record.h"
#include "agents/machines/remote/rank_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::machines {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(HostReportTest, AReportArrivesAsItWasSent) {
  HostReport sent = {.boot_id = "b", .time_us = 1234, .runs = {}};
  sent.runs.push_back({.run_key = "k-1-1", .stage = HostStage::kAbsent});
  sent.runs.push_back(
      {.run_key = "k-2-1",
       .stage = HostStage::kStarted,
       .started = Started{.process = {.pid = 9, .start_ticks = 1, .boot_id = "b"}, .time_us = 77}});
  const ExitRecord exit = {.end = ExitRecord::End::kExited, .status = 3, .path = "a=b\nc"};
  sent.runs.push_back({.run_key = "k-3-1", .stage = HostStage::kEnded, .exit = exit});
  sent.runs.push_back({.run_key = "k-4-1", .stage = HostStage::kVanished, .detail = "gone"});
  const auto got = HostReport::Decode(sent.Encode());
  ASSERT_TRUE(got.has_value());
  ASSERT_EQ(got->runs.size(), 4);
  EXPECT_EQ(got->boot_id, "b");
  EXPECT_EQ(got->time_us, 1234);
  EXPECT_EQ(got->runs[0].stage, HostStage::kAbsent);
  EXPECT_EQ(got->runs[1].started->time_us, 77);
  EXPECT_EQ(got->runs[2].exit->status, 3);
  EXPECT_EQ(got->runs[2].exit->path, "a=b\nc");
  EXPECT_EQ(got->runs[3].detail, "gone");
}

TEST(HostReportTest, AReportThatIsCutIsNone) {
  const std::string whole =
      HostReport{.boot_id = "b", .runs = {{.run_key = "k-1-1", .stage = HostStage::kClaimed}}}
          .Encode();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(HostReport::Decode(whole.substr(0, size)).has_value()) << size;
}

TEST(HostReportTest, EveryStageHasALetterOfItsOwn) {
  for (const HostStage stage : {HostStage::kAbsent, HostStage::kClaimed, HostStage::kStarted,
                                HostStage::kEnded, HostStage::kVanished}) {
    EXPECT_EQ(StageOf(LetterOf(stage)), stage);
  }
  EXPECT_FALSE(StageOf('x').has_value());
}

PlacedRank Placed(const std::string& host, const std::map<uint32_t, uint32_t>& gpus,
                  const std::string& devices) {
  PlacedRank rank;
  rank.host = host;
  rank.directory = "/home/x/" + host;
  rank.node.cores = 2;
  rank.node.memory_bytes = 5;
  rank.node.gpus = gpus;
  rank.devices = devices;
  return rank;
}

TEST(LaunchRecordTest, WhatIsWrittenDownIsReadAgain) {
  const hosts::TempDir dir;
  const LaunchRecord record(dir / "k-1-1");
  agent::v1::Assignment assignment;
  assignment.set_run_key("k-1-1");
  ASSERT_TRUE(record.Create(assignment, 42).ok());
  const std::vector<PlacedRank> placement = {Placed("a", {{0, 1000}, {3, 500}}, "GPU-a,GPU-d"),
                                             Placed("b", {}, "")};
  ASSERT_TRUE(record.Place(placement).ok());
  ASSERT_TRUE(record.SetBegun({1}).ok());
  const auto files = record.Read();
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->order, 42);
  EXPECT_EQ(files->assignment->run_key(), "k-1-1");
  EXPECT_EQ(files->placement, placement);
  EXPECT_THAT(files->begun, ElementsAre(1));
}

TEST(LaunchRecordTest, ARankWithoutTheGpusThatItWasGivenIsRefusedWithTheirNames) {
  const PlacedRank rank = Placed("gpu1", {{0, 1000}, {3, 500}}, "GPU-a,GPU-d");
  const Gpu a = {0, "h100", "GPU-a"};
  EXPECT_TRUE(CheckDevices(rank, {.gpus = {a, {3, "h100", "GPU-d"}}}).ok());
  const absl::Status gone = CheckDevices(rank, {.gpus = {a}});
  EXPECT_TRUE(absl::IsFailedPrecondition(gone));
  EXPECT_EQ(gone.message(), "host gpu1 has no longer what the run was given there: GPU 3 (GPU-d)");
  EXPECT_EQ(CheckDevices(rank, {.gpus = {a, {3, "h100", "GPU-e"}}}).message(),
            "host gpu1 has no longer what the run was given there: GPU 3 (GPU-d), where now is "
            "GPU-e");
  // An older agent has written down numbers only.
  const PlacedRank old = Placed("gpu1", {{0, 1000}}, "");
  EXPECT_TRUE(CheckDevices(old, {.gpus = {a}}).ok());
  EXPECT_FALSE(CheckDevices(old, {}).ok());
}

TEST(LaunchRecordTest, AnAssignmentThatAPowerFailureHasCutIsNone) {
  const hosts::TempDir dir;
  const LaunchRecord record(dir / "k-1-1");
  agent::v1::Assignment assignment;
  assignment.set_run_key("k-1-1");
  ASSERT_TRUE(record.Create(assignment, 42).ok());
  std::ofstream(dir / "k-1-1/assignment", std::ios::trunc) << "42 7\nk";
  const auto files = record.Read();
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->assignment, nullptr);
}

TEST(LaunchRecordTest, WhyRanksWereRefusedIsKept) {
  const hosts::TempDir dir;
  const LaunchRecord record(dir / "k-1-1");
  ASSERT_TRUE(record.Create({}, 1).ok());
  EXPECT_TRUE(record.Read()->refused.empty());
  v1::Failure failure;
  failure.set_failure_class(v1::FAILURE_CLASS_CONFIG);
  failure.set_message(std::string("no \0 \n such input", 17));
  ASSERT_TRUE(record.SetRefused({{1, failure}}).ok());
  const auto files = record.Read();
  ASSERT_EQ(files->refused.size(), 1);
  EXPECT_EQ(files->refused.at(1).SerializeAsString(), failure.SerializeAsString());
  EXPECT_GT(files->refused_at, absl::InfinitePast());
  record.RemoveBookkeeping();
  EXPECT_TRUE(record.Read()->refused.empty());
}

TEST(LaunchRecordTest, OnlyThePlacementOutlivesTheRun) {
  const hosts::TempDir dir;
  const LaunchRecord record(dir / "k-1-1");
  ASSERT_TRUE(record.Create({}, 1).ok());
  ASSERT_TRUE(record.Place({{"a", "/a", {}}}).ok());
  record.RemoveBookkeeping();
  EXPECT_EQ(record.Read()->assignment, nullptr);
  EXPECT_EQ(record.Read()->placement.size(), 1);
  std::ofstream(dir / "k-1-1/placement.7.tmp") << "of an agent that was killed while it wrote";
  record.Remove();
  EXPECT_FALSE(std::filesystem::exists(record.path()));
}

agent::v1::Assignment TwoNodes() {
  agent::v1::Assignment assignment;
  assignment.set_run_key("k-1-1");
  assignment.mutable_spec()->set_nodes(2);
  assignment.mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
  return assignment;
}

TEST(RankSpecTest, EachRankKnowsItsPlaceAndTheOthers) {
  const RunSpec spec =
      RankSpec(TwoNodes(), "lab", "/d", 1, {"10.0.0.1", "10.0.0.2"}, {absl::Seconds(3)});
  for (const char* variable :
       {"NODE_RANK=1", "SKYPILOT_NODE_RANK=1", "MASTER_ADDR=10.0.0.1", "WORLD_SIZE=2",
        "SKYPILOT_NODE_IPS=10.0.0.1\n10.0.0.2", "MUSTER_RUN_DIR=/d"}) {
    EXPECT_THAT(spec.environment, Contains(variable));
  }
  EXPECT_EQ(spec.grace_ms, 3000);
}

TEST(RankSpecTest, TheUsersOwnVariablesWin) {
  agent::v1::Assignment assignment = TwoNodes();
  (*assignment.mutable_spec()->mutable_env())["MASTER_ADDR"] = "mine";
  const RunSpec spec = RankSpec(assignment, "lab", "/d", 0, {"x", "y"}, {absl::Seconds(3)});
  EXPECT_THAT(spec.environment, Contains("MASTER_ADDR=mine"));
  EXPECT_THAT(spec.environment, Not(Contains("MASTER_ADDR=x")));
}

TEST(RankSpecTest, ResultsAreInTheRunsDirectoryOnItsHostUnlessTheJobSays) {
  const auto own = OnHost(TwoNodes(), "lab", "/home/x/lab/gpu1/runs/k-1-1");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->spec().results_directory(), "/home/x/lab/gpu1/runs/k-1-1/work/results");
}

}  // namespace
}  // namespace muster::machines
