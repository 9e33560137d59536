#include "agents/slurm/verdict.h"

#include "agents/slurm/explain_end.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using History = RunFacts::History;

constexpr Patience kPatience{absl::Seconds(30), absl::Seconds(60)};
constexpr char kTimeLimitOutput[] =
    "slurmstepd-n1: error: *** JOB 17 ON n1 CANCELLED AT 2026-11-21T03:00:00 DUE TO TIME LIMIT "
    "***\n";

// Builds what is known of Slurm job 17.
class Facts {
 public:
  Facts() {
    facts_.run_key = "k7m2-42-1";
    facts_.job_id = {17};
    facts_.now = absl::FromUnixSeconds(1000);
    facts_.queue_answered = true;
  }
  Facts& Queue(std::string_view state, std::string reason = "None") {
    facts_.queue = QueueRow{};
    facts_.queue->job_id = {17};
    facts_.queue->state = ParseState(state);
    facts_.queue->reason = std::move(reason);
    facts_.queue->node_list = "n[1-2]";
    facts_.queue->start_time = absl::FromUnixSeconds(900);
    return *this;
  }
  // Makes a task of array 17.
  Facts& Task() {
    facts_.job_id = {17, 4};
    return *this;
  }
  Facts& ArrayIsKnown() {
    facts_.array_is_known = true;
    return *this;
  }
  Facts& MayHaveStarted() {
    facts_.may_have_started = true;
    return *this;
  }
  Facts& LastState(v1::RunState state) {
    facts_.last_state = state;
    return *this;
  }
  Facts& NoAnswer() {
    facts_.queue_answered = false;
    return *this;
  }
  Facts& History(std::string_view state, int code = 0, int signal = 0, std::string nodes = "n1") {
    facts_.history_answer = History::kAnswered;
    facts_.history = HistoryRow{};
    facts_.history->job_id = {17};
    facts_.history->state = ParseState(state);
    facts_.history->exit_code = code;
    facts_.history->signal = signal;
    facts_.history->node_list = std::move(nodes);
    return *this;
  }
  Facts& Answer(RunFacts::History answer) {
    facts_.history_answer = answer;
    return *this;
  }
  Facts& Record(int code, int signal = 0, uint32_t rank = 0) {
    facts_.record = ExitRecord{};
    facts_.record->job_id = {17};
    facts_.record->phase = "command";
    facts_.record->code = code;
    facts_.record->signal = signal;
    facts_.record->rank = rank;
    facts_.record->start = absl::FromUnixSeconds(901);
    facts_.record->end = absl::FromUnixSeconds(950);
    return *this;
  }
  Facts& Terminated() {
    facts_.record->terminated = true;
    return *this;
  }
  Facts& Continued() {
    facts_.record->continued = true;
    return *this;
  }
  // Sets the time at which the time limit ends the run, in seconds; the record's end is at 950.
  Facts& LimitEnd(int64_t seconds) {
    facts_.limit_end = absl::FromUnixSeconds(seconds);
    return *this;
  }
  Facts& Problem(ExitRecord::Problem problem, std::string phase = "command") {
    facts_.record->problem = problem;
    facts_.record->phase = std::move(phase);
    return *this;
  }
  Facts& Output(std::string text) {
    facts_.slurm_output = std::move(text);
    return *this;
  }
  Facts& CancelAsked() {
    facts_.cancel_asked = true;
    return *this;
  }
  Facts& For(absl::Duration time) {
    facts_.ended_for = time;
    facts_.missing_for = time;
    return *this;
  }
  operator const RunFacts&() const { return facts_; }  // NOLINT(google-explicit-constructor)

 private:
  using HistoryAnswer = RunFacts::History;
  RunFacts facts_;
};

std::optional<agents::Observation> Judged(const RunFacts& facts) { return Judge(facts, kPatience); }

v1::RunState StateOf(const RunFacts& facts) {
  const auto seen = Judge(facts, kPatience);
  return seen.has_value() ? seen->state : v1::RUN_STATE_UNSPECIFIED;
}

v1::FailureClass ClassOf(const RunFacts& facts) {
  const auto seen = Judge(facts, kPatience);
  EXPECT_TRUE(seen.has_value() && seen->failure.has_value());
  if (!seen.has_value() || !seen->failure.has_value()) return v1::FAILURE_CLASS_UNSPECIFIED;
  EXPECT_EQ(seen->state, v1::RUN_STATE_FAILED);
  EXPECT_NE(seen->failure->remedy(), "");
  return seen->failure->failure_class();
}

