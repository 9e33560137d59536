// Tests the backend's questions to Slurm beyond those of a run's own life.
#include "agents/slurm/scheduler.h"

#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>

#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "agents/slurm/command_scheduler.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/rest_scheduler.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SlurmSchedulerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TestCluster("--nodes 1 --gpus 2 --min-job-age 60 --no-dbd");
    std::ofstream(Script()) << "#!/bin/bash\nexec sleep \"$1\"\n";
  }
  static void TearDownTestSuite() { delete cluster_; }

  static std::string Script() { return cluster_->runs() + "/sleep.sh"; }
  std::unique_ptr<Scheduler> MakeScheduler() {
    if (!cluster_->is_over_rest()) return std::make_unique<CommandScheduler>(&host_, &commands_);
    return MakeRestScheduler();
  }
  std::unique_ptr<Scheduler> MakeRestScheduler() {
    return std::make_unique<RestScheduler>(config_, kTestUser, MakeHttp(config_.rest_url), &gate_,
                                           &commands_);
  }
  static Submission Sleeper(std::vector<std::string> options = {}) {
    options.emplace_back("--output=/dev/null");
    options.emplace_back("--chdir=/tmp");
    return {std::move(options), Script(), {"300"}};
  }
  JobId Start(const Submission& submission) {
    const SubmitOutcome outcome = scheduler_.Submit(submission);
    EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.words;
    return {outcome.job_id};
  }
  std::vector<QueueRow> Rows() {
    const absl::StatusOr<std::vector<QueueRow>> rows = scheduler_.Queue();
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : std::vector<QueueRow>();
  }
  std::string ReasonOf(const JobId& id) {
    for (const QueueRow& row : Rows()) {
      if (row.job_id == id) return row.reason;
    }
    return "not there";
  }

  static TestCluster* cluster_;
  SlurmConfig config_ = cluster_->Config();
  hosts::LocalHost host_;
  CallGate gate_{{}};
  Commands commands_{config_, &host_, &gate_};
  std::unique_ptr<Scheduler> owned_ = MakeScheduler();
  Scheduler& scheduler_ = *owned_;
};

TestCluster* SlurmSchedulerTest::cluster_ = nullptr;

TEST_F(SlurmSchedulerTest, AHeldJobWaitsUntilItIsReleased) {
  // The job must not start before it is held.
  const JobId id = Start(Sleeper({"--begin=now+1hour"}));
  EXPECT_TRUE(scheduler_.Hold(id).ok());
  EXPECT_EQ(ReasonOf(id), "JobHeldUser");
  EXPECT_TRUE(scheduler_.Hold(id).ok()) << "it is held already";
  EXPECT_TRUE(scheduler_.Release(id).ok());
  WaitFor("the release", [&] { return ReasonOf(id) == "BeginTime"; });
  EXPECT_TRUE(scheduler_.Cancel(id).ok());
}

