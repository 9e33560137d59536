#include "agents/slurm/submit.h"

#include "contract/errors.h"
#include "contract/slurm_options.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = agents::LaunchOutcome::Kind;

hosts::CommandResult Ended(int code, std::string out, std::string err) {
  hosts::CommandResult result;
  result.exit_code = code;
  result.stdout_data = std::move(out);
  result.stderr_data = std::move(err);
  return result;
}
SubmitOutcome Failed(std::string err) { return ClassifySubmit(Ended(1, "", std::move(err))); }

TEST(ClassifySubmitTest, AJobIdIsALaunch) {
  EXPECT_EQ(ClassifySubmit(Ended(0, "6\n", "")).job_id, 6u);
  EXPECT_EQ(ClassifySubmit(Ended(0, "8;lab1\n", "")).job_id, 8u);
  const SubmitOutcome noisy =
      ClassifySubmit(Ended(0, "Welcome to the cluster!\n17\n", "sbatch: warning: slow\n"));
  EXPECT_EQ(noisy.kind, Kind::kLaunched);
  EXPECT_EQ(noisy.job_id, 17u);
  EXPECT_THAT(noisy.words, HasSubstr("warning: slow"));
}

TEST(ClassifySubmitTest, SuccessWithoutAnIdIsUnclear) {
  for (const char* out : {"", "hello\n", "0\n", "5\n6\n"}) {
    EXPECT_EQ(ClassifySubmit(Ended(0, out, "")).kind, Kind::kUnclear) << out;
  }
}

