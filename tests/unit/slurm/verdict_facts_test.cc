// The codes and fields of what a verdict says, which programs read.
#include "agents/slurm/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

constexpr Patience kPatience{absl::Seconds(30), absl::Seconds(60)};

RunFacts InQueue(std::string_view state, std::string reason) {
  RunFacts facts;
  facts.run_key = "k7m2-42-1";
  facts.job_id = {17};
  facts.now = absl::FromUnixSeconds(1000);
  facts.queue_answered = true;
  facts.queue = QueueRow{};
  facts.queue->job_id = {17};
  facts.queue->state = ParseState(state);
  facts.queue->reason = std::move(reason);
  facts.queue->node_list = "n[1-2]";
  facts.queue->start_time = absl::FromUnixSeconds(1100);
  return facts;
}

v1::Failure FailureOf(ExitRecord::Problem problem, std::string phase = "command",
                      ExitRecord::Cause cause = ExitRecord::Cause::kNone,
                      const std::string& about = "", const std::string& slurms_words = "") {
  RunFacts facts = InQueue("FAILED", "NonZeroExitCode");
  facts.record = ExitRecord{};
  facts.record->job_id = {17};
  facts.record->phase = std::move(phase);
  facts.record->problem = problem;
  facts.record->cause = cause;
  facts.record->about = about;
  facts.record->restart = 4;
  facts.slurm_output =
      "muster: the job could not be requeued: no reason\nmuster: cannot open --moon\n"
      "muster: image: /x is not there\n" +
      slurms_words;
  facts.record->code = 1;
  facts.record->rank = 1;
  facts.record->start = absl::FromUnixSeconds(901);
  facts.record->end = absl::FromUnixSeconds(950);
  return *Judge(facts, kPatience)->failure;
}

// A file server that is away for hours makes no run LOST, with or without accounting.
TEST(VerdictFacts, ARecordThatCannotBeReadIsNoProofThatThereIsNone) {
  for (const auto answer : {RunFacts::History::kAnswered, RunFacts::History::kUnavailable}) {
    RunFacts facts = InQueue("RUNNING", "None");
    facts.queue.reset();
    facts.history_answer = answer;
    facts.missing_for = absl::Hours(9);
    facts.record_error = "list /runs/ended: Stale file handle";
    const auto waits = Judge(facts, kPatience);
    ASSERT_TRUE(waits.has_value());
    EXPECT_EQ(waits->state, v1::RUN_STATE_FINISHING);
    EXPECT_EQ(waits->reason.code(), v1::STATE_REASON_CODE_READING_END);
    EXPECT_THAT(waits->reason.message(), HasSubstr("Stale file handle"));
    facts.job_id.task = 4;
    facts.cancel_asked = true;
    EXPECT_EQ(Judge(facts, kPatience)->state, v1::RUN_STATE_FINISHING)
        << "whether it was canceled before it began is not known either";
    facts.job_id.task.reset();
    facts.cancel_asked = false;
    facts.unread_for = absl::Hours(24);
    const auto lost = Judge(facts, kPatience);
    EXPECT_EQ(lost->state, v1::RUN_STATE_LOST);
    EXPECT_THAT(lost->evidence.detail(), HasSubstr("could not be read: list /runs/ended"));
    facts.record_error.clear();
    facts.unread_for = absl::ZeroDuration();
    EXPECT_EQ(Judge(facts, kPatience)->state, v1::RUN_STATE_LOST);
  }
}

// Nobody waits a day for the end of a run that was to end.
TEST(VerdictFacts, ACanceledRunWhoseRecordCannotBeReadIsCanceledOnceSlurmHasForgottenIt) {
  for (const auto answer : {RunFacts::History::kAnswered, RunFacts::History::kUnavailable}) {
    RunFacts facts = InQueue("RUNNING", "None");
    facts.record_error = "Stale file handle";
    facts.cancel_asked = true;
    facts.unread_for = absl::Minutes(10);
    EXPECT_EQ(Judge(facts, kPatience)->state, v1::RUN_STATE_RUNNING) << "Slurm has it still";
    facts.queue.reset();
    facts.history_answer = answer;
    const auto canceled = Judge(facts, kPatience);
    EXPECT_EQ(canceled->state, v1::RUN_STATE_CANCELED);
    EXPECT_THAT(canceled->evidence.detail(), HasSubstr("could not be read for 10m: Stale file"));
    facts.unread_for = absl::Minutes(9);
    const auto waits = Judge(facts, kPatience);
    EXPECT_EQ(waits->state, v1::RUN_STATE_FINISHING);
    EXPECT_THAT(waits->reason.message(), HasSubstr("it counts as canceled after 10m"));
    facts.history_answer = RunFacts::History::kNoAnswer;
    facts.unread_for = absl::Minutes(10);
    EXPECT_FALSE(Judge(facts, kPatience).has_value()) << "accounting may know how it ended";
  }
}

