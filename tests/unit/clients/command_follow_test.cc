// Tests the muster binary against a fake broker: verbs that wait for a job and follow its log and
// its events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/time/clock.h"
#include "contract/sentences.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::Heartbeat;
using client::JobInState;
using client::Piece;
using client::Step;
using ::testing::HasSubstr;

TEST_F(CommandTest, WaitExitsAsTheFirstJobThatDidNotSucceed) {
  const auto code_for = [&](v1::JobState state, v1::FailureClass kind) {
    job_ = JobInState(42, state);
    job_.mutable_failure()->set_failure_class(kind);
    return Run({"wait", "42"}).code;
  };
  EXPECT_EQ(code_for(v1::JOB_STATE_SUCCEEDED, v1::FAILURE_CLASS_UNSPECIFIED), 0);
  EXPECT_EQ(code_for(v1::JOB_STATE_FAILED, v1::FAILURE_CLASS_PROGRAM), 10);
  EXPECT_EQ(code_for(v1::JOB_STATE_FAILED, v1::FAILURE_CLASS_INFRA), 12);
  EXPECT_EQ(code_for(v1::JOB_STATE_CANCELED, v1::FAILURE_CLASS_UNSPECIFIED), 11);
}

TEST_F(CommandTest, WaitGivesUpAtItsTimeOut) {
  broker_.watch_jobs = [](const auto&, const auto& write) -> absl::Status {
    while (write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"wait", "--timeout", "1s", "42"});
  EXPECT_EQ(outcome.code, 8);
  EXPECT_EQ(outcome.out, "");
}