TEST(ClassifySubmitTest, ARefusalIsQuotedExplainedAndAnswered) {
  const struct {
    const char* err;
    const char* quoted;
    v1::FailureClass failure_class;
  } cases[] = {
      {"sbatch: error: invalid partition specified: nosuch\n"
       "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
       "Invalid partition name specified", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Batch job submission failed: Invalid account or account/partition "
       "combination specified\n",
       "Invalid account", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Batch job submission failed: Invalid qos specification\n", "Invalid qos",
       v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: QOSMaxCpuPerUserLimit\n"
       "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit "
       "limit, user's size "
       "and/or time limits)\n",
       "one user (QOSMaxCpuPerUserLimit)", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or "
       "exceeds some limit)\n",
       "time limit", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Memory specification can not be satisfied\n"
       "sbatch: error: Batch job submission failed: Requested node configuration is not "
       "available\n",
       "Requested node configuration", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Batch job submission failed: Invalid node name specified\n",
       "Invalid node name", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Batch job submission failed: Invalid feature specification\n",
       "Invalid feature", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Batch job submission failed: Required partition not available (inactive or "
       "drain)\n",
       "inactive or drain", v1::FAILURE_CLASS_INFRA},
      {"sbatch: error: Invalid generic resource (gres) specification\n", "generic resource",
       v1::FAILURE_CLASS_CONFIG},
      {"sbatch: error: Invalid --time specification\n", "--time", v1::FAILURE_CLASS_CONFIG},
      {"sbatch: unrecognized option '--nosuchopt'\n", "nosuchopt", v1::FAILURE_CLASS_CONFIG},
  };
  for (const auto& c : cases) {
    const SubmitOutcome outcome = Failed(c.err);
    EXPECT_EQ(outcome.kind, Kind::kRefused) << c.err;
    EXPECT_EQ(outcome.failure.failure_class(), c.failure_class) << c.err;
    EXPECT_THAT(outcome.failure.message(), HasSubstr(c.quoted));
    EXPECT_NE(outcome.failure.remedy(), "") << c.err;
    const bool was_asked = std::string_view(c.err).find("submission failed") != std::string::npos;
    EXPECT_EQ(outcome.failure.code(),
              was_asked ? v1::FAILURE_CODE_LAUNCH_REFUSED : v1::FAILURE_CODE_JOB_INVALID)
        << c.err;
  }
}

SubmitOutcome OverLimit(const std::string& limit) {
  return Failed(
      fmt::format("sbatch: error: {}\nsbatch: error: Batch job submission failed: Job "
                  "violates accounting/QOS policy (job submit limit, user's size and/or "
                  "time limits)\n",
                  limit));
}

TEST(ClassifySubmitTest, WhatTheSiteLiftsAgainIsWorthAnotherRunAndNothingElse) {
  EXPECT_TRUE(Failed("sbatch: error: Batch job submission failed: Required partition not available "
                     "(inactive or drain)\n")
                  .failure.retriable());
  EXPECT_FALSE(
      Failed("sbatch: error: Batch job submission failed: Invalid partition name specified\n")
          .failure.retriable());
  for (const char* limit :
       {"QOSMaxSubmitJobPerUserLimit", "AssocGrpSubmitJobsLimit", "MaxSubmitJobsPerAccount"}) {
    EXPECT_TRUE(OverLimit(limit).failure.retriable()) << limit;
    EXPECT_TRUE(OverLimit(limit).is_full) << limit;
  }
  EXPECT_FALSE(OverLimit("QOSMaxCpuPerUserLimit").failure.retriable());
  EXPECT_FALSE(OverLimit("QOSMaxCpuPerUserLimit").is_full);
}

TEST(ClassifySubmitTest, ARefusalHasSlurmsWordsAsAQuote) {
  const v1::Failure failure = OverLimit("QOSMaxCpuPerUserLimit").failure;
  ASSERT_EQ(failure.quotes_size(), 1);
  EXPECT_EQ(failure.quotes(0).source(), "sbatch");
  EXPECT_THAT(failure.quotes(0).text(), StartsWith("Job violates accounting/QOS policy"));
}

TEST(ClassifySubmitTest, ABrokenConversationIsUnclear) {
  for (const char* err :
       {"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect "
        "failure)\n",
        "sbatch: error: Munge encode failed: Failed to access \"/x\": No such file or directory "
        "(Did you start "
        "munged?)\nsbatch: error: Batch job submission failed: Protocol authentication error\n",
        "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received\n",
        "sbatch: error: Batch job submission failed: Unexpected message received\n",
        "sbatch: error: Batch job submission failed: Connection reset by peer\n",
        "sbatch: error: Batch job submission failed: Message receive failure\n",
        "sbatch: error: Batch job submission failed: Resource temporarily unavailable\n"}) {
    const SubmitOutcome outcome = Failed(err);
    EXPECT_EQ(outcome.kind, Kind::kUnclear) << err;
    EXPECT_EQ(outcome.unknown_words, "") << err;
  }
}

TEST(ClassifySubmitTest, AnSbatchThatDidNotEndByItselfIsUnclear) {
  EXPECT_EQ(ClassifySubmit(absl::DeadlineExceededError("killed after 180 s")).kind, Kind::kUnclear);
  hosts::CommandResult killed;
  killed.signal = 9;
  killed.stderr_data =
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n";
  EXPECT_EQ(ClassifySubmit(killed).kind, Kind::kUnclear);
}

TEST(ClassifySubmitTest, WordsThatNoTableHoldsAreToldAsSlurmSaidThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"sbatch: error: Batch job submission failed: The moon is full\n", "The moon is full"},
      // A plug-in's own words come before the error that Slurm makes of them.
      {"sbatch: error: Name a project with --wckey\n"
       "sbatch: error: Batch job submission failed: Unspecified error\n",
       "Name a project with --wckey; Unspecified error"},
      {"sbatch: error: cli_filter says no\n", "cli_filter says no"},
      {"", "sbatch: exit code 1"},
  };
  for (const auto& [err, words] : cases) {
    const SubmitOutcome outcome = Failed(err);
    EXPECT_EQ(outcome.kind, Kind::kUnclear) << "a look-up has to show that Slurm does not have it";
    EXPECT_EQ(outcome.unknown_words, words);
    const v1::Failure failure = UnknownRefusal(outcome.unknown_words);
    EXPECT_EQ(failure.message(), std::string("The cluster refused the run: ") + words);
    ASSERT_EQ(failure.quotes_size(), 1);
    EXPECT_EQ(failure.quotes(0).text(), words);
  }
}

TEST(ClassifySubmitTest, AHostWithoutSbatchAskedNobody) {
  for (const int code : {126, 127}) {
    const SubmitOutcome outcome = ClassifySubmit(Ended(code, "", "sh: 1: sbatch: not found\n"));
    EXPECT_EQ(outcome.kind, Kind::kDeferred);
    EXPECT_THAT(outcome.words, HasSubstr("not submitted, sbatch could not be started"));
    EXPECT_THAT(outcome.words, HasSubstr("sh: 1: sbatch: not found"));
    EXPECT_EQ(outcome.unknown_words, "");
    EXPECT_EQ(ClassifySubmit(Ended(code, "17\n", "")).kind, Kind::kUnclear) << "a site's wrapper";
  }
  const SubmitOutcome none = ClassifySubmit(absl::NotFoundError("\"sbatch\": No such file"));
  EXPECT_EQ(none.kind, Kind::kDeferred);
  EXPECT_THAT(none.words, HasSubstr("\"sbatch\": No such file"));
}