TEST_F(SlurmSchedulerTest, WhatHasEndedOrNeverWasCannotBeHeld) {
  const JobId id = Start(Sleeper());
  EXPECT_TRUE(scheduler_.Cancel(id).ok());
  WaitFor("the end", [&] {
    const absl::StatusOr<HistoryRow> job = scheduler_.ShowJob(id);
    return job.ok() && job->state.phase == JobPhase::kCancelled;
  });
  EXPECT_EQ(scheduler_.Hold(id).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(scheduler_.Cancel(id).ok()) << "what has ended counts as canceled";
  EXPECT_EQ(scheduler_.Hold({999999}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.Release({999999}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.ShowJob({999999}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(scheduler_.Cancel({999999}).ok());
}

TEST_F(SlurmSchedulerTest, EachOfManyJobsInOneCallHasItsOwnAnswer) {
  const JobId first = Start(Sleeper({"--begin=now+1hour"}));
  const JobId second = Start(Sleeper({"--begin=now+1hour"}));
  const uint64_t array = Start(Sleeper({"--array=1-2", "--begin=now+1hour"})).number;
  const JobId ended = Start(Sleeper({"--begin=now+1hour"}));
  EXPECT_TRUE(scheduler_.Cancel(ended).ok());
  const std::vector<JobId> ids = {first, {999999}, {array, 2}, ended, second};
  using Code = absl::StatusCode;
  const auto codes = [](const std::vector<absl::Status>& statuses) {
    std::vector<Code> of_each;
    for (const absl::Status& status : statuses) of_each.push_back(status.code());
    return of_each;
  };
  // The other task of the array is not meant.
  const Code one_task = cluster_->has_typed_rest() ? Code::kUnimplemented : Code::kOk;
  EXPECT_THAT(
      codes(scheduler_.SetHeldMany(ids, true)),
      ElementsAre(Code::kOk, Code::kNotFound, one_task, Code::kFailedPrecondition, Code::kOk));
  for (const JobId& id : {first, second}) EXPECT_EQ(ReasonOf(id), "JobHeldUser");
  EXPECT_EQ(ReasonOf({array, 2}) == "JobHeldUser", !cluster_->has_typed_rest());
  EXPECT_NE(ReasonOf({array, 1}), "JobHeldUser");
  EXPECT_THAT(codes(scheduler_.SetHeldMany({first, {999999}, {array, 2}}, false)),
              ElementsAre(Code::kOk, Code::kNotFound, one_task));
  if (cluster_->has_typed_rest()) {
    const std::vector<JobId> both = {{array, 1}, {array, 2}};
    EXPECT_THAT(codes(scheduler_.SetHeldMany(both, true)), Each(Code::kOk));
    for (const JobId& task : both) EXPECT_EQ(ReasonOf(task), "JobHeldUser");
    EXPECT_THAT(codes(scheduler_.SetHeldMany(both, false)), Each(Code::kOk));
  }
  EXPECT_NE(ReasonOf(first), "JobHeldUser");
  EXPECT_THAT(codes(scheduler_.CancelMany(ids)), Each(Code::kOk));
  for (const JobId& id : {first, second})
    EXPECT_EQ(scheduler_.ShowJob(id)->state.phase, JobPhase::kCancelled);
  EXPECT_NE(ReasonOf({array, 1}), "not there");
  EXPECT_TRUE(scheduler_.Cancel({array}).ok());
}

TEST_F(SlurmSchedulerTest, AtTheDefaultLimitNeitherSubmissionsNorCancelsWait) {
  constexpr size_t kRuns = 30;
  SlurmConfig config = cluster_->Config();
  config.max_polls_per_minute = SlurmConfig().max_polls_per_minute;
  config.submit_patience = absl::Milliseconds(1);
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  if (backend->capabilities().max_end_batch == 1) return;  // over slurmrestd each is a call
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_slurm()->add_extra_options("--begin=now+1hour");
  std::vector<std::shared_ptr<const agent::v1::Assignment>> assignments;
  std::vector<agents::RunHandle> runs;
  for (size_t i = 0; i < kRuns; ++i) {
    runs.push_back(NewRun(spec).handle);
    assignments.push_back(runs.back().assignment);
  }
  for (const agents::LaunchOutcome& outcome : backend->Launch(assignments))
    ASSERT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.evidence.detail();
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const absl::Status& status : backend->End(runs)) EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(backend->SchedulerCalls()["scancel"], 3);
  for (const QueueRow& row : Rows()) EXPECT_NE(row.state.phase, JobPhase::kPending) << row.name;
  TestRun next = NewRun(ScriptSpec("true"));
  Launch(*backend, &next);
  cluster_->AsRoot("scancel " + next.handle.external_id);
}

TEST_F(SlurmSchedulerTest, ATaskOfAnArrayIsHeldReleasedAndCanceledAlone) {
  const uint64_t array = Start(Sleeper({"--array=1-2", "--begin=now+1hour"})).number;
  const JobId first{array, 1};
  const JobId second{array, 2};
  if (cluster_->has_typed_rest()) {
    const absl::Status refused = scheduler_.Hold(first);
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr(second.ToString()));
    EXPECT_NE(ReasonOf(first), "JobHeldUser");
  } else {
    EXPECT_TRUE(scheduler_.Hold(first).ok());
    EXPECT_EQ(ReasonOf(first), "JobHeldUser");
    EXPECT_TRUE(scheduler_.Release(first).ok());
  }
  EXPECT_NE(ReasonOf(second), "JobHeldUser");
  EXPECT_NE(ReasonOf(first), "JobHeldUser");
  EXPECT_TRUE(scheduler_.Cancel(first).ok());
  EXPECT_THAT(ReasonOf(second), testing::AnyOf("BeginTime", "None"));
  EXPECT_TRUE(scheduler_.Cancel({array}).ok());
}

TEST_F(SlurmSchedulerTest, AnEstimateSubmitsNothing) {
  const absl::StatusOr<std::string> words = scheduler_.EstimateStart(Sleeper());
  if (cluster_->is_over_rest()) {
    EXPECT_EQ(words.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(words.status().message()), HasSubstr("--test-only"));
    return;
  }
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, HasSubstr("to start at"));
  const absl::Status refused = scheduler_.EstimateStart(Sleeper({"--partition=nosuch"})).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Invalid partition name specified"));
  for (const QueueRow& row : Rows()) {
    EXPECT_NE(row.state.phase, JobPhase::kPending) << row.job_id.ToString();
  }
}

TEST_F(SlurmSchedulerTest, MoreRunsThanCallsAtOnceAllRunAtTheAllowedPace) {
  // A call comes back in more time than any launch takes.
  constexpr uint32_t kLimit = 60;
  constexpr uint32_t kBurst = kLimit / 4;
  constexpr int kRuns = kBurst + 5;
  SlurmConfig config = cluster_->Config();
  config.max_scheduler_calls_per_minute = kLimit;
  const absl::Time start = absl::Now();
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  std::vector<TestRun> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(NewRun(ScriptSpec("true")));
  std::vector<TestRun*> pointers;
  for (TestRun& run : runs) {
    Launch(*backend, &run);
    pointers.push_back(&run);
  }
  EXPECT_GT(backend->ObserveInterval(), config.observe_interval) << "little is left";
  ObserveToEnd(*backend, pointers);
  for (const TestRun& run : runs) EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
  uint64_t calls = 0;
  for (const auto& [name, count] : backend->SchedulerCalls()) calls += count;
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  EXPECT_LE(calls, kBurst + seconds * (kLimit + 1 - kBurst) / 60 + 1);
  EXPECT_GE(calls, static_cast<uint64_t>(kRuns));
}

// Tests slurmrestd's own door: what it makes of a submission, and what it says when it cannot be
// asked.
class SlurmRestTest : public SlurmSchedulerTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(cluster_->is_over_rest()) << "MUSTER_TEST_OVER_REST=1 is for these";
  }
  // Returns scontrol's words for the job without those that differ from one job to the next.
  std::map<std::string, std::string> JobOf(uint64_t id) {
    std::map<std::string, std::string> job;
    const std::string text = cluster_->AsRoot(fmt::format("scontrol -o show job {}", id));
    for (std::string_view word : Split(text, ' ')) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      job.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    for (const char* name : {"JobId", "SubmitTime", "EligibleTime", "AccrueTime", "LastSchedEval",
                             "Command", "AllocNode:Sid", "Priority", "StartTime", "EndTime"}) {
      job.erase(name);
    }
    return job;
  }
};

