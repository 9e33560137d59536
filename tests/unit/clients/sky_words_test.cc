// Jobs in SkyPilot's words, files of variables, and lines with labels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "clients/cli/labelled_lines.h"
#include "clients/cli/sky/env_file.h"
#include "clients/cli/sky/job_words.h"
#include "tests/unit/clients/fake_broker.h"

namespace muster::cli::sky {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

v1::Job Failed(v1::FailureClass kind, const std::string& message) {
  v1::Job job = client::JobInState(1, v1::JOB_STATE_FAILED);
  job.mutable_failure()->set_failure_class(kind);
  job.mutable_failure()->set_message(message);
  return job;
}

TEST(SkyJobWords, EachStateHasSkyPilotsWordAndMustersBesideIt) {
  const struct {
    v1::JobState state;
    v1::RunState run;
    std::string word;
    std::string muster;
    int code;
  } rows[] = {
      {v1::JOB_STATE_QUEUED, v1::RUN_STATE_UNSPECIFIED, "PENDING", "QUEUED", 101},
      {v1::JOB_STATE_PENDING, v1::RUN_STATE_PENDING, "PENDING", "PENDING", 101},
      {v1::JOB_STATE_PENDING, v1::RUN_STATE_STARTING, "SETTING_UP", "STARTING", 101},
      {v1::JOB_STATE_RUNNING, v1::RUN_STATE_RUNNING, "RUNNING", "RUNNING", 101},
      {v1::JOB_STATE_SUSPENDED, v1::RUN_STATE_SUSPENDED, "RUNNING", "SUSPENDED", 101},
      {v1::JOB_STATE_SUCCEEDED, v1::RUN_STATE_SUCCEEDED, "SUCCEEDED", "SUCCEEDED", 0},
      {v1::JOB_STATE_CANCELED, v1::RUN_STATE_CANCELED, "CANCELLED", "CANCELED", 103},
      {v1::JOB_STATE_FAILED, v1::RUN_STATE_LOST, "FAILED_DRIVER", "FAILED", 100},
  };
  for (const auto& row : rows) {
    v1::Job job = client::JobInState(1, row.state);
    job.mutable_runs(0)->set_state(row.run);
    EXPECT_EQ(StatusWord(job), row.word);
    EXPECT_EQ(MusterWords(job), row.muster);
    EXPECT_EQ(CodeOf(job), row.code) << row.word;
  }
}

TEST(SkyJobWords, AJobIsHeldOnceItsClusterSaysSo) {
  v1::Job job = client::JobInState(1, v1::JOB_STATE_PENDING);
  job.set_held(true);
  *job.mutable_runs(0)->mutable_state_reason() = client::Because("no node is free");
  EXPECT_EQ(MusterWords(job), "PENDING (asked to hold)");
  *job.mutable_runs(0)->mutable_state_reason() =
      client::Because("held: it starts once it is released", v1::STATE_REASON_CODE_HELD);
  EXPECT_EQ(MusterWords(job), "PENDING (held)");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.clear_runs();
  EXPECT_EQ(MusterWords(job), "QUEUED (held)");
}

TEST(SkyJobWords, AFailureOfTheSetupIsToldFromOthers) {
  using enum v1::FailureClass;
  v1::Job of_setup = Failed(FAILURE_CLASS_CONFIG, "it ended with exit code 7");
  EXPECT_EQ(StatusWord(of_setup), "FAILED");
  for (const v1::FailurePhase phase : {v1::FAILURE_PHASE_SETUP, v1::FAILURE_PHASE_SETUP_START}) {
    of_setup.mutable_failure()->set_phase(phase);
    EXPECT_EQ(StatusWord(of_setup), "FAILED_SETUP");
  }
  EXPECT_EQ(StatusWord(Failed(FAILURE_CLASS_CONFIG, "the command could not be started")), "FAILED");
  EXPECT_EQ(StatusWord(Failed(FAILURE_CLASS_PROGRAM, "setup of my program")), "FAILED");
  EXPECT_EQ(StatusWord(Failed(FAILURE_CLASS_OOM, "out of memory")), "FAILED");
  EXPECT_EQ(StatusWord(Failed(FAILURE_CLASS_INFRA, "the node died")), "FAILED_DRIVER");
  EXPECT_EQ(MusterWords(Failed(FAILURE_CLASS_INFRA, "the node died")), "FAILED (INFRA)");
}

TEST(SkyJobWords, ResourcesAreThoseOfEachNode) {
  v1::JobSpec spec;
  EXPECT_EQ(ResourcesText(spec), "1x[CPU:1]");
  spec.set_nodes(2);
  spec.mutable_resources()->set_cpu_millis(1500);
  EXPECT_EQ(ResourcesText(spec), "2x[CPU:1.5]");
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type("H100");
  gpus->set_count_millis(500);
  EXPECT_EQ(ResourcesText(spec), "2x[H100:0.5]");
  gpus->clear_type();
  EXPECT_EQ(ResourcesText(spec), "2x[GPU:0.5]");
}

TEST(SkyJobWords, TimesAreAsSkyPilotWritesThem) {
  EXPECT_EQ(DurationText(absl::Milliseconds(999)), "< 1s");
  EXPECT_EQ(DurationText(absl::Seconds(59)), "59s");
  EXPECT_EQ(DurationText(absl::Seconds(71)), "1m 11s");
  EXPECT_EQ(DurationText(absl::Seconds(3723)), "1h 2m 3s");
  google::protobuf::Timestamp time;
  const absl::Time start = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(AgoText(time, start), "-");
  time.set_seconds(1'000'000);
  EXPECT_EQ(AgoText(time, start), "just now");
  EXPECT_EQ(AgoText(time, start + absl::Seconds(1)), "1 sec ago");
  EXPECT_EQ(AgoText(time, start + absl::Seconds(150)), "2 mins ago");
  EXPECT_EQ(AgoText(time, start + absl::Hours(3)), "3 hrs ago");
  EXPECT_EQ(AgoText(time, start + absl::Hours(49)), "2 days ago");
}

TEST(SkyEnvFile, LinesAreReadAsDotenvReadsThem) {
  const auto read = ParseEnvFile("f", R"(# a comment
A=1
  export B = two words  # and a comment
C='single # \n'
D="double\t\"x\"" # comment
E=
F=a#b

A=last)"
                                      "\nG=cr\r\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(Pair("A", "last"), Pair("B", "two words"),
                                 Pair("C", "single # \\n"), Pair("D", "double\t\"x\""),
                                 Pair("E", ""), Pair("F", "a#b"), Pair("G", "cr")));
}

