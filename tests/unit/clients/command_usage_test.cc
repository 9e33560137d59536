// Tests the help of the command for a command line that cannot be meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(CommandTest, AValueThatCannotBeMeantIsUsageNamingOptionValueAndRange) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"run", "--nodes", "0", "--", "x"}, "--nodes: \"0\" is not a whole number of 1 to 10000"},
      {{"run", "--nodes", "two", "--", "x"}, "--nodes: \"two\" is not a whole number"},
      {{"run", "--priority", "5000", "--", "x"},
       "--priority: \"5000\" is not a whole number of -1000"},
      {{"run", "--name", "", "--", "x"}, "--name: is empty"},
      {{"run", "--cluster", "", "--", "x"}, "--cluster: is empty"},
      {{"run", "--memory", "512", "--", "x"}, "--memory: \"512\" is less than 1Mi"},
      {{"run", "--time", "0", "--", "x"}, "--time: \"0\" is out of range; use 1s to 36500d"},
      {{"list", "--limit", "-1"}, "--limit: \"-1\" is not a whole number of 0 or more"},
      {{"list", "--limit", "99999999999999999999"}, "--limit: \"99999999999999999999\""},
      {{"list", "--state", "bogus"},
       "--state: \"bogus\" is not a state of jobs; there are: HELD, QUEUED"},
      {{"run", "--gpus", "--", "x"}, "--gpus needs a value: TYPE:COUNT\n"},
      {{"list", "--label", "team"}, "--label: \"team\" is not KEY=VALUE"},
      {{"list", "--name", ""}, "--name: is empty"},
      {{"logs", "42", "--rank", "-1"}, "--rank: \"-1\" is not a whole number of 0 to 9999"},
      {{"logs", "42", "--run", "0"}, "--run: \"0\" is not a whole number of 1"},
      {{"logs", "42", "--since-offset", "-1"}, "--since-offset: \"-1\""},
      {{"events", "42", "--since", "-5"}, "--since: \"-5\" is not a whole number of 0 or more"},
      {{"clusters", ""}, "NAME: is empty"},
      {{"cancel", "42.1"}, "42.1 is one run, and this verb takes whole jobs; write 42"},
      {{"wait", "42.1"}, "42.1 is one run"},
      {{"events", "42.1"}, "42.1 is one run"},
      {{"lsit"}, "\"lsit\" is not a verb; did you mean list?"},
      {{"cancle", "42"}, "did you mean cancel?"},
      {{"run", "--cpu", "2", "--", "true"},
       "\"--cpu\" is not a flag of muster run; did you mean --cpus?\n"},
      {{"run", "--mem=2Gi", "--", "true"},
       "\"--mem\" is not a flag of muster run; did you mean --memory?"},
      {{"logs", "-n", "3", "42"}, "\"-n\" is not a flag of muster logs; did you mean --tail?"},
      {{"list", "--borker", "x"}, "did you mean --broker?"},
      {{"list", "--zzz", "x"}, "\"--zzz\" is not a flag of muster list; see: muster list --help"},
      {{"run", "echo", "hi there"},
       "put the command after --, as in: muster run -- echo \"hi there\"\n"},
      {{"run", "--nodes", "2", "echo", "-n", "hi"},
       "put the command after --, as in: muster run -- echo -n hi\n"},
      {{"run", "x", "--", "y"}, "\"x\" is more than muster run takes"},
      {{"clusters", "a", "b"},
       "write muster clusters [NAME], clusters invite NAME, clusters revoke NAME"}};
  for (const auto& [arguments, says] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << says << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(CommandTest, TooLittleMemoryInAFileIsNamedWithItsPlaceAndUnit) {
  const Outcome outcome = Run({"submit", WriteFile("run: x\nresources:\n  memory: 512\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:3:11: "));
  EXPECT_THAT(outcome.err,
              HasSubstr("512 bytes are too few; use at least 1Mi, with its unit (512Mi"));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(CommandTest, ALimitIsSaidAsItWasUnderstood) {
  EXPECT_THAT(Run({"run", "--wait", "--time", "90", "--", "x"}).err,
              HasSubstr("submitted as job 42, to be stopped after 1m30s"));
}

TEST_F(CommandTest, EachVerbHelpsWithItsOptionsAndAnExample) {
  const std::pair<const char*, const char*> verbs[] = {
      {"submit", "--request-id"}, {"run", "--gpus"},
      {"list", "--state"},        {"show", "ID"},
      {"cancel", "--reason"},     {"logs", "--rank"},
      {"events", "--since"},      {"wait", "--timeout"},
      {"clusters", "NAME"},       {"check", "NAME"},
      {"forget", "NAME"},         {"hold", "--reason"},
      {"release", "--reason"},    {"why", "ID"},
      {"plan", "--gpus"},         {"version", "--broker"}};
  for (const auto& [verb, option] : verbs) {
    const Outcome outcome = RunCommand("", {verb, "--help"});
    EXPECT_EQ(outcome.code, 0) << verb;
    EXPECT_THAT(outcome.out, HasSubstr(option));
    EXPECT_THAT(outcome.out, HasSubstr(std::string("For example:\n  muster ") + verb));
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Usage: muster ") + verb));
  }
}

TEST_F(CommandTest, WhatTheContractRefusesIsNamedByItsFlag) {
  EXPECT_THAT(Run({"run", "--workdir", "/a\tb", "--", "x"}).err,
              HasSubstr("muster: --workdir (workdir): "));
  EXPECT_THAT(Run({"run", "--", ""}).err, HasSubstr("muster: command: names no program"));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(CommandTest, HelpIsAlsoAVerb) {
  EXPECT_EQ(RunCommand("", {"help", "run"}).out, RunCommand("", {"run", "--help"}).out);
  const Outcome all = RunCommand("", {"help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.out, RunCommand("", {"--help"}).out);
}

TEST_F(CommandTest, ShowOfARunShowsThatRunOrSaysThatThereIsNone) {
  job_.set_job_sequence(3);
  job_.add_runs()->set_number(2);
  const Outcome one = Run({"show", "42.2"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("Run 42.2"));
  EXPECT_THAT(one.out, Not(HasSubstr("Run 42.1")));
  const Outcome none = Run({"show", "42.9"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "muster: job 42 has no run 42.9; it has had 2 runs\n");
}

TEST_F(CommandTest, CancelTellsWhatBecameOfEachJob) {
  broker_.cancel_jobs = [](const auto&) -> absl::StatusOr<v1::CancelJobsResponse> {
    v1::CancelJobsResponse response;
    *response.add_jobs() = client::JobInState(1, v1::JOB_STATE_CANCELED);
    *response.add_jobs() = client::JobInState(2, v1::JOB_STATE_RUNNING);
    *response.add_jobs() = client::JobInState(3, v1::JOB_STATE_SUCCEEDED);
    *response.add_jobs() = client::JobInState(4, v1::JOB_STATE_PENDING);
    return response;
  };
  EXPECT_EQ(Run({"cancel", "1", "2", "3", "4"}).err,
            "muster: canceled: 1\n"
            "muster: had ended already: 3\n"
            "muster: cancel requested, the cluster has yet to end: 2 4; see the end with: muster "
            "wait 2 4\n");
  EXPECT_EQ(Run({"cancel", "-q", "1", "2", "3", "4"}).err, "");
}

}  // namespace
}  // namespace muster::cli