// Slurm does not know the cause: an image, a file, a time-out.
TEST(VerdictFacts, AFailureWaitsForItsRecordAndThenSaysThatItCouldNotBeRead) {
  RunFacts in_queue = InQueue("FAILED", "NonZeroExitCode");
  in_queue.history_answer = RunFacts::History::kAnswered;
  in_queue.history = HistoryRow{};
  in_queue.history->job_id = {17};
  in_queue.history->state = ParseState("FAILED");
  in_queue.history->exit_code = 1;
  in_queue.history->node_list = "n1";
  in_queue.record_error = "Stale file handle";
  in_queue.ended_for = absl::Hours(9);
  RunFacts gone = in_queue;
  gone.queue.reset();
  for (RunFacts facts : {in_queue, gone}) {
    EXPECT_EQ(Judge(facts, kPatience)->state, v1::RUN_STATE_FINISHING);
    facts.record_is_torn = true;
    EXPECT_EQ(Judge(facts, kPatience)->state, v1::RUN_STATE_FAILED) << "it never becomes whole";
    facts.record_is_torn = false;
    facts.unread_for = absl::Minutes(10);
    const auto failed = Judge(facts, kPatience);
    EXPECT_EQ(failed->state, v1::RUN_STATE_FAILED);
    EXPECT_THAT(failed->failure->message(), HasSubstr("could not be read: Stale file handle"));
  }
}

