// Tests the options, variables and columns that users of squeue, scancel and sacct know, against a
// fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "contract/errors.h"
#include "tests/unit/clients/slurm_verbs_fixture.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SlurmOptionsTest : public SlurmVerbsTest {
 protected:
  Outcome RunWith(std::vector<std::string> environment, std::vector<std::string> words) {
    return Command(broker_.address(), std::move(words), false, std::move(environment)).Finish();
  }

  void AddExtra(const char* option) {
    jobs_[0].mutable_spec()->mutable_slurm()->add_extra_options(option);
  }
};

TEST_F(SlurmOptionsTest, VariablesSetOptionsAndWhatIsTypedWins) {
  EXPECT_EQ(RunWith({"SQUEUE_FORMAT=%i %T"}, {"squeue", "-h"}).out, "8 PENDING\n7 RUNNING\n");
  EXPECT_EQ(RunWith({"SQUEUE_FORMAT=%i"}, {"squeue", "-ho", "%j"}).out, "second\ntrain\n");
  EXPECT_EQ(RunWith({"SQUEUE_FORMAT=%i"}, {"squeue", "-hO", "name:6"}).out, "second\ntrain\n");
  EXPECT_EQ(RunWith({"SQUEUE_FORMAT2=jobid:3,name:6"}, {"squeue", "-h"}).out,
            "8  second\n7  train\n");
  EXPECT_EQ(RunWith({"SQUEUE_FORMAT=%i", "SQUEUE_FORMAT2=name:6"}, {"squeue", "-h"}).out, "8\n7\n");
  EXPECT_THAT(RunWith({"SQUEUE_FORMAT=%i"}, {"squeue", "-l"}).out, HasSubstr("TIME_LIMI"));
  const std::pair<const char*, const char*> cases[] = {
      {"SQUEUE_USERS=bob", "8\n"}, {"SQUEUE_PARTITION=gpu", "7\n"}, {"SQUEUE_STATES=PD", "8\n"},
      {"SQUEUE_SORT=i", "7\n8\n"}, {"SQUEUE_ACCOUNT=nobody", ""},   {"SQUEUE_NAMES=second", "8\n"},
      {"SLURM_CLUSTERS=far", ""},  {"SQUEUE_QOS=high", ""},         {"SQUEUE_USERS=", "8\n7\n"}};
  for (const auto& [variable, shown] : cases) {
    const std::string out = RunWith({variable}, {"squeue", "-ho", "%i"}).out;
    EXPECT_EQ(out, shown) << variable;
  }
  EXPECT_EQ(RunWith({"SQUEUE_USERS=ada"}, {"squeue", "-hu", "bob", "-o", "%i"}).out, "8\n");
  EXPECT_EQ(RunWith({"SACCT_FORMAT=jobid,user"}, {"sacct", "-nPj7"}).out, "7|ada\n");
  EXPECT_EQ(RunWith({"SACCT_FORMAT=jobid"}, {"sacct", "-nPj7", "-b"}).out, "7|RUNNING|0:0\n");
  EXPECT_THAT(RunWith({"SQUEUE_LICENSES=a"}, {"squeue"}).err,
              HasSubstr("the variable SQUEUE_LICENSES is not taken"));
}

