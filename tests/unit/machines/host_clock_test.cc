// Hosts whose clocks are not the agent's.
#include "agents/machines/remote/host_clock.h"

#include "gtest/gtest.h"

namespace muster::machines {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

HostReport ReportOf(absl::Time time) {
  return {.boot_id = "b", .time_us = absl::ToUnixMicros(time), .runs = {}};
}

TEST(HostClockTest, WhatTheWayMayHaveTakenIsNoDifference) {
  HostClock clock;
  clock.Hear(ReportOf(kNow), kNow - absl::Seconds(9), kNow + absl::Seconds(2));
  EXPECT_EQ(clock.ahead(), absl::ZeroDuration());
}

TEST(HostClockTest, AClockIsAheadOrBehindByTheLeastThatExplainsItsTimes) {
  HostClock clock;
  clock.Hear(ReportOf(kNow + absl::Seconds(60)), kNow - absl::Seconds(1), kNow);
  EXPECT_EQ(clock.ahead(), absl::Seconds(60));
  clock.Hear(ReportOf(kNow - absl::Seconds(60)), kNow, kNow + absl::Seconds(10));
  EXPECT_EQ(clock.ahead(), -absl::Seconds(60)) << "somebody has set it";
}

TEST(HostClockTest, AReportThatHasWaitedKeepsWhatIsKnown) {
  HostClock clock;
  clock.Hear(ReportOf(kNow - absl::Seconds(5)), kNow, kNow);
  clock.Hear(ReportOf(kNow + absl::Seconds(5)), kNow, kNow + absl::Seconds(10));
  EXPECT_EQ(clock.ahead(), -absl::Seconds(5));
}

TEST(HostClockTest, TimesAreToldByTheAgentsClock) {
  HostClock clock;
  clock.Hear(ReportOf(kNow + absl::Seconds(2)), kNow, kNow);
  HostReport report;
  report.runs.push_back({.run_key = "k-1-1",
                         .stage = HostStage::kEnded,
                         .started = Started{.process = {}, .time_us = 3'000'000},
                         .exit = ExitRecord{.start_us = 3'000'000, .end_us = 5'000'000}});
  report.runs.push_back(
      {.run_key = "k-2-1", .stage = HostStage::kEnded, .exit = ExitRecord{.end_us = 5'000'000}});
  clock.Correct(&report);
  EXPECT_EQ(report.runs[0].started->time_us, 1'000'000);
  EXPECT_EQ(report.runs[0].exit->start_us, 1'000'000);
  EXPECT_EQ(report.runs[0].exit->end_us, 3'000'000);
  EXPECT_EQ(report.runs[1].exit->start_us, 0) << "it has not started";
}

}  // namespace
}  // namespace muster::machines