TEST(JudgeTest, AJobInTheQueueIsInTheStateThatSlurmTells) {
  const std::pair<const char*, v1::RunState> cases[] = {
      {"PENDING", v1::RUN_STATE_PENDING},      {"CONFIGURING", v1::RUN_STATE_STARTING},
      {"RUNNING", v1::RUN_STATE_RUNNING},      {"SUSPENDED", v1::RUN_STATE_SUSPENDED},
      {"COMPLETING", v1::RUN_STATE_FINISHING}, {"REQUEUED", v1::RUN_STATE_PENDING},
  };
  for (const auto& [word, state] : cases) EXPECT_EQ(StateOf(Facts().Queue(word)), state) << word;
  const auto seen = Judged(Facts().Queue("RUNNING"));
  EXPECT_EQ(seen->evidence.source(), v1::EVIDENCE_SOURCE_SQUEUE);
  EXPECT_EQ(seen->external_id, "17");
  EXPECT_THAT(seen->nodes, testing::ElementsAre("n1", "n2"));
  EXPECT_NE(Judged(Facts().Queue("PENDING", "Resources"))->reason.message(), "");
  EXPECT_EQ(Judged(Facts().Queue("PENDING"))->start_time, std::nullopt)
      << "Slurm's guess is no start";
}

TEST(JudgeTest, AnUnknownWordChangesNothing) {
  EXPECT_FALSE(Judged(Facts().Queue("UPDATE_DB")).has_value());
  EXPECT_FALSE(Judged(Facts().Queue("UPDATE_DB").For(absl::Hours(9))).has_value());
  EXPECT_FALSE(Judged(Facts().History("UPDATE_DB").For(absl::Seconds(59))).has_value());
}

TEST(JudgeTest, AQueueThatCouldNotBeAskedChangesNothing) {
  EXPECT_FALSE(Judged(Facts().NoAnswer().For(absl::Hours(9))).has_value());
  EXPECT_FALSE(NeedsHistory(Facts().NoAnswer()));
}

TEST(JudgeTest, AnExitRecordWithZeroIsProofByItself) {
  for (const RunFacts& facts : {RunFacts(Facts().NoAnswer().Record(0)), RunFacts(Facts().Record(0)),
                                RunFacts(Facts().Queue("RUNNING").Record(0)),
                                RunFacts(Facts().Queue("COMPLETED").Record(0))}) {
    EXPECT_EQ(StateOf(facts), v1::RUN_STATE_SUCCEEDED);
    EXPECT_FALSE(NeedsHistory(facts));
  }
  const auto seen = Judged(Facts().Record(0));
  EXPECT_EQ(seen->evidence.source(), v1::EVIDENCE_SOURCE_EXIT_RECORD);
  EXPECT_EQ(seen->end_time, absl::FromUnixSeconds(950));
  ASSERT_TRUE(seen->exit.has_value());
}

TEST(JudgeTest, AnyOtherRecordWaitsForSlurmsVerdict) {
  EXPECT_EQ(StateOf(Facts().NoAnswer().Record(3)), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateOf(Facts().Queue("RUNNING").Record(3)), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateOf(Facts().Queue("COMPLETING").Record(0, 15)), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateOf(Facts().Queue("RUNNING").Record(0).Terminated()), v1::RUN_STATE_FINISHING);
}

TEST(JudgeTest, ARecordFromBeforeARequeueIsVoid) {
  EXPECT_EQ(StateOf(Facts().Queue("PENDING", "BeginTime").Record(0, 15)), v1::RUN_STATE_PENDING);
}

TEST(JudgeTest, WithoutTheQueueNoRecordMovesARunThatWaits) {
  const Facts waits = Facts().NoAnswer().LastState(v1::RUN_STATE_PENDING);
  EXPECT_FALSE(Judged(Facts(waits).Record(0, 15)).has_value());
  EXPECT_FALSE(Judged(Facts(waits).Record(3)).has_value());
  EXPECT_FALSE(Judged(Facts(waits).Record(0).Terminated()).has_value());
  EXPECT_FALSE(Judged(Facts(waits).Record(0).LimitEnd(950)).has_value());
  EXPECT_EQ(StateOf(Facts(waits).Record(0)), v1::RUN_STATE_SUCCEEDED) << "it does not run again";
}