TEST_F(SlurmOptionsTest, TimesAreWrittenAsTheVariableSays) {
  const auto submit = [&](const char* variable) {
    return RunWith({variable, "TZ=UTC"}, {"squeue", "-hj7", "-o", "%S"}).out;
  };
  EXPECT_EQ(submit("SLURM_TIME_FORMAT="), "2026-03-01T12:00:00\n");
  EXPECT_EQ(submit("SLURM_TIME_FORMAT=standard"), "2026-03-01T12:00:00\n");
  EXPECT_EQ(submit("SLURM_TIME_FORMAT=%a %H:%M"), "Sun 12:00\n");
  jobs_[0].mutable_start_time()->set_seconds(1'000'000'000);
  EXPECT_EQ(submit("SLURM_TIME_FORMAT=relative"), "9 Sep 2001\n");
  EXPECT_EQ(RunWith({"SLURM_TIME_FORMAT=%Y"}, {"sacct", "-nPj7", "-o", "Start"}).out, "2001\n");
}

TEST_F(SlurmOptionsTest, TimesAreSortedByTheirLengthWhateverTheirForm) {
  jobs_[0].mutable_spec()->mutable_time_limit()->set_seconds(600);
  jobs_[1].mutable_spec()->mutable_time_limit()->set_seconds(540);
  EXPECT_EQ(Run({"squeue", "-ho", "%i", "-S", "l"}).out, "8\n7\n") << "9:00 and 10:00";
  jobs_[0].mutable_create_time()->set_seconds(1'000'000'000 + 3600);
  jobs_[1].mutable_create_time()->set_seconds(1'000'000'000 + 86400);
  const std::vector<std::string> words = {"squeue", "-ho", "%i", "-S", "V"};
  EXPECT_EQ(RunWith({"SLURM_TIME_FORMAT=%H"}, words).out, "7\n8\n");
}

TEST_F(SlurmOptionsTest, ListsOfJobsAreReadAsSlurmReadsThem) {
  const auto shown = [&](const char* verb, std::vector<std::string> words) {
    const bool is_squeue = std::string(verb) == "squeue";
    words.insert(words.begin(), {verb, is_squeue ? "-ho" : "-nPo", is_squeue ? "%i" : "jobid"});
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(shown("squeue", {"-j", "7,8,"}), "8\n7\n");
  EXPECT_EQ(shown("squeue", {"-j", "7,,8"}), "8\n7\n");
  EXPECT_EQ(shown("squeue", {"-j", "7", "-j", "8"}), "8\n7\n");
  EXPECT_EQ(shown("squeue", {"-j", "7.batch"}), "7\n");
  EXPECT_EQ(shown("squeue", {"-j", ""}), "") << "none is named";
  EXPECT_EQ(shown("squeue", {"-j", "7,42_5"}), "7\n");
  EXPECT_EQ(shown("sacct", {"-j", "7,8,"}), "7\n8\n");
  EXPECT_EQ(shown("sacct", {"-j", "7", "-j", "8"}), "7\n8\n");
  EXPECT_EQ(shown("sacct", {"-j", "7.batch"}), "") << "Muster knows no steps";
  EXPECT_EQ(shown("sacct", {"-j", "99.0"}), "");
  EXPECT_EQ(shown("sacct", {"-j", "99"}), "");
  EXPECT_EQ(shown("sacct", {"-j", "99_5,7"}), "7\n");
}

TEST_F(SlurmOptionsTest, SacctWritesNumbersAtTheLeft) {
  EXPECT_EQ(Run({"sacct", "-j7", "-o", "JobID,JobIDRaw,User,JobID%6"}).out,
            "JobID        JobIDRaw          User  JobID \n"
            "------------ ------------ --------- ------ \n"
            "7            4711               ada      7 \n");
}

TEST_F(SlurmOptionsTest, ScancelCancelsTheJobsThatThereAreAndSaysWhichAreNot) {
  std::vector<std::vector<uint64_t>> canceled;
  broker_.cancel_jobs =
      [&](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
    canceled.emplace_back(request.job_ids().begin(), request.job_ids().end());
    for (const uint64_t id : request.job_ids()) {
      if (id > 8) return absl::NotFoundError("no such job");
    }
    return v1::CancelJobsResponse();
  };
  const Outcome outcome = Run({"scancel", "7", "99", "8"});
  EXPECT_EQ(outcome.code, 0) << "as scancel";
  EXPECT_EQ(outcome.err, "scancel: error: Kill job error on job id 99: Invalid job id specified\n");
  EXPECT_THAT(canceled, ElementsAre(ElementsAre(7u, 99u, 8u), ElementsAre(7u, 8u)));
  EXPECT_EQ(Run({"scancel", "-Q", "99"}).err, "");
  EXPECT_THAT(Run({"scancel", "99_3", "7"}).err, HasSubstr("job id 99_3: Invalid job id"));
  EXPECT_THAT(canceled.back(), ElementsAre(7u));
}

TEST_F(SlurmOptionsTest, ScancelCancelsNothingForAListThatNamesNothing) {
  bool is_canceled = false;
  broker_.cancel_jobs =
      [&](const v1::CancelJobsRequest&) -> absl::StatusOr<v1::CancelJobsResponse> {
    is_canceled = true;
    return v1::CancelJobsResponse();
  };
  for (v1::Job& job : jobs_) job.set_user(getpwuid(geteuid())->pw_name);
  for (const char* option :
       {"--user=", "--user=,", "--name=", "--partition=", "--account=", "--qos=", "--nodelist=",
        "--state=", "--reservation=", "--clusters="}) {
    const Outcome outcome = Run({"scancel", option, "--me"});
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("names nothing")) << option;
    EXPECT_EQ(Run({"scancel", option}).code, 2) << option;
  }
  EXPECT_EQ(Run({"scancel", "-t", "all"}).code, 2);
  const Outcome unknown = Run({"scancel", "-u", "no-such-user"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("Invalid user name: \"no-such-user\""));
  EXPECT_FALSE(is_canceled);
  EXPECT_EQ(Run({"scancel", "-u", "no-such-user", "--me"}).code, 0) << "the last one counts";
  EXPECT_TRUE(is_canceled);
}

TEST_F(SlurmOptionsTest, SqueueShowsNothingForAListThatNamesNothing) {
  EXPECT_EQ(Run({"squeue", "-h", "-u", ""}).out, "");
  EXPECT_EQ(Run({"squeue", "-h", "-t", ""}).out, "");
  EXPECT_EQ(Run({"squeue", "-h", "--me", "-u", "bob", "-o", "%i"}).out, "8\n");
}

TEST_F(SlurmOptionsTest, TimesAreNeverCutByFormatAndAllElseIs) {
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "%.2l|%.2M|%.2L|%.2j"}).out, "1:30:00|1:02:03|27:57|tr\n");
  EXPECT_EQ(Run({"squeue", "-j7", "-o", "%.2l"}).out, "TI\n1:30:00\n") << "a heading is cut";
  EXPECT_EQ(Run({"squeue", "-hj7", "-O", "TimeLimit:2"}).out, "1:\n");
}

TEST_F(SlurmOptionsTest, NodesAreThoseOfTheRunOrWhatTheTasksNeed) {
  v1::JobSpec& spec = *jobs_[0].mutable_spec();
  spec.set_nodes(1);
  spec.mutable_slurm()->add_extra_options("--ntasks=10");
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "%D"}).out, "2\n") << "those of the run";
  EXPECT_EQ(Run({"sacct", "-nPj7", "-o", "NNodes,AllocNodes,ReqNodes"}).out, "2|2|2\n");
  jobs_[0].mutable_runs(0)->clear_nodes();
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "%D"}).out, "1\n");
  spec.mutable_slurm()->add_extra_options("--ntasks-per-node=4");
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "%D"}).out, "3\n");
}