TEST_F(CommandTest, RunWithWaitPassesBothOutputsOnAndExitsAsTheJob) {
  job_ = JobInState(42, v1::JOB_STATE_FAILED);
  job_.mutable_exit()->set_code(3);
  job_.mutable_failure()->set_message("exit code 3");
  job_.mutable_failure()->set_remedy("look at the log");
  broker_.read_log = [](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    EXPECT_EQ(request.run(), 1u);
    EXPECT_TRUE(request.follow());
    EXPECT_EQ(request.stream(), v1::LOG_STREAM_UNSPECIFIED);
    write(Piece(0, "out\x1b[0m\n"));
    write(Piece(0, "err\n", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    write(Piece(8, "", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"run", "--wait", "--", "x"});
  EXPECT_EQ(outcome.code, 10);
  EXPECT_EQ(outcome.out, "out\x1b[0m\n");  // not to a terminal: as it is
  EXPECT_THAT(outcome.err, HasSubstr("err\n"));
  EXPECT_THAT(outcome.err, HasSubstr("muster: job 42 FAILED: exit code 3\n"));
  EXPECT_THAT(outcome.err, HasSubstr("look at the log"));
  const Outcome quiet = Run({"run", "--wait", "-q", "--", "x"});
  EXPECT_EQ(quiet.code, 10);
  EXPECT_EQ(quiet.err, "err\n");
}

TEST_F(CommandTest, AnInterruptEndsTheWaitingAndTellsHowToGoOn) {
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  broker_.watch_jobs = [](const auto&, const auto& write) -> absl::Status {
    write(Step(42, 1, v1::JOB_STATE_QUEUED, 0));
    while (write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  Command command(broker_.address(), {"run", "--wait", "--", "x"});
  command.AwaitErr("job 42 is QUEUED");
  command.Signal(SIGINT);
  const Outcome outcome = command.Finish();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("the job goes on"));
  EXPECT_THAT(outcome.err, HasSubstr("muster logs -f 42"));
}

TEST_F(CommandTest, AnInterruptIsHeardThoughNobodyReadsTheOutput) {
  broker_.watch_jobs = [this](const auto&, const auto& write) -> absl::Status {
    write(Step(42, 1, v1::JOB_STATE_RUNNING));
    while (!stop_ && write(Heartbeat())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return absl::OkStatus();
  };
  broker_.read_log = [](const auto&, const auto& write) -> absl::Status {
    for (uint64_t at = 0; write(Piece(at, std::string(4096, 'x'))); at += 4096) {
    }
    return absl::OkStatus();
  };
  Command command(broker_.address(), {"run", "--wait", "--", "x"});
  command.AwaitFullOut();
  command.Signal(SIGINT);
  command.AwaitErrAlone("the job goes on");
  EXPECT_EQ(command.Finish().code, 130);
  stop_ = true;
}

TEST_F(CommandTest, WhoWaitsHearsWhyAJobWaitsAndWhenThatChanges) {
  const auto waiting = [](const char* reason) {
    v1::Job job = JobInState(42, v1::JOB_STATE_QUEUED);
    job.clear_cluster();
    if (*reason != '\0') *job.mutable_state_reason() = client::Because(reason);
    return job;
  };
  std::atomic<int> looks = 0;
  std::atomic<bool> is_new = true;
  broker_.get_job = [&](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    const int look = ++looks;
    *response.mutable_job() =
        look > 3 ? job_ : waiting(look > 2 ? "no GPU is free" : "box is gone");
    return response;
  };
  broker_.watch_jobs = [&](const auto&, const auto& write) -> absl::Status {
    v1::WatchJobsResponse step = Step(42, 1, v1::JOB_STATE_QUEUED, 0);
    *step.mutable_changes(0)->mutable_job() = waiting("");
    // It was submitted this moment, and most such jobs have a cluster the next.
    if (is_new)
      step.mutable_changes(0)->mutable_job()->mutable_create_time()->set_seconds(
          absl::ToUnixSeconds(absl::Now()));
    write(step);
    // Nothing changes but the reason.
    for (int i = 0; i < 3; ++i) write(Heartbeat());
    write(Step(42, 2, v1::JOB_STATE_SUCCEEDED));
    return absl::OkStatus();
  };
  const std::string reasons =
      "muster: job 42 is QUEUED: box is gone\n"
      "muster: job 42 is QUEUED: no GPU is free\n";
  EXPECT_EQ(Run({"wait", "42"}).err, "muster: job 42 is QUEUED\n" + reasons);
  looks = 0;
  is_new = false;
  EXPECT_EQ(Run({"wait", "42"}).err, reasons) << "of one that has waited it is asked at once";
}

TEST_F(CommandTest, WhoWaitsHearsOnceThatAnotherRunFollows) {
  const auto step = [](uint64_t sequence, v1::JobState state, uint32_t run, const char* reason) {
    v1::WatchJobsResponse response = Step(42, sequence, state, run);
    v1::Job& job = *response.mutable_changes(0)->mutable_job();
    job = JobInState(42, state);
    job.mutable_create_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
    if (*reason != '\0') *job.mutable_state_reason() = client::Because(reason);
    return response;
  };
  broker_.get_job = [&](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    *response.mutable_job() = JobInState(42, v1::JOB_STATE_RUNNING);
    return response;
  };
  broker_.watch_jobs = [&](const auto&, const auto& write) -> absl::Status {
    write(step(1, v1::JOB_STATE_RUNNING, 1, ""));
    write(step(2, v1::JOB_STATE_QUEUED, 1, ""));
    write(step(3, v1::JOB_STATE_QUEUED, 0, "waits for run 2"));
    write(step(4, v1::JOB_STATE_RUNNING, 2, ""));
    write(step(5, v1::JOB_STATE_SUCCEEDED, 2, ""));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "42"}).err,
            "muster: job 42 is RUNNING on box\n"
            "muster: job 42 is QUEUED: waits for run 2\n"
            "muster: job 42 is RUNNING on box\n");
}

v1::Job NoWordOf(const v1::Job& job) {
  contract::Silence silence;
  silence.cluster = job.cluster();
  silence.since = absl::FromUnixSeconds(1'772'366'400);
  v1::Job silent = job;
  *silent.mutable_state_reason() = contract::NoWord(silence, job);
  return silent;
}

TEST_F(CommandTest, WhoFollowsALogHearsThatTheAgentIsGoneAndThatItIsBack) {
  job_ = JobInState(42, v1::JOB_STATE_RUNNING);
  std::atomic<bool> is_gone = false;
  broker_.get_job = [&](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    *response.mutable_job() = is_gone ? NoWordOf(job_) : job_;
    return response;
  };
  broker_.watch_jobs = [&](const auto&, const auto& write) -> absl::Status {
    v1::WatchJobsResponse step = Step(42, 1, v1::JOB_STATE_RUNNING);
    *step.mutable_changes(0)->mutable_job() = job_;
    write(step);
    while (!stop_ && write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  std::atomic<bool> is_read = false;
  broker_.read_log = [&](const auto&, const auto& write) -> absl::Status {
    is_read = true;
    while (!stop_ && write(Piece(0, ""))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    write(Piece(0, "end\n", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  Command command(broker_.address(), {"logs", "-f", "42"});
  while (!is_read) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  is_gone = true;
  command.AwaitErr("(its agent is not connected); last known: RUNNING\n");
  is_gone = false;
  command.AwaitErr("cluster box answers again\n");
  stop_ = true;
  const Outcome outcome = command.Finish();
  EXPECT_EQ(outcome.out, "end\n");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err;
}

TEST_F(CommandTest, AChangeOfAJobIsNoWordFromItsCluster) {
  job_ = JobInState(42, v1::JOB_STATE_RUNNING);
  std::atomic<int> looks = 0;
  broker_.get_job = [&](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    // One question asks whether it is a task of an array, and one follows each of the first two
    // changes.
    *response.mutable_job() =
        ++looks <= 3 ? NoWordOf(job_) : JobInState(42, v1::JOB_STATE_SUCCEEDED);
    return response;
  };
  broker_.watch_jobs = [](const auto&, const auto& write) -> absl::Status {
    write(Step(42, 1, v1::JOB_STATE_RUNNING));
    // The user has changed something, a label, say.
    write(Step(42, 2, v1::JOB_STATE_RUNNING));
    write(Step(42, 3, v1::JOB_STATE_SUCCEEDED));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "42"}).err,
            "muster: job 42 is RUNNING on box: no word from cluster \"box\" since "
            "2026-03-01T12:00:00Z (its agent is not connected); last known: RUNNING\n");
}

TEST_F(CommandTest, WhoWaitsHearsThatAHostIsSilentAndThatItIsBack) {
  std::atomic<int> looks = 0;
  broker_.get_job = [&](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    *response.mutable_job() = JobInState(42, v1::JOB_STATE_RUNNING);
    if (++looks < 4) {
      *response.mutable_job()->mutable_state_reason() = contract::MakeReason(
          v1::STATE_REASON_CODE_HOST_SILENT, {.detail = looks < 3 ? "no route" : "refused",
                                              .subject = "gpu2",
                                              .since = absl::FromUnixSeconds(1'772'366'400)});
    }
    return response;
  };
  broker_.watch_jobs = [&](const auto&, const auto& write) -> absl::Status {
    write(Step(42, 1, v1::JOB_STATE_RUNNING));
    // Nothing changes but the reason.
    for (int i = 0; i < 4; ++i) write(Heartbeat());
    write(Step(42, 2, v1::JOB_STATE_SUCCEEDED));
    return absl::OkStatus();
  };
  const std::string silence =
      "muster: job 42 is RUNNING on box: host gpu2 has not answered since 2026-03-01T12:00:00Z: no "
      "route\n"
      "muster: the hosts of job 42 answer again\n";
  EXPECT_EQ(Run({"wait", "42"}).err, silence);
}

TEST_F(CommandTest, WhoFollowsTheLogOfAJobThatHasNotBegunHearsWhyItWaits) {
  const auto waiting = [](const char* reason) {
    v1::Job job = JobInState(42, v1::JOB_STATE_PENDING);
    if (*reason != '\0') *job.mutable_state_reason() = client::Because(reason);
    return job;
  };
  std::atomic<int> looks = 0;
  broker_.get_job = [&](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    v1::GetJobResponse response;
    *response.mutable_job() = waiting(++looks > 2 ? "no GPU is free" : "no node is free");
    return response;
  };
  broker_.watch_jobs = [&](const auto&, const auto& write) -> absl::Status {
    v1::WatchJobsResponse step = Step(42, 1, v1::JOB_STATE_PENDING);
    *step.mutable_changes(0)->mutable_job() = waiting("no node is free");
    write(step);
    while (!stop_ && write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  broker_.read_log = [&](const auto&, const auto& write) -> absl::Status {
    while (!stop_ && write(Piece(0, ""))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    write(Piece(0, "begun\n", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  Command command(broker_.address(), {"logs", "-f", "42"});
  command.AwaitErr("job 42 is PENDING on box: no GPU is free\n");
  stop_ = true;
  const Outcome outcome = command.Finish();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "begun\n");
  EXPECT_EQ(outcome.err,
            "muster: job 42 is PENDING on box: no node is free\n"
            "muster: job 42 is PENDING on box: no GPU is free\n");
}

TEST_F(CommandTest, LogsOfAJobThatHasNotRunSayWhy) {
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  job_.clear_runs();
  *job_.mutable_state_reason() = client::Because("box is full");
  const Outcome outcome = Run({"logs", "42"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("job 42 QUEUED: box is full; it has no log yet"));
}

TEST_F(CommandTest, WhoFollowsTheLogOfAJobThatIsCanceledBeforeItRunsHearsThat) {
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  job_.clear_runs();
  broker_.watch_jobs = [this](const auto&, const auto& write) -> absl::Status {
    job_.set_state(v1::JOB_STATE_CANCELED);
    v1::WatchJobsResponse step;
    v1::JobChange& change = *step.add_changes();
    change.set_sequence(1);
    change.mutable_job()->set_id(42);
    change.mutable_transition()->set_job_state(v1::JOB_STATE_CANCELED);
    write(step);
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"logs", "-f", "42"}).err, HasSubstr("job 42 CANCELED"));
}

TEST_F(CommandTest, ALogWithoutABytePrintsWhyOnStandardError) {
  broker_.read_log = [](const auto&, const auto& write) -> absl::Status {
    write(Piece(0, "", v1::LOG_END_UNSPECIFIED));
    return absl::OkStatus();
  };
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  *job_.mutable_state_reason() = client::Because("no node is free");
  EXPECT_THAT(Run({"logs", "42"}).err,
              HasSubstr("job 42 PENDING: no node is free (nothing has been written yet)"));
  // The first run's log waits for nothing, whatever the second waits for.
  *job_.add_runs() = job_.runs(0);
  job_.mutable_runs(1)->set_number(2);
  EXPECT_EQ(Run({"logs", "42.1"}).err, "muster: the log is empty\n");
  job_.mutable_runs()->RemoveLast();
  const Outcome errors = Run({"logs", "--stderr", "42"});
  EXPECT_THAT(errors.err, HasSubstr("nothing was written to standard error, or the cluster keeps "
                                    "both outputs in one: muster logs 42.1"));
  EXPECT_THAT(Run({"logs", "--stdout", "42"}).err,
              HasSubstr("nothing was written to standard output; both outputs: muster logs 42.1"));
  EXPECT_EQ(errors.out, "");
  job_ = JobInState(42, v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Run({"logs", "42"}).err, HasSubstr("the log is empty"));
  EXPECT_EQ(Run({"logs", "-q", "42"}).err, "");
}

TEST_F(CommandTest, WhyACanceledJobEndedNamesNoOtherRun) {
  job_ = JobInState(42, v1::JOB_STATE_FAILED);
  job_.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_INFRA);
  job_.mutable_failure()->set_message("its pod was deleted");
  job_.mutable_failure()->set_retriable(true);
  job_.mutable_failure()->set_remedy("Submit the job again.");
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr("Submit the job again."));
  job_.set_state(v1::JOB_STATE_CANCELED);
  const std::string canceled = Run({"why", "42"}).out;
  EXPECT_THAT(canceled, HasSubstr("its pod was deleted"));
  EXPECT_THAT(canceled, Not(HasSubstr("again")));
}

TEST_F(CommandTest, EventsEndWithTheLatestOneUnlessFollowed) {
  broker_.watch_jobs = [](const auto&, const auto& write) -> absl::Status {
    for (uint64_t i = 1; i <= 3; ++i) write(Step(42, i, v1::JOB_STATE_RUNNING));
    // A job that goes on has no end.
    while (write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  // Two pages.
  broker_.list_transitions =
      [](const v1::ListTransitionsRequest& request) -> absl::StatusOr<v1::ListTransitionsResponse> {
    v1::ListTransitionsResponse page;
    const bool is_first = request.page_token().empty();
    for (uint64_t i = is_first ? 1 : 3; i <= (is_first ? 2 : 3); ++i) {
      *page.add_transitions() = Step(42, i, v1::JOB_STATE_RUNNING).changes(0).transition();
    }
    if (is_first) page.set_next_page_token("rest");
    return page;
  };
  const Outcome outcome = Run({"events", "42", "-o", "jsonl"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3);
  Command follower(broker_.address(), {"events", "-f", "42"});
  follower.AwaitOut("42.1");
  follower.Signal(SIGTERM);
  EXPECT_EQ(follower.Finish().code, 128 + SIGTERM);
}

TEST_F(CommandTest, TheWideTableSaysHowManyCallsARunTakes) {
  broker_.list_clusters = [&](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse response;
    v1::Cluster* cluster = response.add_clusters();
    cluster->set_name("lab");
    (*cluster->mutable_scheduler_calls())["sbatch"] = 200;
    (*cluster->mutable_scheduler_calls())["squeue"] = 30;
    (*cluster->mutable_scheduler_calls())["launched runs"] = 200;
    v1::Cluster* young = response.add_clusters();
    young->set_name("young");
    (*young->mutable_scheduler_calls())["squeue"] = 168;
    (*young->mutable_scheduler_calls())["launched runs"] = 3;
    return response;
  };
  const Outcome result = Run({"clusters", "-o", "wide"});
  EXPECT_THAT(result.out, testing::HasSubstr("CALLS/RUN"));
  EXPECT_THAT(result.out, testing::HasSubstr("1.15"));
  EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("56.00"))) << "too few runs to tell";
}

TEST_F(CommandTest, AJobOnAClusterWhoseAgentIsGoneSaysThatWhatIsKnownIsOldInEveryFormat) {
  job_ = NoWordOf(JobInState(42, v1::JOB_STATE_RUNNING));
  broker_.list_jobs = [&](const auto&) -> absl::StatusOr<v1::ListJobsResponse> {
    v1::ListJobsResponse response;
    *response.add_jobs() = job_;
    return response;
  };
  const std::string words = job_.state_reason().message();
  EXPECT_THAT(Run({"list", "-o", "wide"}).out, HasSubstr(words));
  EXPECT_THAT(Run({"list"}).out, HasSubstr("no word from cluster"));
  EXPECT_THAT(Run({"list", "-o", "json"}).out,
              HasSubstr("\"code\": \"STATE_REASON_CODE_AGENT_DISCONNECTED\""));
  EXPECT_THAT(Run({"show", "42"}).out, HasSubstr(words));
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr(words));
}

}  // namespace
}  // namespace muster::cli