TEST(JudgeTest, AFailureHasTheCodeSignalAndRankOfTheRecord) {
  const auto code = Judged(Facts().Queue("FAILED", "NonZeroExitCode").Record(3, 0, 1));
  ASSERT_TRUE(code.has_value());
  EXPECT_EQ(code->state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(code->exit->code(), 3);
  EXPECT_EQ(code->exit->rank(), 1u);
  EXPECT_EQ(code->failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_THAT(code->failure->message(), HasSubstr("exit code 3 on rank 1"));
  EXPECT_THAT(code->failure->message(), HasSubstr("FAILED (NonZeroExitCode)"));
  const auto signal = Judged(Facts().Queue("FAILED").Record(0, 11));
  EXPECT_EQ(signal->exit->signal(), 11);
  EXPECT_THAT(signal->failure->message(), HasSubstr("signal 11 (SIGSEGV)"));
}

TEST(JudgeTest, TheRecordSaysInWhichPhaseAndWhyARunFailed) {
  using Problem = ExitRecord::Problem;
  const auto with = [](Problem problem, std::string phase = "command") {
    return ClassOf(Facts().Queue("FAILED").Record(1).Problem(problem, std::move(phase)));
  };
  EXPECT_EQ(with(Problem::kNone), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(with(Problem::kNone, "setup"), v1::FAILURE_CLASS_CONFIG);
  const auto setup = Facts().Queue("FAILED").Record(7).Problem(Problem::kNone, "setup");
  EXPECT_FALSE(Judged(setup)->exit.has_value()) << "its code is not the command's";
  EXPECT_EQ(with(Problem::kStart), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(with(Problem::kWorkingDirectory), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(with(Problem::kFiles), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(with(Problem::kSrun), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(with(Problem::kUnknown), v1::FAILURE_CLASS_INFRA);
}

TEST(JudgeTest, EachEndThatSlurmDecidesHasItsClass) {
  const std::pair<const char*, v1::FailureClass> cases[] = {
      {"TIMEOUT", v1::FAILURE_CLASS_TIMEOUT},   {"DEADLINE", v1::FAILURE_CLASS_TIMEOUT},
      {"OUT_OF_MEMORY", v1::FAILURE_CLASS_OOM}, {"NODE_FAIL", v1::FAILURE_CLASS_INFRA},
      {"BOOT_FAIL", v1::FAILURE_CLASS_INFRA},   {"PREEMPTED", v1::FAILURE_CLASS_PREEMPTED},
      {"REVOKED", v1::FAILURE_CLASS_INFRA},
  };
  for (const auto& [word, failure_class] : cases) {
    EXPECT_EQ(ClassOf(Facts().Queue(word)), failure_class) << word;
    EXPECT_EQ(ClassOf(Facts().History(word)), failure_class) << word << ", from sacct";
    EXPECT_EQ(ClassOf(Facts().Queue(word).Record(0, 15)), failure_class)
        << word << ", with a record";
  }
}

TEST(JudgeTest, AZeroAfterATermIsWhatSlurmCallsIt) {
  EXPECT_EQ(StateOf(Facts().Queue("CANCELLED").Record(0).Terminated().CancelAsked()),
            v1::RUN_STATE_CANCELED);
  EXPECT_EQ(ClassOf(Facts().Queue("TIMEOUT").Record(0).Terminated()), v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_EQ(StateOf(Facts().Queue("COMPLETED").Record(0).Terminated()), v1::RUN_STATE_SUCCEEDED);
}

TEST(JudgeTest, AZeroIsDoubtedWhereSlurmMayHaveStoppedTheCommand) {
  const std::pair<RunFacts, Doubt> cases[] = {
      {Facts().Record(0), Doubt::kNone},
      {Facts().NoAnswer().Record(0), Doubt::kNone},
      {Facts().Queue("RUNNING").Record(0), Doubt::kNone},
      {Facts().Queue("PENDING", "BeginTime").Record(0), Doubt::kNone},
      {Facts().Queue("COMPLETED").Record(0), Doubt::kNone},
      {Facts().Queue("FAILED").Record(0), Doubt::kNone},
      {Facts().Record(0).CancelAsked(), Doubt::kNone},
      {Facts().Record(0).Terminated(), Doubt::kSignal},
      {Facts().Record(0).Continued(), Doubt::kSignal},
      {Facts().Record(0).LimitEnd(961), Doubt::kNone},
      {Facts().Record(0).LimitEnd(960), Doubt::kTimeLimit},
      {Facts().Record(0).LimitEnd(900), Doubt::kTimeLimit},
      {Facts().Queue("CANCELLED").Record(0), Doubt::kStopped},
      {Facts().Queue("TIMEOUT").Record(0), Doubt::kStopped},
      {Facts().Queue("PREEMPTED").Record(0), Doubt::kStopped},
      {Facts().Queue("NODE_FAIL").Record(0), Doubt::kStopped},
      {Facts().Queue("OUT_OF_MEMORY").Record(0), Doubt::kStopped},
      {Facts().Queue("DEADLINE").Record(0), Doubt::kStopped},
  };
  for (const auto& [facts, doubt] : cases) {
    const std::string name =
        (facts.queue.has_value() ? facts.queue->state.word : "no row") + ", limit " +
        (facts.limit_end.has_value() ? absl::FormatTime(*facts.limit_end) : "none");
    EXPECT_EQ(DoubtOf(facts), doubt) << name;
    EXPECT_EQ(ProvesSuccess(facts), doubt == Doubt::kNone) << name;
    EXPECT_EQ(StateOf(facts) == v1::RUN_STATE_SUCCEEDED, doubt == Doubt::kNone) << name;
  }
  EXPECT_FALSE(ProvesSuccess(Facts()));
  EXPECT_FALSE(ProvesSuccess(Facts().Record(3)));
}

TEST(JudgeTest, ASuccessThatItsRecordAloneProvesHasTheNodesOfTheRecord) {
  RunFacts facts = Facts().Record(0);
  facts.record->node_list = "n[1-2]";
  const std::optional<agents::Observation> seen = Judge(facts, Patience());
  ASSERT_TRUE(seen.has_value());
  EXPECT_THAT(seen->nodes, testing::ElementsAre("n1", "n2"));
}

TEST(JudgeTest, ADoubtedZeroWaitsForSlurmAndThenIsWhatSlurmCallsIt) {
  using Build = Facts (*)();
  const Build doubted[] = {[] { return Facts().Record(0).Continued(); },
                           [] { return Facts().Record(0).LimitEnd(950); }};
  for (const Build facts : doubted) {
    EXPECT_EQ(StateOf(facts().NoAnswer()), v1::RUN_STATE_FINISHING);
    EXPECT_EQ(StateOf(facts().Queue("COMPLETING")), v1::RUN_STATE_FINISHING);
    EXPECT_EQ(StateOf(facts().Queue("COMPLETED")), v1::RUN_STATE_SUCCEEDED);
    EXPECT_EQ(ClassOf(facts().Queue("TIMEOUT")), v1::FAILURE_CLASS_TIMEOUT);
    EXPECT_EQ(ClassOf(facts().Queue("PREEMPTED")), v1::FAILURE_CLASS_PREEMPTED);
    EXPECT_EQ(StateOf(facts().Queue("CANCELLED").CancelAsked()), v1::RUN_STATE_CANCELED);
    EXPECT_EQ(StateOf(facts().Queue("PENDING", "BeginTime")), v1::RUN_STATE_PENDING);
    EXPECT_TRUE(NeedsHistory(facts()));
    EXPECT_EQ(StateOf(facts().Answer(History::kNoAnswer)), v1::RUN_STATE_FINISHING);
    EXPECT_EQ(StateOf(facts().History("COMPLETED")), v1::RUN_STATE_SUCCEEDED);
    EXPECT_EQ(ClassOf(facts().History("TIMEOUT")), v1::FAILURE_CLASS_TIMEOUT);
  }
}

TEST(JudgeTest, AnEndThatTheNodeDidNotLearnHasNoCodeAndIsWhatSlurmCallsIt) {
  const Facts unknown = Facts().Record(1).Problem(ExitRecord::Problem::kUnknown).Terminated();
  EXPECT_EQ(StateOf(Facts(unknown).Queue("COMPLETING")), v1::RUN_STATE_FINISHING);
  const auto canceled = Judged(Facts(unknown).Queue("CANCELLED").CancelAsked());
  EXPECT_EQ(canceled->state, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(canceled->exit.has_value());
  EXPECT_THAT(canceled->evidence.detail(), HasSubstr("its code is not known"));
  EXPECT_EQ(ClassOf(Facts(unknown).Queue("TIMEOUT")), v1::FAILURE_CLASS_TIMEOUT);
}

TEST(JudgeTest, ADoubtedZeroIsBelievedOnceNobodyCanTellMore) {
  const RunFacts forgotten = Facts().Record(0).LimitEnd(950).Answer(History::kUnavailable);
  EXPECT_EQ(StateOf(forgotten), v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(Judged(forgotten)->evidence.detail(), HasSubstr("no history tells of its end"));
  EXPECT_EQ(
      ClassOf(Facts().Record(0).Continued().Answer(History::kUnavailable).Output(kTimeLimitOutput)),
      v1::FAILURE_CLASS_TIMEOUT);
  const Facts lagging = Facts().Record(0).Continued().Answer(History::kAnswered);
  EXPECT_EQ(StateOf(Facts(lagging).For(absl::Seconds(29))), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateOf(Facts(lagging).For(absl::Seconds(30))), v1::RUN_STATE_SUCCEEDED);
}

TEST(JudgeTest, AccountingThatCannotBeAskedIsNoVerdictForTenMinutes) {
  for (const int code : {0, 143}) {
    Facts facts = Facts().Record(code).Terminated().Answer(History::kNoAnswer);
    const auto waits = Judged(facts.For(absl::Minutes(10) - absl::Seconds(1)));
    EXPECT_EQ(waits->state, v1::RUN_STATE_FINISHING) << code;
    EXPECT_THAT(waits->reason.message(), HasSubstr("accounting cannot be asked"));
    const auto told = Judged(facts.For(absl::Minutes(10)));
    EXPECT_EQ(told->state, code == 0 ? v1::RUN_STATE_SUCCEEDED : v1::RUN_STATE_FAILED);
    EXPECT_THAT(told->evidence.detail(), HasSubstr("could not be asked for 10m"));
    EXPECT_FALSE(Judged(facts.NoAnswer().LastState(v1::RUN_STATE_FINISHING)).has_value())
        << "the reason stays between two squeue";
  }
}

TEST(JudgeTest, ACancelNamesWhoAskedIfAccountingTells) {
  const RunFacts unasked = Facts().Queue("CANCELLED");
  EXPECT_TRUE(NeedsHistory(unasked));
  EXPECT_EQ(StateOf(unasked), v1::RUN_STATE_FINISHING) << "accounting lags by a second";
  const auto told = Judged(Facts().Queue("CANCELLED").History("CANCELLED by 1001"));
  EXPECT_EQ(told->state, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(told->evidence.detail(), HasSubstr("canceled by user id 1001"));
  EXPECT_EQ(StateOf(Facts().Queue("CANCELLED").For(absl::Seconds(30))), v1::RUN_STATE_CANCELED);
  EXPECT_EQ(StateOf(Facts().Queue("CANCELLED").CancelAsked()), v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(NeedsHistory(Facts().Queue("CANCELLED").CancelAsked()));
}

TEST(JudgeTest, AnEndWithoutARecordWaitsForOneAndThenBelievesSlurm) {
  EXPECT_EQ(StateOf(Facts().Queue("COMPLETED")), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateOf(Facts().Queue("COMPLETED").For(absl::Seconds(30))), v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(StateOf(Facts().Queue("FAILED")), v1::RUN_STATE_FINISHING);
  EXPECT_TRUE(NeedsHistory(Facts().Queue("FAILED")));
  const auto seen = Judged(Facts().Queue("FAILED").History("FAILED", 3));
  EXPECT_EQ(seen->state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen->exit->code(), 3);
}

TEST(JudgeTest, TheCodeOfAScriptThatDidNotRunTheCommandIsNotTheCommands) {
  const auto seen = Judged(Facts().Queue("FAILED").History("FAILED", 75));
  EXPECT_EQ(seen->state, v1::RUN_STATE_FAILED);
  EXPECT_FALSE(seen->exit.has_value());
  EXPECT_EQ(Judged(Facts().Queue("FAILED").History("FAILED", 75).Record(75))->exit->code(), 75);
}

TEST(JudgeTest, AFailureWithoutARecordIsExplainedByWhatSlurmTells) {
  EXPECT_EQ(ClassOf(Facts().Queue("FAILED").History("FAILED", 0, 53)), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(ClassOf(Facts().Queue("FAILED").History("FAILED", 1, 0, "")), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(ClassOf(Facts().Queue("FAILED").History("FAILED", 75)), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(ClassOf(Facts().Queue("FAILED").History("FAILED", 2)), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(ClassOf(Facts().Queue("FAILED").For(absl::Seconds(30))), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(ClassOf(Facts().Queue("FAILED").Record(0).Terminated()), v1::FAILURE_CLASS_INFRA);
}

TEST(JudgeTest, SlurmsMemoryPollingIsOutOfMemoryToo) {
  const auto seen = Judged(Facts()
                               .Queue("FAILED", "JobLaunchFailure")
                               .History("FAILED", 0, 9)
                               .Output("slurmstepd-n1: error: Exceeded job memory limit\n"));
  EXPECT_EQ(seen->failure->failure_class(), v1::FAILURE_CLASS_OOM);
  ASSERT_EQ(seen->failure->quotes_size(), 2);
  EXPECT_EQ(seen->failure->quotes(0).source(), "slurm.out");
  EXPECT_THAT(seen->failure->quotes(0).text(), HasSubstr("Exceeded job memory limit"));
  EXPECT_FALSE(seen->failure->retriable());
}

TEST(JudgeTest, OnlyTheClustersFaultsAreWorthAnotherRun) {
  const auto retriable = [](const RunFacts& facts) { return Judged(facts)->failure->retriable(); };
  EXPECT_TRUE(retriable(Facts().Queue("NODE_FAIL", "NodeDown")));
  EXPECT_TRUE(retriable(Facts().Queue("BOOT_FAIL")));
  EXPECT_TRUE(retriable(Facts().Queue("FAILED").History("FAILED", 0, 53)));
  EXPECT_TRUE(retriable(Facts().Queue("FAILED").Record(1).Problem(ExitRecord::Problem::kFiles)));
  EXPECT_FALSE(retriable(Facts().Queue("TIMEOUT", "TimeLimit")));
  EXPECT_FALSE(retriable(Facts().Queue("PREEMPTED")));
  EXPECT_FALSE(retriable(Facts().Queue("OUT_OF_MEMORY")));
  EXPECT_FALSE(retriable(Facts().Queue("DEADLINE")));
  EXPECT_FALSE(retriable(Facts().Queue("REVOKED")));
  EXPECT_FALSE(retriable(Facts().Queue("FAILED").Record(3)));
  EXPECT_FALSE(retriable(Facts().Queue("FAILED").For(absl::Seconds(30))));
  Facts srun = Facts().Queue("FAILED").Record(1).Problem(ExitRecord::Problem::kSrun);
  EXPECT_FALSE(retriable(srun));
  EXPECT_TRUE(retriable(srun.Output(
      "srun: error: Task launch for 7.0 failed on node n2: Communication connection failure\n")));
}

TEST(JudgeTest, AVerdictQuotesWhatSlurmSaidAndWhere) {
  const auto node = Judged(Facts().Queue("NODE_FAIL", "NodeDown"));
  ASSERT_EQ(node->failure->quotes_size(), 1);
  EXPECT_EQ(node->failure->quotes(0).source(), "squeue");
  EXPECT_EQ(node->failure->quotes(0).text(), "NODE_FAIL (NodeDown)");
  const auto gone = Judged(Facts().History("TIMEOUT").Output(kTimeLimitOutput));
  ASSERT_EQ(gone->failure->quotes_size(), 2);
  EXPECT_THAT(gone->failure->quotes(0).text(), HasSubstr("DUE TO TIME LIMIT"));
  EXPECT_EQ(gone->failure->quotes(1).source(), "sacct");
}

TEST(JudgeTest, LogsMayTellOfADeadlineButNotOfATimeLimit) {
  EXPECT_TRUE(Judged(Facts().Queue("DEADLINE"))->may_logs_tell);
  EXPECT_FALSE(Judged(Facts().Queue("TIMEOUT"))->may_logs_tell);
}

TEST(JudgeTest, AJobThatLeftTheQueueIsWhatTheHistorySays) {
  EXPECT_TRUE(NeedsHistory(Facts()));
  EXPECT_EQ(StateOf(Facts().History("COMPLETED")), v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(StateOf(Facts().History("CANCELLED by 0")), v1::RUN_STATE_CANCELED);
  EXPECT_EQ(StateOf(Facts().History("CANCELLED by 0").Record(0, 15)), v1::RUN_STATE_CANCELED);
  EXPECT_EQ(Judged(Facts().History("CANCELLED by 0"))->evidence.source(),
            v1::EVIDENCE_SOURCE_SACCT);
}

TEST(JudgeTest, AHistoryThatLagsOverridesNothing) {
  EXPECT_EQ(StateOf(Facts().Queue("RUNNING").History("PENDING")), v1::RUN_STATE_RUNNING);
  EXPECT_FALSE(Judged(Facts().History("RUNNING")).has_value());
  EXPECT_EQ(StateOf(Facts().History("RUNNING").Record(3)), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(StateOf(Facts().History("RUNNING").Record(3).For(absl::Seconds(30))),
            v1::RUN_STATE_FAILED);
}

TEST(JudgeTest, AbsenceNeedsProofFromAllAndAGrace) {
  const absl::Duration long_enough = absl::Seconds(60);
  EXPECT_FALSE(Judged(Facts().Answer(History::kAnswered)).has_value());
  EXPECT_FALSE(Judged(Facts().Answer(History::kAnswered).For(absl::Seconds(59))).has_value());
  EXPECT_FALSE(Judged(Facts().Answer(History::kNoAnswer).For(absl::Hours(9))).has_value());
  EXPECT_FALSE(Judged(Facts().For(absl::Hours(9))).has_value());
  const auto lost = Judged(Facts().Answer(History::kAnswered).For(long_enough));
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->state, v1::RUN_STATE_LOST);
  EXPECT_THAT(lost->evidence.detail(), HasSubstr("not in the queue for 1m"));
  EXPECT_EQ(StateOf(Facts().Answer(History::kUnavailable).For(long_enough)), v1::RUN_STATE_LOST);
}

TEST(JudgeTest, WithoutAccountingTheRecordAndSlurmsLastWordsDecide) {
  EXPECT_EQ(ClassOf(Facts().Answer(History::kUnavailable).Record(3)), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(ClassOf(Facts().Answer(History::kUnavailable).Record(0, 15).Output(kTimeLimitOutput)),
            v1::FAILURE_CLASS_TIMEOUT);
  const std::string cancelled =
      "slurmstepd-n1: error: *** JOB 17 ON n1 CANCELLED AT 2026-11-21T03:00:00 ***\n";
  EXPECT_EQ(StateOf(Facts().Answer(History::kUnavailable).Record(0, 15).Output(cancelled)),
            v1::RUN_STATE_CANCELED);
  EXPECT_EQ(StateOf(Facts().Answer(History::kUnavailable).Output(cancelled).For(absl::Seconds(30))),
            v1::RUN_STATE_CANCELED);
  EXPECT_EQ(StateOf(Facts().Answer(History::kUnavailable).Record(0).Terminated().CancelAsked()),
            v1::RUN_STATE_CANCELED);
}

// Slurm keeps no record of it.
TEST(JudgeTest, ATaskThatWasCanceledWhileItWaitedIsCanceledAndNotLost) {
  const auto seen = Judged(Facts().Task().CancelAsked().Answer(History::kAnswered));
  EXPECT_EQ(seen->state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(seen->external_id, "17_4");
  EXPECT_THAT(seen->evidence.detail(), HasSubstr("canceled while it waited"));
  EXPECT_EQ(StateOf(Facts().Task().CancelAsked().Answer(History::kUnavailable)),
            v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(Judged(Facts().Task().CancelAsked().Answer(History::kNoAnswer)).has_value());
  EXPECT_FALSE(Judged(Facts().CancelAsked().Answer(History::kAnswered)).has_value())
      << "of a job of its own there would be a trace";
  EXPECT_FALSE(
      Judged(Facts().Task().CancelAsked().MayHaveStarted().Answer(History::kAnswered)).has_value());
}

TEST(JudgeTest, ATaskThatOthersCanceledIsToldFromALostOneByTheRestOfItsArray) {
  Facts facts;
  facts.Task().Answer(History::kAnswered).ArrayIsKnown().For(absl::Seconds(59));
  EXPECT_FALSE(Judged(facts).has_value());
  facts.For(absl::Seconds(60));
  EXPECT_EQ(StateOf(facts), v1::RUN_STATE_CANCELED);
  EXPECT_THAT(Judged(facts)->evidence.detail(), HasSubstr("not by Muster"));
  EXPECT_EQ(StateOf(Facts().Task().Answer(History::kAnswered).For(absl::Seconds(60))),
            v1::RUN_STATE_LOST);
}

}  // namespace
}  // namespace muster::slurm