TEST(VerdictFacts, ARunWhoseNodeLostItsBatchScriptIsRetriable) {
  RunFacts facts = InQueue("FAILED", "NonZeroExitCode");
  facts.history_answer = RunFacts::History::kAnswered;
  facts.history = HistoryRow{};
  facts.history->job_id = {17};
  facts.history->state = ParseState("FAILED");
  facts.history->exit_code = 2;
  facts.history->node_list = "n2";
  facts.slurm_output =
      "slurmstepd-n2: error: execve(): /spool/n2/job00017/slurm_script: No such file or directory\n"
      "slurmstepd-n2: error: unlink(/spool/n2/job00017/slurm_script): No such file or directory\n";
  const auto failed = Judge(facts, kPatience);
  EXPECT_EQ(failed->failure->code(), v1::FAILURE_CODE_LAUNCH_FAILED);
  EXPECT_EQ(failed->failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(failed->failure->retriable());
  EXPECT_THAT(failed->failure->quotes(0).text(), HasSubstr("execve()"));
  facts.slurm_output = "error: execve(): /spool/n2/job00017/slurm_script: a program's words\n";
  EXPECT_EQ(Judge(facts, kPatience)->failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
}

TEST(VerdictFacts, AFailureHasItsPhaseItsRankAndItsNode) {
  using Problem = ExitRecord::Problem;
  EXPECT_EQ(FailureOf(Problem::kNone).phase(), v1::FAILURE_PHASE_COMMAND);
  EXPECT_EQ(FailureOf(Problem::kNone, "setup").phase(), v1::FAILURE_PHASE_SETUP);
  EXPECT_EQ(FailureOf(Problem::kStart, "setup").phase(), v1::FAILURE_PHASE_SETUP_START);
  EXPECT_EQ(FailureOf(Problem::kStart).phase(), v1::FAILURE_PHASE_COMMAND_START);
  EXPECT_EQ(FailureOf(Problem::kFiles).phase(), v1::FAILURE_PHASE_FILES);
  EXPECT_EQ(FailureOf(Problem::kImage).phase(), v1::FAILURE_PHASE_IMAGE);
  EXPECT_EQ(FailureOf(Problem::kNone).rank(), 1u);
  EXPECT_EQ(FailureOf(Problem::kNone).node(), "n2");
}

TEST(VerdictFacts, WhatHappenedHasItsCode) {
  using Problem = ExitRecord::Problem;
  const auto code = [](Problem problem, const char* phase = "command") {
    return FailureOf(problem, phase).code();
  };
  EXPECT_EQ(code(Problem::kNone), v1::FAILURE_CODE_COMMAND_FAILED);
  EXPECT_EQ(FailureOf(Problem::kNone).detail(), "FAILED (NonZeroExitCode)");
  EXPECT_EQ(FailureOf(Problem::kNone).exit().code(), 1);
  EXPECT_EQ(code(Problem::kNone, "setup"), v1::FAILURE_CODE_SETUP_FAILED);
  EXPECT_EQ(code(Problem::kStart), v1::FAILURE_CODE_PROGRAM_NOT_STARTED);
  EXPECT_EQ(code(Problem::kWorkingDirectory), v1::FAILURE_CODE_WORKING_DIRECTORY);
  EXPECT_EQ(code(Problem::kFiles), v1::FAILURE_CODE_RUN_FILES_UNREADABLE);
  EXPECT_EQ(code(Problem::kSrun), v1::FAILURE_CODE_LAUNCH_FAILED);
  EXPECT_EQ(code(Problem::kTimeout), v1::FAILURE_CODE_NOT_REQUEUED);
  EXPECT_EQ(code(Problem::kStreams), v1::FAILURE_CODE_FILE_NOT_OPENED);
  EXPECT_EQ(code(Problem::kUnknown), v1::FAILURE_CODE_END_UNKNOWN);
  EXPECT_EQ(FailureOf(Problem::kImage, "command", ExitRecord::Cause::kNoSquashfs, "/x").code(),
            v1::FAILURE_CODE_IMAGE_BROKEN);
}

TEST(VerdictFacts, WhatBatchScriptFoundIsReadFromItsRecordAlone) {
  using Problem = ExitRecord::Problem;
  using Cause = ExitRecord::Cause;
  const auto message = [](Problem problem, Cause cause = Cause::kNone, const char* about = "") {
    return FailureOf(problem, "command", cause, about).message();
  };
  EXPECT_THAT(message(Problem::kTimeout, Cause::kRestartLimit, "4"),
              HasSubstr("was not requeued: it has been started again 4 times, and "
                        "slurm.max_timeout_requeues is 4: "));
  EXPECT_THAT(message(Problem::kTimeout, Cause::kRefused, "Invalid job id"),
              HasSubstr("was not requeued: Invalid job id: "));
  EXPECT_THAT(message(Problem::kTimeout), HasSubstr("and the job was not requeued: FAILED"));
  EXPECT_THAT(
      message(Problem::kStreams, Cause::kError, "/a b"),
      HasSubstr("could not be opened on rank 1 (n2): --error (slurm.batch_script.error): /a b: "));
  EXPECT_THAT(message(Problem::kStreams), HasSubstr("could not be opened on rank 1 (n2): FAILED"));
  EXPECT_THAT(message(Problem::kImage, Cause::kStopped, "/x.sqsh"),
              HasSubstr("The image could not be converted: its conversion was stopped: FAILED "
                        "(NonZeroExitCode) (rank 1, n2)"));
  EXPECT_THAT(message(Problem::kImage, Cause::kConversion, "/x.sqsh"),
              HasSubstr("The image could not be converted: enroot could not do it: FAILED"));
  EXPECT_THAT(message(Problem::kImage, Cause::kOutOfMemory, "/x.sqsh"),
              HasSubstr("The image could not be converted: its conversion needed more memory than "
                        "it had: FAILED"));
}

TEST(VerdictFacts, AStepThatSrunCouldNotRunIsOfNoRank) {
  const v1::Failure failure = FailureOf(ExitRecord::Problem::kSrun);
  EXPECT_FALSE(failure.has_rank());
  EXPECT_THAT(failure.message(), HasSubstr("The run could not be started: srun could not run"));
}

TEST(VerdictFacts, MemoryThatRanOutIsNotToldInWordsAboutAnImageOrAProgram) {
  using Problem = ExitRecord::Problem;
  const std::string killed = "slurmstepd-n2: error: Detected 1 oom_kill event in StepId=17.0\n";
  for (const Problem problem : {Problem::kImage, Problem::kStart, Problem::kStreams}) {
    const v1::Failure failure =
        FailureOf(problem, "command", ExitRecord::Cause::kStopped, "/x", killed);
    EXPECT_EQ(failure.code(), v1::FAILURE_CODE_OUT_OF_MEMORY);
    EXPECT_EQ(failure.meaning(), "");
    EXPECT_EQ(failure.subject(), "");
    EXPECT_THAT(failure.message(),
                HasSubstr("used more memory than it had on rank 1 (n2): FAILED"));
  }
  EXPECT_EQ(
      FailureOf(Problem::kNone, "command", ExitRecord::Cause::kNone, "", killed).exit().code(), 1);
}

TEST(VerdictFacts, TheMemoryThatWasAskedForIsNamedIfItRanOut) {
  RunFacts facts = InQueue("OUT_OF_MEMORY", "OutOfMemory");
  facts.memory_limit_bytes = uint64_t{2} << 30;
  facts.history_answer = RunFacts::History::kAnswered;
  facts.history = HistoryRow{};
  facts.history->state = ParseState("OUT_OF_MEMORY");
  const v1::Failure failure = *Judge(facts, kPatience)->failure;
  EXPECT_EQ(failure.memory_limit_bytes(), uint64_t{2} << 30);
  EXPECT_THAT(failure.message(), HasSubstr("its memory limit of 2Gi"));
  facts.queue->state = ParseState("NODE_FAIL");
  EXPECT_EQ(Judge(facts, kPatience)->failure->memory_limit_bytes(), 0u) << "that was not why";
}

TEST(VerdictFacts, TheMemoryOfAConversionIsNotTheRuns) {
  const v1::Failure failure =
      FailureOf(ExitRecord::Problem::kImage, "command", ExitRecord::Cause::kOutOfMemory, "/x",
                "muster: image: slurmstepd-n1: error: Detected 1 oom_kill event in StepId=16.0.\n");
  EXPECT_EQ(failure.code(), v1::FAILURE_CODE_IMAGE_NOT_CONVERTED);
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(failure.remedy(), HasSubstr("slurm.conversion_memory"));
  ASSERT_GE(failure.quotes_size(), 1);
  EXPECT_THAT(failure.quotes(0).text(), HasSubstr("oom_kill event in StepId=16.0"));
}

TEST(VerdictFacts, HowSlurmEndedAConversionIsSaidAndQuoted) {
  RunFacts facts = InQueue("FAILED", "NonZeroExitCode");
  facts.record = ExitRecord{};
  facts.record->job_id = {17};
  facts.record->phase = "command";
  facts.record->problem = ExitRecord::Problem::kImage;
  facts.record->cause = ExitRecord::Cause::kStopped;
  facts.record->code = 1;
  facts.ended_conversion = QueueRow{};
  facts.ended_conversion->job_id = {16};
  facts.ended_conversion->state = ParseState("TIMEOUT");
  facts.ended_conversion->reason = "TimeLimit";
  const v1::Failure failure = *Judge(facts, kPatience)->failure;
  EXPECT_THAT(failure.message(), HasSubstr("its conversion reached its time limit"));
  EXPECT_EQ(failure.quotes(0).source(), "squeue");
  EXPECT_EQ(failure.quotes(0).text(), "the conversion, Slurm job 16: TIMEOUT (TimeLimit)");
}

v1::StateReason WhyPending(const std::string& word) {
  return Judge(InQueue("PENDING", word), kPatience)->reason;
}

TEST(VerdictFacts, WhyARunWaitsHasACodeAndSlurmsWord) {
  EXPECT_EQ(WhyPending("Resources").code(), v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
  EXPECT_EQ(WhyPending("Resources").scheduler_reason(), "Resources");
  EXPECT_FALSE(WhyPending("Resources").has_until());
  EXPECT_EQ(WhyPending("JobHeldUser").code(), v1::STATE_REASON_CODE_HELD);
  EXPECT_EQ(WhyPending("BeginTime").until().seconds(), 1100);
  EXPECT_EQ(WhyPending("None").code(), v1::STATE_REASON_CODE_UNSPECIFIED);
}

TEST(VerdictFacts, ALimitOnItsUsersJobsIsTheJobsOwnWhereNoOtherRuns) {
  RunFacts facts = InQueue("PENDING", "QOSMaxCpuPerUserLimit");
  facts.none_runs_for = kAloneAfter - absl::Seconds(1);
  const v1::StateReason among_others = Judge(facts, kPatience)->reason;
  EXPECT_EQ(among_others.code(), v1::STATE_REASON_CODE_LIMIT_REACHED);
  EXPECT_THAT(among_others.message(), HasSubstr("with its user's other jobs"));
  facts.none_runs_for = kAloneAfter;
  const v1::StateReason alone = Judge(facts, kPatience)->reason;
  EXPECT_EQ(alone.code(), v1::STATE_REASON_CODE_CANNOT_START);
  EXPECT_EQ(alone.message(),
            "the job itself asks for more CPUs than its QOS allows one user "
            "(QOSMaxCpuPerUserLimit)");
  EXPECT_THAT(alone.remedy(), HasSubstr("cancel it and ask for less"));
  // Other users' jobs are not seen.
  facts.queue->reason = "QOSGrpCpuLimit";
  EXPECT_EQ(Judge(facts, kPatience)->reason.code(), v1::STATE_REASON_CODE_LIMIT_REACHED);
}

TEST(VerdictFacts, ARunThatWaitsForItsImageNamesTheJobThatConvertsIt) {
  RunFacts facts = InQueue("PENDING", "Dependency");
  facts.conversion = QueueRow{};
  facts.conversion->job_id = {16};
  facts.conversion->state = ParseState("PENDING");
  facts.conversion->reason = "Priority";
  const v1::StateReason reason = Judge(facts, kPatience)->reason;
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_PULLING_IMAGE);
  EXPECT_EQ(reason.subject(), "Slurm job 16");
}

}  // namespace
}  // namespace muster::slurm