TEST_F(SlurmRestTest, AJobIsTheSameWhicheverWayItIsSubmitted) {
  CommandScheduler commands(&host_, &commands_);
  const std::vector<std::vector<std::string>> cases = {
      {"--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=3", "--mem=120M", "--time=7",
       "--nice=3", "--dependency=singleton", "--partition=debug,short", "--comment=a \"b\" $(id)'",
       "--open-mode=append", "--chdir=/tmp", "--export=ALL", "--no-requeue"},
      {"--ntasks=2", "--mem-per-cpu=50M", "--requeue", "--exclusive", "--nodelist=n1",
       "--time-min=2", "--time=1:30:00", "--mail-type=END,FAIL", "--mail-user=nobody",
       "--qos=normal", "--open-mode=truncate", "--signal=USR1@60"},
      {"--gpus-per-node=h100:1", "--nodes=1", "--exclusive=user", "--mincpus=2", "--wckey=w",
       "--kill-on-invalid-dep=yes", "--spread-job", "--deadline=2099-01-01", "--use-min-nodes"},
      {"--gres=gpu:h100:1", "--nodes=1", "--threads-per-core=1", "--oversubscribe", "--hold",
       "--ntasks-per-core=1", "--delay-boot=1", "--gres-flags=enforce-binding"},
  };
  for (std::vector<std::string> options : cases) {
    options.insert(options.begin(), {"--begin=now+1hour", "--job-name=same"});
    // They go one after the other, because some wait for those of their name.
    const auto submit = [&](Scheduler& scheduler) {
      const SubmitOutcome outcome = scheduler.Submit(Sleeper(options));
      EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.words;
      const auto job = JobOf(outcome.job_id);
      EXPECT_TRUE(scheduler.Cancel({outcome.job_id}).ok());
      return job;
    };
    const auto by_command = submit(commands);
    EXPECT_EQ(submit(scheduler_), by_command) << options.back();
  }
}

TEST_F(SlurmRestTest, AnOptionThatItLacksIsRefusedByName) {
  const SubmitOutcome outcome = scheduler_.Submit(Sleeper({"--contiguous"}));
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("--contiguous"));
  EXPECT_TRUE(Rows().empty() || Rows().back().state.phase != JobPhase::kPending);
}

TEST_F(SlurmRestTest, ATokenInAFileIsUsedAndItsEndSaidPlainly) {
  config_.rest_token_file = cluster_->runs() + "/token";
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(config_.rest_token_file) << text;
    chmod(config_.rest_token_file.c_str(), mode);
  };
  const std::string words = *commands_.Ask({"scontrol", "token", "lifespan=600"});
  const std::unique_ptr<Scheduler> scheduler = MakeRestScheduler();
  write(words, 0644);
  EXPECT_THAT(std::string(scheduler->Queue().status().message()), HasSubstr("mode 0644"));
  write(words, 0600);
  EXPECT_TRUE(scheduler->Queue().ok()) << scheduler->Queue().status();
  // A token of a key that is not the cluster's.
  write("eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDAsInN1biI6InNsdXJtdGVzdCJ9.c2ln", 0600);
  const absl::Status refused = scheduler->Queue().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("token"));
  write("eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjEwMDAwMDAwMDB9.c2ln", 0600);
  EXPECT_THAT(std::string(scheduler->Queue().status().message()), HasSubstr("ended at 2001"));
}

TEST_F(SlurmRestTest, AnAbsentSlurmrestdIsNoEmptyQueue) {
  cluster_->Control("stop", "slurmrestd");
  const absl::Status status = scheduler_.Queue().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("slurm.rest_url"));
  EXPECT_EQ(scheduler_.Submit(Sleeper()).kind, agents::LaunchOutcome::Kind::kUnclear);
  cluster_->Control("start", "slurmrestd");
  EXPECT_TRUE(scheduler_.Queue().ok());
}

}  // namespace
}  // namespace muster::slurm
