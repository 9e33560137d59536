// Tests the parts of the verbs for Slurm's users: command lines, lists of nodes, formats and times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/job_record.h"
#include "clients/cli/slurm/job_resources.h"
#include "clients/cli/slurm/sacct_time.h"
#include "clients/cpp/slurm/options.h"
#include "contract/task_array.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::ReadCommandWords;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array kOptions = {Option{"user", 'u'},
                                 Option{"users-all", 'a', Option::Argument::kNone},
                                 Option{"steps", 's', Option::Argument::kOptional}};

TEST(ReadCommandWordsTest, OptionsAndOperandsStandInAnyOrder) {
  const auto read = ReadCommandWords(kOptions, {"7", "-u", "ada", "8", "-as3", "--", "-u"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->operands, ElementsAre("7", "8", "-u"));
  EXPECT_EQ(read->options.Find("user")->value, "ada");
  EXPECT_EQ(read->options.Find("steps")->value, "3");
  EXPECT_NE(read->options.Find("users-all"), nullptr);
}

TEST(ReadCommandWordsTest, WhatTheTableDoesNotHaveIsRefused) {
  EXPECT_THAT(std::string(ReadCommandWords(kOptions, {"--nosuch=1"}).status().message()),
              HasSubstr("unrecognized option --nosuch=1"));
  EXPECT_THAT(std::string(ReadCommandWords(kOptions, {"-ax"}).status().message()),
              HasSubstr("unrecognized option -x"));
  EXPECT_THAT(std::string(ReadCommandWords(kOptions, {"--use"}).status().message()),
              HasSubstr("ambiguous"));
  EXPECT_THAT(std::string(ReadCommandWords(kOptions, {"-u"}).status().message()),
              HasSubstr("requires an argument"));
}

TEST(HostListTest, NumbersGoTogether) {
  EXPECT_EQ(HostList({}), "");
  EXPECT_EQ(HostList({"n3", "n1", "n2", "login", "n7"}), "login,n[1-3,7]");
  EXPECT_EQ(HostList({"gpu01", "gpu02", "gpu10"}), "gpu10,gpu[01-02]");
  EXPECT_EQ(HostList({"a1b2", "a1b3", "a2b1"}), "a1b[2-3],a2b1");
  EXPECT_EQ(HostList({"7"}), "7");
}

TEST(HostListTest, ListsAreReadAsTheyAreWritten) {
  const std::vector<std::string> hosts = {"n1", "n2", "n7", "rack08-n", "rack09-n", "login"};
  EXPECT_EQ(HostsOf("n[1-2,7],rack[08-09]-n,login"), hosts);
  EXPECT_EQ(HostsOf(""), std::vector<std::string>());
  for (const char* list : {"n[1", "n1]", "n[a-b]", "n[2-1]", "n[1][2]", "n[0-99999999]"})
    EXPECT_EQ(HostsOf(list), std::nullopt) << list;
}

TEST(ColumnFormatTest, WidthsJustifyAndCut) {
  std::vector<std::string> unknown;
  const auto format = ParseColumnFormat("<%.5i %3j|%#t %T>", "ijtT", "", &unknown);
  EXPECT_THAT(unknown, ElementsAre());
  EXPECT_EQ(format.Lines({{"7", "train", "R", "RUNNING"}, {"123456", "é", "CD", ""}}, false),
            "<    7 tra|R  RUNNING>\n<12345 é  |CD >\n");
  EXPECT_EQ(ParseColumnFormat("%.2i", "i", "i", &unknown).Lines({{"JOB"}, {"123"}}, true),
            "JO\n123\n");
}

TEST(ColumnFormatTest, WhatIsNoColumnStaysAsItIs) {
  std::vector<std::string> unknown;
  const auto format = ParseColumnFormat("%i %.3K>", "ij", "", &unknown);
  EXPECT_EQ(format.Lines({{"7"}}, false), "7 %.3K>\n");
  EXPECT_THAT(unknown, ElementsAre(".3K"));
  EXPECT_EQ(ParseColumnFormat("text", "i", "", &unknown).Lines({{}, {}}, true), "text\ntext\n");
}

TEST(TaskRangesTest, AreWrittenAsSqueueWritesThem) {
  EXPECT_EQ(contract::TaskRanges({3}), "3");
  EXPECT_EQ(contract::TaskRanges({1, 2, 3, 5, 9, 12}), "1-3,5,9,12");
  EXPECT_EQ(contract::TaskRanges({1, 3, 5, 7, 9, 11}), "1,3,5,7,9,11");
  EXPECT_EQ(contract::TaskRanges({0, 5, 10, 15, 20}), "0,5,10,15,20");
  EXPECT_EQ(contract::TaskRanges({0, 5, 10, 15, 20, 25}), "0-25:5");
  EXPECT_EQ(contract::TaskRanges({1, 3, 5, 7, 9, 11, 13}), "1-13:2");
}

TEST(JobRecordTest, TimesAreWrittenAsSlurmWritesThem) {
  const absl::Duration long_time = absl::Hours(26) + absl::Minutes(3) + absl::Seconds(4);
  EXPECT_EQ(SqueueTime(long_time), "1-02:03:04");
  EXPECT_EQ(SqueueTime(absl::Hours(2)), "2:00:00");
  EXPECT_EQ(SqueueTime(absl::Seconds(5)), "0:05");
  EXPECT_EQ(SacctTime(long_time), "1-02:03:04");
  EXPECT_EQ(SacctTime(absl::Seconds(5)), "00:00:05");
}

TEST(JobRecordTest, BytesAreWrittenAsSacctWritesThem) {
  const std::pair<uint64_t, const char*> cases[] = {{0, ""},
                                                    {500, "500"},
                                                    {1025, "1025"},
                                                    {512 * 3, "1.50K"},
                                                    {uint64_t{12412} << 10, "12412K"},
                                                    {uint64_t{97792} << 10, "95.50M"},
                                                    {uint64_t{200} << 20, "200M"},
                                                    {uint64_t{2560} << 20, "2.50G"},
                                                    {uint64_t{3} << 40, "3T"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(SacctBytes(bytes), text);
}

TEST(JobRecordTest, TimesAreRelativeToTodayIfAskedFor) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  const auto at = [&](int month, int day) {
    return absl::FromCivil(absl::CivilSecond(2026, month, day, 9, 5, 7), zone);
  };
  const absl::Time now = at(11, 21);
  const std::pair<absl::Time, const char*> cases[] = {
      {at(11, 21), "09:05:07"},
      {at(11, 20), "Ystday 09:05"},
      {at(11, 22), "Tomorr 09:05"},
      {at(11, 25), "Wed 09:05"},
      {at(11, 3), "3 Nov 09:05"},
      {at(12, 24), "24 Dec 09:05"},
      {at(11, 21) - absl::Hours(24 * 400), "17 Oct 2025"}};
  for (const auto& [time, text] : cases) EXPECT_EQ(TimeText(time, "relative", now), text);
  EXPECT_EQ(TimeText(now, "standard", now), "2026-11-21T09:05:07");
  EXPECT_EQ(TimeText(now, "%H:%M", now), "09:05");
}

TEST(JobRecordTest, StatesAreSlurms) {
  const auto job = std::make_shared<v1::Job>();
  const JobRecord record = MakeRecord(job, nullptr);
  job->set_state(v1::JOB_STATE_FAILED);
  const std::pair<v1::FailureClass, const char*> classes[] = {
      {v1::FAILURE_CLASS_PROGRAM, "FAILED"},
      {v1::FAILURE_CLASS_TIMEOUT, "TIMEOUT"},
      {v1::FAILURE_CLASS_OOM, "OUT_OF_MEMORY"},
      {v1::FAILURE_CLASS_INFRA, "NODE_FAIL"},
      {v1::FAILURE_CLASS_PREEMPTED, "PREEMPTED"}};
  for (const auto& [failure_class, word] : classes) {
    job->mutable_failure()->set_failure_class(failure_class);
    EXPECT_EQ(StateWord(record), word);
  }
  job->set_state(v1::JOB_STATE_RUNNING);
  EXPECT_EQ(StateWord(record), "RUNNING");
  job->add_runs()->set_state(v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateWord(record), "COMPLETING");
  EXPECT_EQ(StateCode("COMPLETING"), "CG");
  EXPECT_EQ(FindState("oom"), "OUT_OF_MEMORY");
  EXPECT_EQ(FindState("bogus"), "");
}

TEST(JobRecordTest, CoresAreCountedForTasksThatSlurmSpreadsToo) {
  v1::JobSpec spec;
  spec.set_nodes(2);
  spec.mutable_resources()->set_cpu_millis(1500);
  EXPECT_EQ(TotalCpus(spec), 4u);
  spec.mutable_slurm()->add_extra_options("--ntasks=64");
  EXPECT_EQ(TotalCpus(spec), 128u);
}

TEST(SacctTimeTest, FormsOfSacctAreRead) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  const auto at = [&](int day, int hour, int minute) {
    return absl::FromCivil(absl::CivilSecond(2026, 11, day, hour, minute, 0), zone);
  };
  const absl::Time now = at(21, 10, 30);
  const std::pair<const char*, absl::Time> cases[] = {
      {"now", now},
      {"today", at(21, 0, 0)},
      {"noon", at(21, 12, 0)},
      {"now-2hours", at(21, 8, 30)},
      {"now-1day", now - absl::Hours(24)},
      {"now+60", at(21, 10, 31)},
      {"2026-11-20", at(20, 0, 0)},
      {"2026-11-20T03:22", at(20, 3, 22)},
      {"11/20", at(20, 0, 0)},
      {"11/20/26-03:22", at(20, 3, 22)},
      {"03:22", at(21, 3, 22)},
      {"midnight", at(21, 0, 0)},
      {"fika", at(21, 15, 0)},
      {"teatime", at(21, 16, 0)},
      {"tomorrow", at(22, 0, 0)},
      {"7:20pm", at(21, 19, 20)},
      {"7:20 PM", at(21, 19, 20)},
      {"12:30am", at(21, 0, 30)},
      {"1120", at(20, 0, 0)},
      {"112026", at(20, 0, 0)},
      {"11.20", at(20, 0, 0)},
      {"11.20.26", at(20, 0, 0)},
      {"2026-11-20 19:00", at(20, 19, 0)},
      {"2026-11-20 7:00pm", at(20, 19, 0)},
      {"19:00-11/20/26", at(20, 19, 0)},
      {"noon 11/20", at(20, 12, 0)},
      {"11/29", at(29, 0, 0)},
      {"12/20", absl::FromCivil(absl::CivilDay(2025, 12, 20), zone)},
  };
  for (const auto& [text, time] : cases) {
    const auto read = ParseSacctTime(text, now);
    ASSERT_TRUE(read.ok()) << text << read.status();
    EXPECT_EQ(*read, time) << text;
  }
  for (const char* text : {"", "soon", "now-", "now-x", "now-5lightyears", "2026-13-01",
                           "yesterday", "elevenses", "7pm", "27.11.26", "2026-11-27T10", "20261127",
                           "13:00pm", "24:00", "2026-11-20 2026-11-21"}) {
    EXPECT_FALSE(ParseSacctTime(text, now).ok()) << text;
  }
}

// sacct 22.05 has printed these.
TEST(SlurmWordsTest, ProcessorTimesAndBytesAreThoseOfSacct) {
  EXPECT_EQ(CpuTimeText(absl::ZeroDuration()), "00:00:00");
  EXPECT_EQ(CpuTimeText(absl::Microseconds(2'500)), "00:00.002");
  EXPECT_EQ(CpuTimeText(absl::Seconds(62)), "00:01:02");
  EXPECT_EQ(CpuTimeText(absl::Milliseconds(62'345)), "01:02.345");
  EXPECT_EQ(CpuTimeText(absl::Hours(2) + absl::Milliseconds(1'500)), "02:00:01");
  EXPECT_EQ(CpuTimeText(absl::Hours(26) + absl::Seconds(184)), "1-02:03:04");
  EXPECT_EQ(SacctBytes(0), "");
  EXPECT_EQ(SacctBytes(12709888), "12412K");
  EXPECT_EQ(SacctBytes(uint64_t{200} << 20), "200M");
  EXPECT_EQ(SacctBytes(1023), "1023");
}

}  // namespace
}  // namespace muster::cli