TEST_F(SlurmOptionsTest, MemoryAndGpusOfOptionsForSlurmAloneAreCounted) {
  for (const char* option : {"--ntasks=2", "--cpus-per-task=2", "--mem-per-cpu=150", "--gpus=3"})
    AddExtra(option);
  jobs_[0].mutable_spec()->mutable_resources()->set_cpu_millis(2000);
  EXPECT_EQ(Run({"squeue", "-hj7", "-O", "minmemory:6,tres-per-job:12,tres:40"}).out,
            "150M  gres:gpu:3  cpu=4,mem=600M,node=2,gres/gpu=3\n");
  EXPECT_EQ(Run({"sacct", "-nPj7", "-o", "ReqMem,ReqTRES"}).out,
            "600M|cpu=4,gres/gpu=3,mem=600M,node=2\n");
  jobs_[0].mutable_spec()->mutable_slurm()->clear_extra_options();
  for (const char* option : {"--ntasks=4", "--gpus-per-task=2", "--mem-per-gpu=1G"})
    AddExtra(option);
  EXPECT_EQ(Run({"sacct", "-nPj7", "-o", "ReqMem,ReqTRES"}).out,
            "8G|cpu=8,gres/gpu=8,mem=8G,node=2\n");
}

TEST_F(SlurmOptionsTest, EveryStateOfSlurmsIsTaken) {
  for (const char* state : {"BF", "dl", "RQ", "SE", "RV", "SI", "SO", "ST", "RD", "RF", "RH", "RS",
                            "BOOT_FAIL", "REQUEUE_HOLD", "SPECIAL_EXIT", "STAGE_OUT"}) {
    const Outcome outcome = Run({"squeue", "-ht", state});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "") << state;
  }
  jobs_[0].set_state(v1::JOB_STATE_FAILED);
  jobs_[0].mutable_failure()->set_failure_class(v1::FAILURE_CLASS_TIMEOUT);
  jobs_[0].mutable_failure()->set_code(v1::FAILURE_CODE_DEADLINE);
  EXPECT_EQ(Run({"sacct", "-nPj7", "-s", "DL", "-o", "State,Reason"}).out, "DEADLINE|None\n");
}

