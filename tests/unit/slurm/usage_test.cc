// Tests what Slurm's accounting says of the usage of jobs: as sacct 22.05 prints it and slurmrestd
// answers (recorded, shortened).
#include "agents/slurm/usage.h"

#include <nlohmann/json.hpp>

#include "agents/slurm/rest_json.h"
#include "agents/slurm/rest_rows.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::string LineOf(std::vector<std::string> columns, const std::string& end = "1795821137") {
  columns.push_back(end);
  return fmt::format("{}\n", fmt::join(columns, "\037"));
}

TEST(ParseUsageTest, StepsAddTheirMemoryToTheirJob) {
  const auto rows = ParseUsage(
      LineOf({"1", "1", "k7m2-1-1", "FAILED", "00:00.060", "00:00.212", ""}) +
      LineOf({"1.batch", "1.batch", "batch", "FAILED", "00:00.013", "00:00.007", "12709888"}) +
      LineOf(
          {"1.0", "1.0", "python3", "CANCELLED by 1001", "00:00.047", "00:00.204", "156655616"}) +
      LineOf({"3_2", "4", "k7m2-a3", "COMPLETED", "00:00:00", "00:00.002", ""}) +
      LineOf({"3_2.batch", "4.batch", "batch", "COMPLETED", "00:00:00", "00:00.002", ""}));
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->at(0).job_id, JobId{1});
  EXPECT_TRUE(rows->at(0).has_ended);
  const v1::ResourceUsage usage = *rows->at(0).Usage();
  EXPECT_EQ(usage.user_cpu_time().nanos(), 60'000'000);
  EXPECT_EQ(usage.system_cpu_time().nanos(), 212'000'000);
  EXPECT_EQ(usage.max_rss_bytes(), 156655616u);
  EXPECT_EQ(rows->at(1).job_id, (JobId{3, 2}));
  EXPECT_EQ(rows->at(1).Usage()->max_rss_bytes(), 0u) << "it was too short for a sample";
}

TEST(ParseUsageTest, TheRestOfAnArrayIsReadAndATasksOwnLineCounts) {
  const std::string rest =
      LineOf({"20_[5-2403:2%4]", "20", "one", "CANCELLED by 1001", "00:00:00", "00:00:00", ""});
  const std::string task =
      LineOf({"20_5", "21", "one", "COMPLETED", "00:00:00", "00:00.002", ""}) +
      LineOf({"20_5.batch", "21.batch", "batch", "COMPLETED", "00:00:00", "00:00.002", "4096"});
  for (const std::string& output : {rest + task, task + rest}) {
    const auto rows = ParseUsage(output);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->size(), 1200u);
    EXPECT_EQ(rows->front().job_id, (JobId{20, 5}));
    EXPECT_EQ(rows->front().max_rss_bytes, 4096u);
    EXPECT_EQ(rows->back().job_id, (JobId{20, 2403}));
    EXPECT_FALSE(rows->back().Usage().has_value());
  }
}

TEST(ParseUsageTest, AJobHasEndedWhenItsStepsHave) {
  const auto ended = [](const std::string& job, const std::string& step) {
    return ParseUsage(LineOf({"1", "1", "a", job, "00:00:00", "00:00:00", ""}) +
                      LineOf({"1.0", "1.0", "x", step, "00:00:00", "00:00:00", ""}))
        ->front()
        .has_ended;
  };
  EXPECT_TRUE(ended("COMPLETED", "COMPLETED"));
  EXPECT_FALSE(ended("COMPLETED", "RUNNING"));
  EXPECT_FALSE(ended("RUNNING", "COMPLETED"));
}

TEST(ParseUsageTest, AJobWithoutItsEndIsStillToCome) {
  const auto rows =
      ParseUsage(LineOf({"1", "1", "a", "COMPLETED", "00:00:00", "00:00:00", ""}, "Unknown"));
  EXPECT_FALSE(rows->front().has_ended) << "as while slurmdbd catches up";
}