TEST(ClassifySubmitTest, ARefusedJobIsOverALimitByItselfUnlessThatIsOnTheNumberOfJobs) {
  const v1::Failure alone = OverLimit("QOSMaxCpuPerUserLimit").failure;
  EXPECT_THAT(
      alone.message(),
      HasSubstr("over a limit of its account or QOS: the job itself asks for more CPUs than "
                "its QOS allows one user (QOSMaxCpuPerUserLimit)"));
  EXPECT_THAT(alone.message() + alone.remedy(), Not(HasSubstr("other jobs")));
  EXPECT_THAT(alone.remedy(), HasSubstr("Ask for less, or use another QOS"));
  const v1::Failure job = OverLimit("AssocMaxWallDurationPerJobLimit").failure;
  EXPECT_THAT(job.message(),
              HasSubstr("the job itself asks for more time than its account allows one job"));
  EXPECT_THAT(job.message() + job.remedy(), Not(HasSubstr("cancel it")));
  const v1::Failure full = OverLimit("QOSMaxSubmitJobPerUserLimit").failure;
  EXPECT_THAT(full.message(), HasSubstr("as many jobs as the QOS allows one user"));
  EXPECT_THAT(full.remedy(), HasSubstr("Wait until other jobs have ended"));
}

class SubmissionTest : public ::testing::Test {
 protected:
  std::vector<std::string> Build() {
    const auto submission = MakeSubmission(assignment_, paths_, {{"h100", "H100-sxm"}});
    EXPECT_TRUE(submission.ok()) << submission.status();
    return submission.ok() ? submission->options : std::vector<std::string>();
  }
  v1::JobSpec& spec() { return *assignment_.mutable_spec(); }

  agent::v1::Assignment assignment_;
  RunPaths paths_{"/shared/runs", "k7m2-42-1"};
};

TEST_F(SubmissionTest, ASmallJobAsksForOneTaskOnOneNode) {
  const std::vector<std::string> arguments = Build();
  for (const char* word :
       {"--job-name=k7m2-42-1", "--dependency=singleton", "--nodes=1", "--ntasks-per-node=1",
        "--cpus-per-task=1", "--export=ALL", "--open-mode=append",
        "--output=/shared/runs/k7m2-42-1/slurm-logs/slurm.out"}) {
    EXPECT_THAT(arguments, Contains(word));
  }
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--mem"))));
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--time"))));
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--partition"))));
}

TEST_F(SubmissionTest, AScriptWithAShellHasNoneOfTheAgentsLimits) {
  spec().mutable_slurm()->mutable_batch_script();
  EXPECT_THAT(Build(), Not(Contains(StartsWith("--propagate"))));
  spec().mutable_slurm()->mutable_batch_script()->mutable_environment();
  EXPECT_THAT(Build(), Contains("--propagate=NONE"));
}

TEST_F(SubmissionTest, OptionsOfPluginsAreSbatchsAndThoseOfTheContainerAreNot) {
  spec().mutable_slurm()->mutable_batch_script();
  spec().mutable_slurm()->add_extra_options("--flavour=mint,rose");
  spec().mutable_slurm()->add_extra_options("--container-readonly");
  EXPECT_THAT(Build(), Contains("--flavour=mint,rose"));
  EXPECT_THAT(Build(), Not(Contains("--container-readonly")));
}

TEST_F(SubmissionTest, TheScriptAndItsArgumentsFollowTheOptions) {
  const auto submission = MakeSubmission(assignment_, paths_, {});
  ASSERT_TRUE(submission.ok()) << submission.status();
  std::vector<std::string> words = submission->options;
  words.insert(words.end(), {"/shared/runs/k7m2-42-1/sbatch/batch.sh", "/shared/runs/k7m2-42-1"});
  EXPECT_EQ(SbatchArguments(*submission), words);
}