TEST_F(SlurmOptionsTest, SqueueForgetsAJobFiveMinutesAfterItsEnd) {
  jobs_[0].set_state(v1::JOB_STATE_SUCCEEDED);
  const auto ended_before = [&](absl::Duration age) {
    jobs_[0].mutable_end_time()->set_seconds(absl::ToUnixSeconds(absl::Now() - age));
    return Run({"squeue", "-ht", "all", "-n", "train", "-o", "%i %T"}).out;
  };
  EXPECT_EQ(ended_before(absl::Minutes(4)), "7 COMPLETED\n");
  EXPECT_THAT(filter_, HasSubstr(" OR end_time >= 20"));
  EXPECT_EQ(ended_before(absl::Minutes(6)), "");
}

TEST_F(SlurmOptionsTest, AJobThatNoClusterHasIsInTheDefaultPartition) {
  jobs_[1].set_state(v1::JOB_STATE_QUEUED);
  jobs_[1].clear_cluster();
  jobs_[1].clear_runs();
  EXPECT_EQ(Run({"squeue", "-hj8", "-o", "%P %l"}).out, "cpu 1:30:00\n");
  jobs_[1].mutable_spec()->mutable_placement()->add_clusters("far");
  EXPECT_EQ(Run({"squeue", "-hj8", "-o", "%P"}).out, "(null)\n");
}

TEST_F(SlurmOptionsTest, ColumnsOfWhichNothingIsKnownHaveSlurmsWordForIt) {
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "%g|%d|%h|%H|%I|%J|%n|%o|%O|%s|%w|%X|%Y|%z"}).out,
            "(null)|0|OK|*|*|*||(null)|0||(null)|N/A|(null)|*:*:*\n");
  EXPECT_EQ(Run({"squeue", "-hj7", "-O", "Profile:8,Origin:4,Wait4Switch:6,EligibleTime:4"}).out,
            "NotSet  NA  0:00  N/A\n");
  v1::SlurmBatchScript& script = *jobs_[0].mutable_spec()->mutable_slurm()->mutable_batch_script();
  jobs_[0].mutable_spec()->set_working_directory("/home/ada");
  script.set_output("slurm-%j.out");
  script.set_error("/tmp/%x.err");
  EXPECT_EQ(Run({"squeue", "-hj7", "-O", "StdOut:30,StdErr:14,StdIn:12"}).out,
            "/home/ada/slurm-%j.out        /tmp/%x.err   /dev/null\n");
  EXPECT_EQ(Run({"squeue", "-hj8", "-O", "StdOut:10"}).out, "(null)\n");
  for (const char* option : {"--exclusive", "--threads-per-core=2", "--contiguous", "--tmp=5"})
    AddExtra(option);
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "%h %z %O %d"}).out, "NO *:*:2 1 5\n");
}