TEST(SkyEnvFile, WhatItCannotReadIsNamedWithItsLineAndWithoutItsValue) {
  const auto problem = [](const std::string& text) {
    return ParseEnvFile("dir/.env", text).status().ToString();
  };
  EXPECT_THAT(problem("A=1\nB\n"), HasSubstr("dir/.env:2: the line of \"B\" is not NAME=VALUE"));
  EXPECT_THAT(problem("1A=x"), HasSubstr("is not NAME=VALUE"));
  EXPECT_THAT(problem("A=\"s3cret"), HasSubstr("quote that does not end"));
  EXPECT_THAT(problem("A='x' y"), HasSubstr("more behind the closing quote"));
  EXPECT_THAT(problem("A=s3cret${B}"), HasSubstr("not expanded"));
  EXPECT_THAT(problem("A=s3cret${B}"), Not(HasSubstr("s3cret")));
}

TEST(LabelledLinesTest, EachLineHasTheLabelHoweverThePiecesFall) {
  LabelledLines lines("(a, rank=1) ");
  EXPECT_EQ(lines.Next("one\ntw"), "(a, rank=1) one\n");
  EXPECT_EQ(lines.Next("o\n\n"), "(a, rank=1) two\n(a, rank=1) \n");
  EXPECT_EQ(lines.Next("end"), "");
  EXPECT_EQ(lines.Finish(), "(a, rank=1) end\n");
  EXPECT_EQ(lines.Finish(), "");
}

TEST(LabelledLinesTest, ALineWithoutAnEndIsNotHeldForEver) {
  LabelledLines lines("x ");
  const std::string much(100'000, 'y');
  EXPECT_EQ(lines.Next(much), "x " + much + "\n");
  EXPECT_EQ(lines.Next("z\n"), "x z\n");
}

}  // namespace
}  // namespace muster::cli::sky
