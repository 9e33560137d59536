#include "broker/replay/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::replay {
namespace {

using ::testing::HasSubstr;

TEST(ReadTraceTest, ReadsTheColumnsThatThereAreAndCountsFromTheFirstArrival) {
  const auto trace = ReadTrace(TraceFormat::kMuster,
                               "arrival_s,run_time_s,gpus,memory,project\n"
                               "100,60,a100:2,16Gi,Vision Lab\n"
                               "40,30,,,\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs[0].arrival, absl::ZeroDuration());
  EXPECT_EQ(trace->jobs[0].run_time, absl::Seconds(30));
  EXPECT_EQ(trace->jobs[0].project, "default");
  EXPECT_EQ(trace->jobs[1].arrival, absl::Seconds(60));
  EXPECT_EQ(trace->jobs[1].gpu_millis, 2000u);
  EXPECT_EQ(trace->jobs[1].gpu_type, "a100");
  EXPECT_EQ(trace->jobs[1].memory_bytes, 16ull << 30);
  EXPECT_EQ(trace->jobs[1].project, "vision-lab");
}

TEST(ReadTraceTest, NamesLineColumnAndValueOfWhatItCannotRead) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"arrival_s\n1\n", "no column \"run_time_s\""},
      {"arrival_s,run_time_s\n1,2\n3\n", "line 3 has 1 fields"},
      {"arrival_s,run_time_s\n1,long\n", "line 2: run_time_s is \"long\""},
      {"arrival_s,run_time_s\n1,-5\n", "line 2: run_time_s is \"-5\""},
      {"arrival_s,run_time_s,gpus\n1,2,a100:x\n", "line 2: gpus is \"a100:x\""},
      {"arrival_s,run_time_s,nodes\n1,2,0\n", "line 2: nodes is \"0\""},
      {"", "no column"},
  };
  for (const auto& bad : cases) {
    const auto trace = ReadTrace(TraceFormat::kMuster, bad.text);
    EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_THAT(std::string(trace.status().message()), HasSubstr(bad.says));
  }
}

TEST(ReadTraceTest, LeavesOutJobsThatNeverRan) {
  const auto trace = ReadTrace(TraceFormat::kMuster, "arrival_s,run_time_s\n1,0\n2,5\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(trace->left_out, 1u);
}

TEST(ReadTraceTest, DividesTheTotalsOfSacctByTheNodes) {
  const auto trace =
      ReadTrace(TraceFormat::kSacct,
                "JobID|JobName|User|Account|Submit|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES\n"
                "7|train|ada|vision|2026-01-31T12:00:00|3600|120|2|"
                "billing=64,cpu=64,gres/gpu:a100=8,mem=256G,node=2\n"
                "8|idle|ada|vision|2026-01-31T12:00:10|0|UNLIMITED|1|cpu=1,mem=1G,node=1\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->jobs.size(), 1u);
  const TraceJob& job = trace->jobs[0];
  EXPECT_EQ(job.nodes, 2u);
  EXPECT_EQ(job.cpu_millis, 32000u);
  EXPECT_EQ(job.gpu_millis, 4000u);
  EXPECT_EQ(job.gpu_type, "a100");
  EXPECT_EQ(job.memory_bytes, 128ull << 30);
  EXPECT_EQ(job.time_limit, absl::Hours(2));
  EXPECT_EQ(job.project, "vision");
  EXPECT_EQ(trace->left_out, 1u);
}

TEST(ReadTraceTest, ReadsPartsOfGpusOfOpenb) {
  auto trace = ReadTrace(
      TraceFormat::kOpenb,
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time\n"
      "a,6000,12288,1,460,,LS,10,70\n"
      "b,8000,1024,4,1000,V100M16|T4,BE,20,50\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs[0].gpu_millis, 460u);
  EXPECT_EQ(trace->jobs[1].gpu_millis, 4000u);
  EXPECT_EQ(trace->jobs[1].gpu_type, "V100M16");
  AskForWholeGpus(&*trace);
  EXPECT_EQ(trace->jobs[0].gpu_millis, 1000u);
  LeaveOutLongerThan(absl::Seconds(30), &*trace);
  ASSERT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(trace->jobs[0].name, "b");
  EXPECT_EQ(trace->jobs[0].arrival, absl::ZeroDuration());
}

}  // namespace
}  // namespace muster::replay