TEST_F(SlurmOptionsTest, AColumnThatThereIsNotIsLeftOutWithAnError) {
  const Outcome outcome = Run({"squeue", "-j7", "-O", "foo,JobID:6,Name:6"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "JOBID NAME\n7     train\n");
  EXPECT_EQ(outcome.err, "squeue: error: Invalid job format specification: foo\n");
}

TEST_F(SlurmOptionsTest, AllColumnsMayBeAskedFor) {
  const std::string squeue = Run({"squeue", "-j7", "-o", "%all"}).out;
  EXPECT_THAT(squeue, StartsWith("ACCOUNT|TRES_PER_NODE|MIN_CPUS|MIN_TMP_DISK|END_TIME|"));
  EXPECT_THAT(squeue, HasSubstr("|N/A|27:57|1:02:03|"));
  EXPECT_EQ(Run({"squeue", "-hj7", "-o", "all %i"}).out, "all 7\n") << "a text like any other";
  EXPECT_THAT(Run({"sacct", "-Pj7", "-o", "ALL"}).out, StartsWith("Account|AdminComment|"));
}

TEST_F(SlurmOptionsTest, AWaitingJobsEndIsExpectedAfterItsStart) {
  jobs_[1].clear_start_time();
  jobs_[1].clear_end_time();
  EXPECT_EQ(Run({"squeue", "-hj8", "-o", "%e"}).out, "N/A\n");
  jobs_[1].mutable_runs(0)->mutable_estimated_start_time()->set_seconds(1'772'366'400);
  EXPECT_EQ(RunWith({"TZ=UTC"}, {"squeue", "-hj8", "-o", "%e"}).out, "2026-03-01T13:30:00\n");
  EXPECT_THAT(Run({"squeue", "--start"}).out, HasSubstr(" SCHEDNODES "));
}

TEST_F(SlurmOptionsTest, UsersMayBeNamedByTheirIds) {
  const passwd* own = getpwuid(geteuid());
  jobs_[0].set_user(own->pw_name);
  const std::string id = std::to_string(geteuid());
  EXPECT_EQ(Run({"squeue", "-hu", id, "-o", "%i"}).out, "7\n");
  EXPECT_EQ(Run({"sacct", "-nPu", id, "-o", "jobid", "-S", "2026-01-01"}).out, "7\n");
  EXPECT_EQ(Run({"squeue", "-hu", "3999999999"}).err, "squeue: error: Invalid user: 3999999999\n");
}

TEST_F(SlurmOptionsTest, EachVerbTellsItsVersionAndItsUsage) {
  for (const char* verb : {"squeue", "scancel", "sacct", "sinfo"}) {
    for (const char* option : {"-V", "--version"}) {
      const Outcome outcome = Run({verb, option});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_THAT(outcome.out, StartsWith("muster ")) << verb;
    }
    const Outcome usage = Run({verb, "--usage"});
    EXPECT_EQ(usage.code, 0) << usage.err;
    EXPECT_THAT(usage.out, StartsWith("Usage: muster " + std::string(verb) + " [-"));
    EXPECT_THAT(usage.out, HasSubstr("--local"));
  }
  EXPECT_EQ(Run({"squeue", "--local", "-hj7", "-o", "%i"}).out, "7\n");
}

TEST_F(SlurmOptionsTest, ProgramsThatAreNoVerbsNameWhatToUse) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"scontrol", "show", "job", "42"},
       "scontrol is not a verb of muster; for show job 42 use "
       "muster show 42"},
      {{"srun", "hostname"}, "srun is not a verb of muster; use muster run --wait --"},
      {{"salloc", "-N2"}, "salloc is not a verb of muster; use Slurm's own"},
      {{"sstat", "-j", "42"}, "muster squeue -t all -o '%i %A'"},
      {{"seff", "42"}, "muster sacct -j 42"},
      {{"sprio"}, "muster why 42"},
      {{"sreport", "cluster"}, "muster count"},
      {{"sacctmgr", "show", "user"}, "Muster keeps no accounts"}};
  for (const auto& [words, says] : cases) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 2) << says;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