TEST_F(SubmissionTest, AnArrayHasItsOwnNameAndFilesAndNoSingleton) {
  spec().mutable_slurm()->set_dependency("afterok:5");
  const TaskArray array{
      "k7m2-42-1.array-0a", ArrayPaths("/shared/runs", "k7m2-42-1.array-0a"), {1, 2, 3, 7}, 2};
  const auto submission = MakeSubmission(assignment_, paths_, {}, 9, &array);
  ASSERT_TRUE(submission.ok()) << submission.status();
  const std::string list = "/shared/runs/arrays/k7m2-42-1.array-0a";
  for (const std::string& word :
       {std::string("--job-name=k7m2-42-1.array-0a"), std::string("--array=1-3,7%2"),
        std::string("--dependency=afterany:9,afterok:5"), "--chdir=" + list + ".out",
        "--output=" + list + ".out/%a"}) {
    EXPECT_THAT(submission->options, Contains(word));
  }
  EXPECT_EQ(submission->script, paths_.script());
  EXPECT_THAT(submission->arguments, testing::ElementsAre(list, "array", "1-3,7"));
}

TEST_F(SubmissionTest, OnlyATaskOfAJobArrayMayBeATaskOfSlurms) {
  EXPECT_FALSE(MayBeTask(spec()));
  spec().mutable_slurm()->mutable_batch_script();
  EXPECT_FALSE(MayBeTask(spec()));
  contract::SetArrayTask({.id = 7, .count = 3, .max_id = 9, .place = 1}, &spec());
  EXPECT_TRUE(MayBeTask(spec()));
  spec().mutable_command()->set_script("scancel $SLURM_JOB_ID");
  spec().mutable_slurm()->set_mail_type("END");
  spec().mutable_slurm()->set_signal("USR1@90");
  spec().mutable_slurm()->set_dependency("afterok:5");
  EXPECT_TRUE(MayBeTask(spec())) << "they mean for the array what they mean with sbatch";
}

// All tasks have one name, and run at the same time.
TEST_F(SubmissionTest, ATaskThatWaitsForANameIsAJobOfItsOwn) {
  spec().mutable_slurm()->mutable_batch_script();
  contract::SetArrayTask({.id = 7, .count = 3, .max_id = 9, .place = 1}, &spec());
  for (const char* dependency : {"singleton", "afterok:5,singleton"}) {
    spec().mutable_slurm()->set_dependency(dependency);
    EXPECT_FALSE(MayBeTask(spec())) << dependency;
  }
}

// Slurm knows the id of a task only within an array.
TEST_F(SubmissionTest, ATaskAloneWaitsForTheTaskOfTheSameIdByItsNumber) {
  spec().mutable_slurm()->mutable_batch_script();
  contract::SetArrayTask({.id = 7, .count = 3, .max_id = 9, .place = 1}, &spec());
  spec().mutable_slurm()->set_dependency("afterany:3,aftercorr:5+10:6_2");
  EXPECT_TRUE(MayBeTask(spec()));
  EXPECT_TRUE(WaitsForSameTask(spec()));
  EXPECT_THAT(Build(), Contains("--dependency=singleton,afterany:3,afterok:5_7+10:6_2"));
  const TaskArray array{
      "k7m2-42-1.array-0a", ArrayPaths("/shared/runs", "k7m2-42-1.array-0a"), {6, 7}};
  const auto whole = MakeSubmission(assignment_, paths_, {}, std::nullopt, &array);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->options, Contains("--dependency=afterany:3,aftercorr:5+10:6_2"));
}

TEST_F(SubmissionTest, AmountsAreRoundedUp) {
  spec().set_nodes(3);
  spec().mutable_resources()->set_cpu_millis(7500);
  spec().mutable_resources()->set_memory_bytes((1 << 20) + 1);
  spec().mutable_time_limit()->set_seconds(60);
  spec().mutable_time_limit()->set_nanos(1);
  spec().mutable_slurm()->set_tasks_per_node(3);
  const std::vector<std::string> arguments = Build();
  for (const char* word :
       {"--nodes=3", "--ntasks-per-node=3", "--cpus-per-task=3", "--mem=2M", "--time=2"}) {
    EXPECT_THAT(arguments, Contains(word));
  }
}

TEST_F(SubmissionTest, OnlyALowPriorityIsPassedOnBecauseUsersCannotRaiseTheirs) {
  spec().set_priority(-7);
  EXPECT_THAT(Build(), Contains("--nice=7"));
  for (const int priority : {0, 7}) {
    spec().set_priority(priority);
    EXPECT_THAT(Build(), Not(Contains(StartsWith("--nice")))) << priority;
  }
}