TEST(ParseUsageTest, NothingButZerosIsNotCounted) {
  const auto rows = ParseUsage(LineOf({"1", "1", "a", "COMPLETED", "00:00:00", "00:00:00", ""}));
  EXPECT_FALSE(rows->front().Usage().has_value());
}

TEST(ParseUsageTest, ALineThatCannotBeReadSpoilsTheAnswer) {
  EXPECT_FALSE(ParseUsage("1|1|a|COMPLETED|00:00:00|00:00:00||1\n").ok());
  EXPECT_FALSE(ParseUsage(LineOf({"1", "1", "a", "COMPLETED", "soon", "00:00:00", ""})).ok());
  EXPECT_FALSE(ParseUsage(LineOf({"1", "1", "a", "COMPLETED", "00:00:00", "00:00:00", "1K"})).ok());
  EXPECT_FALSE(
      ParseUsage(LineOf({"1.0", "1.0", "a", "COMPLETED", "00:00:00", "00:00:00", ""})).ok())
      << "a step without its job";
}

TEST(ParseCpuTimeTest, ReadsEachForm) {
  EXPECT_EQ(ParseCpuTime("00:00.060"), absl::Milliseconds(60));
  EXPECT_EQ(ParseCpuTime("59:01.999"), absl::Minutes(59) + absl::Milliseconds(1999));
  EXPECT_EQ(ParseCpuTime("00:00:07"), absl::Seconds(7));
  EXPECT_EQ(ParseCpuTime("02:03:04"), absl::Hours(2) + absl::Seconds(184));
  EXPECT_EQ(ParseCpuTime("1-02:03:04"), absl::Hours(26) + absl::Seconds(184));
  for (const char* none : {"", "7", "00:00.7", "a:b", "1:2:3:4", "x-00:00:00", "-1:00"})
    EXPECT_EQ(ParseCpuTime(none), std::nullopt) << none;
}

TEST(UsageArgumentsTest, AskForStepsOfAllJobsAtOnce) {
  const auto words = UsageArguments({{4}, {5, 1}, {5, 2}}, absl::FromUnixSeconds(1000));
  EXPECT_THAT(words, Contains("--jobs=4,5"));
  EXPECT_THAT(words, Contains("--starttime=uts1000"));
  EXPECT_THAT(words, Not(Contains("--allocations")));
}

TEST(RestUsageTest, StepsAreAddedUp) {
  const auto answer = ParseRestJson(R"j({"errors": [], "jobs": [
      {"job_id": 1, "name": "k7m2-1-1", "user": "ada", "nodes": "n1", "state": {"current": "FAILED"},
       "time": {"start": 1, "end": 2, "user": {"seconds": 0, "microseconds": 0}},
       "exit_code": {"status": "SUCCESS", "return_code": 0},
       "steps": [
         {"state": "FAILED", "time": {"system": {"seconds": 0, "microseconds": 7861},
                                      "user": {"seconds": 1, "microseconds": 13842}},
          "tres": {"requested": {"max": [{"type": "cpu", "count": 120},
                                         {"type": "mem", "count": 12709888}]}}},
         {"state": ["CANCELLED"], "time": {"system": {"seconds": 0, "microseconds": 204851},
                                           "user": {"seconds": 0, "microseconds": 47139}},
          "tres": {"requested": {"max": [{"type": "mem", "count": 156655616}]}}}]},
      {"job_id": 2, "name": "b", "user": "bob", "state": {"current": "FAILED"}}]})j");
  ASSERT_TRUE(answer.has_value());
  const auto rows = RestUsage(*answer, "ada");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().job_id, JobId{1});
  EXPECT_TRUE(rows->front().has_ended);
  const v1::ResourceUsage usage = *rows->front().Usage();
  EXPECT_EQ(usage.user_cpu_time().seconds(), 1);
  EXPECT_EQ(usage.user_cpu_time().nanos(), 60'981'000);
  EXPECT_EQ(usage.system_cpu_time().nanos(), 212'712'000);
  EXPECT_EQ(usage.max_rss_bytes(), 156655616u);
}

}  // namespace
}  // namespace muster::slurm