TEST_F(SlurmOptionsTest, AJobThatWasEndedFromOutsideHasNoExitCode) {
  const auto shown = [&] { return Run({"sacct", "-nPj7", "-o", "State,ExitCode"}).out; };
  jobs_[0].mutable_exit()->set_signal(15);
  jobs_[0].set_state(v1::JOB_STATE_CANCELED);
  EXPECT_EQ(shown(), "CANCELLED|0:0\n");
  jobs_[0].set_state(v1::JOB_STATE_FAILED);
  jobs_[0].mutable_failure()->set_failure_class(v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_EQ(shown(), "TIMEOUT|0:0\n");
  jobs_[0].mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(shown(), "FAILED|0:15\n");
}

TEST_F(SlurmOptionsTest, TimesAreThoseOfThePresentRun) {
  v1::Job& job = jobs_[0];
  job.clear_end_time();
  v1::Run& run = *job.mutable_runs(0);
  const auto queue = [&] { return Run({"squeue", "-hj7", "-o", "%M %S"}).out; };
  const auto account = [&] {
    return Run({"sacct", "-nPj7", "-o", "Start,Elapsed,CPUTime,AllocTRES"}).out;
  };
  run.set_number(1);
  EXPECT_THAT(queue(), Not(StartsWith("0:00")));
  job.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(queue(), "0:00 N/A\n") << "it waits for its second run";
  EXPECT_EQ(account(), "Unknown|00:00:00|00:00:00|\n");
  run.set_number(2);
  job.set_state(v1::JOB_STATE_PENDING);
  EXPECT_EQ(queue(), "0:00 N/A\n");
  job.set_state(v1::JOB_STATE_RUNNING);
  run.mutable_start_time()->set_seconds(1'772'366'400 + 3600);
  job.mutable_end_time()->set_seconds(1'772'366'400 + 3723);
  EXPECT_THAT(queue(), StartsWith("2:03 "));
  EXPECT_THAT(account(), HasSubstr("|00:02:03|00:16:24|"));
}

TEST_F(SlurmOptionsTest, SacctTellsWhatIsKnown) {
  EXPECT_EQ(Run({"sacct", "-nPj8", "-o", "AllocCPUS,Eligible,DerivedExitCode"}).out,
            "8|Unknown|0:0\n");
  v1::Job& job = jobs_[0];
  *job.mutable_create_time() = job.start_time();
  job.mutable_create_time()->set_seconds(job.start_time().seconds() - 60);
  const auto times = [&] { return Run({"sacct", "-nPj7", "-o", "Eligible,Submit"}).out; };
  const std::string both = times();
  EXPECT_EQ(both.substr(0, both.find('|')) + "\n", both.substr(both.find('|') + 1));
  AddExtra("--begin=now+1hour");
  EXPECT_THAT(times(), StartsWith("Unknown|")) << "it was not eligible when it was submitted";
  job.set_state(v1::JOB_STATE_FAILED);
  job.mutable_exit()->set_code(1);
  job.set_user("root");
  EXPECT_EQ(Run({"sacct", "-nPj7", "-o", "Reason,UID"}).out, "None|0\n");
  job.mutable_end_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  EXPECT_EQ(Run({"squeue", "-t", "F", "-hj7", "-o", "%R"}).out, "(NonZeroExitCode)\n");
  v1::GpuRequest& gpus = *job.mutable_spec()->mutable_resources()->add_gpus();
  gpus.set_type("h100");
  gpus.set_count_millis(1000);
  EXPECT_EQ(Run({"sacct", "-nPj7", "-o", "AllocTRES"}).out,
            "cpu=8,gres/gpu:h100=2,gres/gpu=2,node=2\n");
}

TEST_F(SlurmOptionsTest, NodesAreNamedAsTheyAreShown) {
  EXPECT_EQ(Run({"squeue", "-h", "-w", "n[2-3]", "-o", "%i"}).out, "7\n");
  EXPECT_EQ(Run({"squeue", "-h", "-w", "n[3-4]", "-o", "%i"}).out, "");
  EXPECT_THAT(Run({"squeue", "-w", "n[3"}).err, HasSubstr("--nodelist: \"n[3\" is no list"));
}

TEST_F(SlurmOptionsTest, LimitsAreWholeMinutesOnSlurm) {
  jobs_[1].mutable_spec()->mutable_time_limit()->set_seconds(61);
  EXPECT_EQ(Run({"squeue", "-hj8", "-o", "%l %L"}).out, "2:00 2:00\n");
}

TEST_F(SlurmOptionsTest, SqueueTakesOptionsThatChangeNothingHere) {
  EXPECT_EQ(Run({"squeue", "-hPj7", "--hide", "--sibling", "--array-unique", "-o", "%i"}).out,
            "7\n");
}

TEST_F(SlurmOptionsTest, SacctSaysWhoAndWhichTimeThereIsNot) {
  const Outcome user = Run({"sacct", "-u", "no-such-user"});
  EXPECT_EQ(user.code, 1);
  EXPECT_EQ(user.err, "sacct: error: Invalid user id: no-such-user\n");
  EXPECT_EQ(user.out, "");
  EXPECT_EQ(Run({"sacct", "-u", "bob", "-S", "2026-01-01"}).code, 0) << "the broker knows him";
  EXPECT_THAT(
      Run({"sacct", "-a", "-S", "2026-02-02", "-E", "2026-02-01"}).err,
      HasSubstr("Start time (2026-02-02T00:00:00) is after end time (2026-02-01T00:00:00)"));
  EXPECT_THAT(Run({"sacct", "-a", "-S", "now+1hour"}).err, HasSubstr("is after end time"));
}

TEST_F(SlurmOptionsTest, OptionsOfSacctAreTakenOrRefusedByName) {
  EXPECT_EQ(Run({"sacct", "-nPvj7", "--noconvert", "--units=M", "-o", "JobID"}).out, "7\n");
  for (const char* option : {"-B", "--env-vars", "-k1", "-K1", "-FSchedMain", "-x1", "-c"})
    EXPECT_THAT(Run({"sacct", option}).err, HasSubstr("is not taken; ")) << option;
}

TEST_F(SlurmOptionsTest, ShowTellsTheFileOfAScriptsOutput) {
  v1::Job& job = jobs_[0];
  job.set_cluster_kind(v1::CLUSTER_KIND_SLURM);
  job.mutable_spec()->set_working_directory("/home/ada");
  v1::SlurmBatchScript& script = *job.mutable_spec()->mutable_slurm()->mutable_batch_script();
  script.set_output("%x-%6j-%%.out");
  EXPECT_THAT(Run({"show", "7"}).out, HasSubstr("/home/ada/train-004711-%.out\n"));
  script.set_output("%t.out");
  EXPECT_THAT(Run({"show", "7"}).out, Not(HasSubstr(".out\n"))) << "only Slurm knows it";
}

}  // namespace
}  // namespace muster::cli