TEST_F(SubmissionTest, EveryOptionOfTheSpecIsPassedOn) {
  spec().mutable_placement()->set_pool("debug");
  v1::SlurmOptions& slurm = *spec().mutable_slurm();
  slurm.set_account("a");
  slurm.set_qos("q");
  slurm.set_reservation("r");
  slurm.set_constraint("c1&c2");
  slurm.set_nodelist("n[1-2]");
  slurm.set_exclude("n3");
  slurm.set_comment("a word; $(id) --wrap=x");
  slurm.set_exclusive(true);
  slurm.set_licenses("matlab:2");
  slurm.set_dependency("afterok:7");
  slurm.set_mail_type("END,FAIL");
  slurm.set_mail_user("ann");
  slurm.set_nice(5);
  slurm.set_requeue(true);
  slurm.set_gres("nvme:1");
  slurm.add_extra_options("--switches=1");
  std::vector<std::string> arguments = Build();
  for (const char* word :
       {"--partition=debug", "--account=a", "--qos=q", "--reservation=r", "--constraint=c1&c2",
        "--nodelist=n[1-2]", "--exclude=n3", "--comment=a word; $(id) --wrap=x", "--exclusive",
        "--licenses=matlab:2", "--dependency=singleton,afterok:7", "--mail-type=END,FAIL",
        "--mail-user=ann", "--nice=5", "--requeue", "--gres=nvme:1", "--switches=1"}) {
    EXPECT_THAT(arguments, Contains(word));
  }
  slurm.set_partition("gpu,short");
  EXPECT_THAT(Build(), Contains("--partition=gpu,short"));
  EXPECT_THAT(Build(), Not(Contains("--partition=debug")));
}

TEST_F(SubmissionTest, NodesOnWhichEarlierRunsFailedAreExcludedBesideTheUsers) {
  assignment_.add_excluded_nodes("n4");
  assignment_.add_excluded_nodes("n5");
  EXPECT_THAT(Build(), Contains("--exclude=n4,n5"));
  spec().mutable_slurm()->set_exclude("n[1-2]");
  EXPECT_THAT(Build(), Contains("--exclude=n[1-2],n4,n5"));
}

TEST_F(SubmissionTest, AHeldJobDoesNotStart) {
  EXPECT_THAT(Build(), Not(Contains("--hold")));
  assignment_.set_held(true);
  EXPECT_THAT(Build(), Contains("--hold"));
}

TEST_F(SubmissionTest, WhatMarksTheDirectoryAsImpliedIsNotForSlurm) {
  const auto plain = Build();
  spec().mutable_slurm()->add_extra_options(std::string(contract::kHereOption));
  EXPECT_EQ(Build(), plain);
}

TEST_F(SubmissionTest, ASignalIsPassedOnInTheFormOfEverySbatch) {
  spec().mutable_slurm()->set_signal("RSIGUSR1");
  EXPECT_THAT(Build(), Contains("--signal=R:USR1@60"));
}

TEST_F(SubmissionTest, ARunStaysASingletonWhateverElseItWaitsFor) {
  spec().mutable_slurm()->set_dependency("afterok:7");
  const auto submission = MakeSubmission(assignment_, paths_, {}, 9);
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_THAT(submission->options, Contains("--dependency=singleton,afterany:9,afterok:7"));
}

TEST_F(SubmissionTest, AJobThatSpreadsItsTasksItselfIsGivenNoOtherShape) {
  spec().mutable_slurm()->add_extra_options("--ntasks=6");
  spec().mutable_resources()->set_cpu_millis(2000);
  EXPECT_THAT(Build(), Contains("--ntasks=6"));
  EXPECT_THAT(Build(), Contains("--cpus-per-task=2"));
  EXPECT_THAT(Build(), Not(Contains(StartsWith("--nodes="))));
  EXPECT_THAT(Build(), Not(Contains(StartsWith("--ntasks-per-node="))));
}

TEST_F(SubmissionTest, ABatchScriptGetsSlurmsDefaultsForAllThatItDoesNotSay) {
  spec().mutable_slurm()->mutable_batch_script();
  spec().set_nodes(1);
  spec().mutable_resources()->set_cpu_millis(1000);
  for (const char* option : {"--nodes", "--ntasks", "--cpus-per-task", "--mem", "--gres"})
    EXPECT_THAT(Build(), Not(Contains(StartsWith(option))));
  spec().set_nodes(2);
  spec().mutable_resources()->set_memory_bytes(1 << 20);
  EXPECT_THAT(Build(), IsSupersetOf({"--nodes=2", "--mem=1M"}));
  EXPECT_THAT(Build(), Not(Contains(StartsWith("--ntasks"))));
  spec().mutable_slurm()->set_tasks_per_node(2);
  EXPECT_THAT(Build(), IsSupersetOf({"--nodes=2", "--ntasks=4", "--ntasks-per-node=2"}));
}

TEST_F(SubmissionTest, OptionsOfABatchScriptTakeThePlaceOfTheFieldsThatSayTheSame) {
  spec().mutable_slurm()->mutable_batch_script();
  spec().mutable_resources()->set_cpu_millis(4000);
  spec().mutable_resources()->set_memory_bytes(1 << 20);
  spec().mutable_resources()->add_gpus()->set_count_millis(2000);
  spec().mutable_slurm()->set_gres("nvme:1");
  const std::vector<std::string> fields = {"--cpus-per-task=4", "--mem=1M", "--gres=gpu:2,nvme:1"};
  EXPECT_THAT(Build(), IsSupersetOf(fields));
  for (const char* option : {"--nodes=1-3", "--cpus-per-gpu=2", "--mem-per-cpu=7", "--gpus=4"})
    spec().mutable_slurm()->add_extra_options(option);
  const std::vector<std::string> given = Build();
  EXPECT_THAT(given,
              IsSupersetOf({"--nodes=1-3", "--cpus-per-gpu=2", "--mem-per-cpu=7", "--gpus=4"}));
  for (const std::string& field : fields) EXPECT_THAT(given, Not(Contains(field)));
  // Other jobs keep their cores beside tasks that Slurm spreads.
  spec().mutable_slurm()->clear_batch_script();
  EXPECT_THAT(Build(), IsSupersetOf(fields));
}

// A condition of Muster's own would have to be fulfilled, too.
TEST_F(SubmissionTest, WhereOneConditionIsEnoughTheClaimAloneKeepsSubmissionsApart) {
  spec().mutable_slurm()->set_dependency("afterok:7?afterok:8");
  EXPECT_THAT(Build(), Contains("--dependency=afterok:7?afterok:8"));
}

TEST_F(SubmissionTest, RequeueIsLeftToTheClusterUnlessTheJobSays) {
  EXPECT_THAT(Build(), Not(Contains(HasSubstr("requeue"))));
  spec().mutable_slurm()->set_requeue(false);
  EXPECT_THAT(Build(), Contains("--no-requeue"));
}

TEST_F(SubmissionTest, NiceAndALowPriorityAddUp) {
  spec().mutable_slurm()->set_nice(5);
  spec().set_priority(-7);
  EXPECT_THAT(Build(), Contains("--nice=12"));
}

TEST_F(SubmissionTest, GpusAndOtherResourcesShareOneOption) {
  spec().mutable_resources()->add_gpus()->set_count_millis(2000);
  spec().mutable_slurm()->set_gres("nvme:1,fpga:2");
  EXPECT_THAT(Build(), Contains("--gres=gpu:2,nvme:1,fpga:2"));
}

TEST_F(SubmissionTest, GpuTypesAreSpelledAsTheClusterSpellsThem) {
  v1::GpuRequest* gpus = spec().mutable_resources()->add_gpus();
  gpus->set_count_millis(2000);
  EXPECT_THAT(Build(), Contains("--gres=gpu:2"));
  gpus->set_type("H100");
  EXPECT_THAT(Build(), Contains("--gres=gpu:H100-sxm:2"));
  gpus->set_type("A100");
  EXPECT_THAT(Build(), Contains("--gres=gpu:A100:2"));
}

TEST_F(SubmissionTest, AValueThatSlurmCouldMisreadIsRefusedByName) {
  spec().mutable_slurm()->set_account("a\n#SBATCH --uid=0");
  const auto submission = MakeSubmission(assignment_, paths_, {});
  const auto bad = contract::GetBadRequest(submission.status());
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->field_violations(0).field(), "slurm.account");

  spec().clear_slurm();
  spec().mutable_resources()->add_gpus()->set_type("h100:8,foo");
  EXPECT_FALSE(MakeSubmission(assignment_, paths_, {}).ok());
}

}  // namespace
}  // namespace muster::slurm
