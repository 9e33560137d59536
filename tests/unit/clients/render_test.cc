#include "clients/cli/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/report.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/errors.h"
#include "contract/sentences.h"
#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/unit/clients/fake_broker.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'772'366'400 + 600);

v1::Job FailedJob() {
  v1::Job job = client::JobInState(42, v1::JOB_STATE_FAILED);
  (*job.mutable_labels())["team"] = "vision";
  job.mutable_start_time()->set_seconds(1'772'366'460);
  job.mutable_end_time()->set_seconds(1'772'366'550);
  job.mutable_exit()->set_signal(9);
  job.mutable_exit()->set_rank(1);
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_OOM);
  job.mutable_failure()->set_message("the memory limit of 1Gi was reached");
  job.mutable_failure()->set_remedy("ask for more memory");
  return job;
}

std::string TableOf(const std::vector<v1::Job>& jobs, const Style& style) {
  Table table(JobColumns(style), style.colours);
  for (const v1::Job& job : jobs) table.Add(JobRow(job, style, kNow));
  return table.Take();
}

TEST(JobTable, LooksLikeThis) {
  v1::Job waiting = client::JobInState(7, v1::JOB_STATE_QUEUED);
  waiting.set_name("日本語");
  waiting.clear_cluster();
  *waiting.mutable_state_reason() = client::Because("all cores of box are in use");
  EXPECT_EQ(TableOf({FailedJob(), waiting}, {}),
            "  ID  NAME          STATE      CLUSTER   SUBMITTED  RUN TIME  REASON\n"
            "  42  train         FAILED     box       10m ago    1m30s     the memory limit of 1Gi "
            "was reached\n"
            "   7  日本語        QUEUED     -         10m ago    -         all cores of box are in "
            "use\n");
}

TEST(JobTable, SaysOfAWaitingJobThatItsCancelWasRequested) {
  v1::Job job = client::JobInState(7, v1::JOB_STATE_PENDING);
  job.set_cancel_requested(true);
  *job.mutable_state_reason() = contract::CancelAsked(client::Because("waiting for 2 of 2 cores"));
  EXPECT_THAT(TableOf({job}, {}), HasSubstr("cancel requested; waiting for 2 of 2 cores"));
}

TEST(JobTable, SaysOfAJobThatWaitsForItsNextRunWhatItWaitsFor) {
  v1::Job job = FailedJob();
  job.set_state(v1::JOB_STATE_QUEUED);
  job.clear_end_time();
  *job.mutable_state_reason() = client::Because("waits until 12:15:00 UTC for run 2");
  EXPECT_THAT(TableOf({job}, {}), HasSubstr("  -         waits until 12:15:00 UTC for run 2\n"));
}

TEST(JobTable, SaysOfAHeldJobWhatTheBrokerAdvises) {
  v1::Job job = client::JobInState(7, v1::JOB_STATE_QUEUED);
  job.set_held(true);
  *job.mutable_state_reason() =
      contract::MakeReason(v1::STATE_REASON_CODE_HELD, {.remedy = "ask ann"});
  EXPECT_THAT(TableOf({job}, {}), HasSubstr("  held: ask ann\n"));
}

TEST(JobTable, TellsMoreIfWide) {
  EXPECT_EQ(
      TableOf({FailedJob()}, {.wide = true}),
      "  ID  NAME          STATE      CLUSTER   PROJECT  USER    PRIORITY  SUBMITTED             "
      "STARTED               ENDED                 EXIT   LABELS       REASON\n"
      "  42  train         FAILED     box       default  ada     0         2026-03-01T12:00:00Z  "
      "2026-03-01T12:01:00Z  2026-03-01T12:02:30Z  sig 9  team=vision  the memory limit of 1Gi was "
      "reached\n");
}

TEST(JobTable, HasColoursOnlyIfAsked) {
  EXPECT_THAT(TableOf({FailedJob()}, {.colours = true}), HasSubstr("\x1b[31mFAILED\x1b[0m"));
  EXPECT_THAT(TableOf({FailedJob()}, {}), Not(HasSubstr("\x1b")));
}

TEST(JobTable, MakesNamesAndReasonsHarmless) {
  v1::Job job = client::JobInState(1, v1::JOB_STATE_QUEUED);
  job.set_name("\x1b]0;x\x07");
  *job.mutable_state_reason() = client::Because("a\nb");
  const std::string table = TableOf({job}, {});
  EXPECT_THAT(table, HasSubstr("\\x1b]0;x\\x07"));
  EXPECT_THAT(table, HasSubstr("a | b"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2);
}

TEST(Table, KeepsItsWidthsFromPageToPage) {
  Table table({{"A", 3}, {"B"}}, false);
  table.Add({{"1"}, {"x"}});
  EXPECT_EQ(table.Take(), "A    B\n1    x\n");
  table.Add({{"22222"}, {"y"}});
  EXPECT_EQ(table.Take(), "22222  y\n");
  EXPECT_EQ(table.Take(), "");
}

TEST(JobPage, TellsWhatHappenedAndWhatToDo) {
  v1::Job job = FailedJob();
  job.mutable_spec()->mutable_command()->mutable_argv()->add_args("python");
  job.mutable_spec()->mutable_command()->mutable_argv()->add_args("two words");
  job.mutable_spec()->mutable_resources()->set_cpu_millis(4000);
  job.mutable_runs(0)->set_state(v1::RUN_STATE_FAILED);
  job.mutable_runs(0)->set_external_id("4711");
  const v1::Transition step = client::Step(42, 5, v1::JOB_STATE_FAILED).changes(0).transition();
  const std::string page = JobPage(job, {step}, {}, kNow);
  for (const char* text :
       {"Job 42  train\n", "  State       FAILED\n",
        "  Exit        killed by signal 9 (SIGKILL) on rank 1\n",
        "  Submitted   2026-03-01T12:00:00Z (10m ago)\n", "  Needs       4 cpu\n",
        "  Command     python \"two words\"\n",
        "Failure (OOM)\n  the memory limit of 1Gi was reached\n",
        "  What to do: ask for more memory\n", "Run 42.1\n", "  Cluster id  4711\n", "PROCESS"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(JobPage, TellsWhereResultsAreAndHowFarATrainingIs) {
  v1::Job job = FailedJob();
  v1::Run& run = *job.mutable_runs(0);
  EXPECT_THAT(JobPage(job, {}, {}, kNow), Not(HasSubstr("Results")));
  run.set_results_directory("/lustre/results/42");
  v1::Progress& progress = *run.mutable_progress();
  progress.mutable_time()->set_seconds(absl::ToUnixSeconds(kNow) - 120);
  progress.set_message("going on");
  (*progress.mutable_numbers())["kpi.val_loss"] = 0.125;
  (*progress.mutable_numbers())["epoch"] = 3;
  (*progress.mutable_numbers())["cur_iter"] = 300;
  std::string page = JobPage(job, {}, {}, kNow);
  EXPECT_THAT(page, HasSubstr("  Results     /lustre/results/42\n"));
  EXPECT_THAT(page, HasSubstr("  Progress    epoch 3, cur_iter 300, kpi.val_loss 0.125: going on "
                              "(2m ago)\n"));
  for (int i = 0; i < 20; ++i) (*progress.mutable_numbers())["n" + std::to_string(i)] = i;
  page = JobPage(job, {}, {}, kNow);
  EXPECT_THAT(page, HasSubstr(" and 11 more: going on"));
}

TEST(JobPage, TellsWhatIsLeftToTheClusterFromWhatIsNotWanted) {
  v1::Job job = FailedJob();
  job.mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(0);
  EXPECT_THAT(JobPage(job, {}, {}, kNow),
              HasSubstr("  Needs       cpus and memory by the cluster's default, no GPUs\n"));
}

TEST(JobPage, AFailureQuotesWhatLedToItsVerdict) {
  v1::Job job = FailedJob();
  v1::FailureQuote* quote = job.mutable_failure()->add_quotes();
  quote->set_source("rank-0.err");
  quote->set_text("NVRM: Xid 79\x1b");
  EXPECT_THAT(JobPage(job, {}, {}, kNow), HasSubstr("  rank-0.err: NVRM: Xid 79\\x1b\n"));
}

TEST(JobPage, ARunsPodsAreATableWithWhatKeepsThemFromRunning) {
  v1::Job job = FailedJob();
  EXPECT_THAT(JobPage(job, {}, {}, kNow), Not(HasSubstr("RANK")));
  v1::Replica* runs = job.mutable_runs(0)->add_replicas();
  runs->set_name("k7m2-42-1-0-x");
  runs->set_node("node-1");
  runs->set_phase("Running");
  v1::Replica* waits = job.mutable_runs(0)->add_replicas();
  waits->set_rank(1);
  waits->set_name("k7m2-42-1-1-y");
  waits->set_phase("Pending");
  waits->mutable_issue()->set_reason("Unschedulable");
  waits->mutable_issue()->set_message("0/2 nodes\x1b");
  waits->mutable_issue()->mutable_since()->set_seconds(absl::ToUnixSeconds(kNow) - 120);
  EXPECT_THAT(
      JobPage(job, {}, {}, kNow),
      HasSubstr(
          "RANK  POD            NODE    PHASE    ISSUE\n"
          "   0  k7m2-42-1-0-x  node-1  Running  -\n"
          "   1  k7m2-42-1-1-y  -       Pending  Unschedulable: 0/2 nodes\\x1b (since 2m ago)\n"));
}

TEST(JobPage, ACommandThatIsOneWordWithBlanksIsExplained) {
  v1::Job job = FailedJob();
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_CONFIG);
  auto* args = job.mutable_spec()->mutable_command()->mutable_argv();
  args->add_args("echo hello");
  EXPECT_THAT(JobPage(job, {}, {}, kNow), HasSubstr("write it without the quotes, or use: sh -c"));
  args->add_args("again");
  EXPECT_EQ(QuotesHint(job), "");
}

TEST(JobPage, ARunThatNeverBeganHasNoOutput) {
  v1::Job job = FailedJob();
  EXPECT_NE(LogCommands(job), "");
  job.clear_start_time();
  EXPECT_EQ(LogCommands(job), "");
}

TEST(JobPage, ASetupThatFailedHasOutputThoughItsCommandNeverBegan) {
  v1::Job job = FailedJob();
  job.clear_start_time();
  job.clear_exit();
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_CONFIG);
  const struct {
    v1::FailurePhase phase;
    uint32_t rank;
    const char* commands;
  } cases[] = {
      {v1::FAILURE_PHASE_SETUP, 0, "muster logs 42.1"},
      {v1::FAILURE_PHASE_SETUP, 12, "muster logs --rank 12 42.1"},
      {v1::FAILURE_PHASE_SETUP_START, 1, ""},
      {v1::FAILURE_PHASE_COMMAND_START, 1, ""},
      {v1::FAILURE_PHASE_FILES, 0, ""},
  };
  for (const auto& row : cases) {
    job.mutable_failure()->set_phase(row.phase);
    job.mutable_failure()->set_rank(row.rank);
    EXPECT_EQ(LogCommands(job), row.commands) << v1::FailurePhase_Name(row.phase);
  }
}

TEST(JobPage, OfARunThatBeganElsewhereTheRankThatFailedIsRead) {
  v1::Job job = FailedJob();
  job.clear_exit();
  EXPECT_EQ(RankToRead(job), 0u) << "no rank is named";
  job.mutable_failure()->set_rank(3);
  EXPECT_EQ(RankToRead(job), 3u);
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_CONFIG);
  job.mutable_failure()->set_phase(v1::FAILURE_PHASE_SETUP);
  EXPECT_EQ(RankToRead(job), 3u);
  job.mutable_failure()->set_phase(v1::FAILURE_PHASE_COMMAND_START);
  EXPECT_EQ(RankToRead(job), std::nullopt) << "the others' output does not say more";
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_IMAGE);
  EXPECT_EQ(RankToRead(job), std::nullopt);
  job.mutable_exit()->set_rank(2);
  EXPECT_EQ(RankToRead(job), 2u);
  job.set_state(v1::JOB_STATE_CANCELED);
  EXPECT_EQ(RankToRead(job), std::nullopt);
}

TEST(JobPage, TheImageAndTheKubernetesSectionAreShown) {
  v1::Job job = FailedJob();
  v1::JobSpec& spec = *job.mutable_spec();
  EXPECT_THAT(JobPage(job, {}, {}, kNow), Not(HasSubstr("Kubernetes")));
  spec.set_image("debian:12\x1b");
  spec.set_setup("true");
  spec.mutable_kubernetes()->set_queue("team-a");
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  v1::Role* role = spec.add_roles();
  role->set_name("controller");
  role->set_nodes(1);
  const std::string page = JobPage(job, {}, {}, kNow);
  EXPECT_THAT(page, HasSubstr("  Image       debian:12\\x1b\n"));
  EXPECT_THAT(page, HasSubstr("  Kubernetes\n"));
  EXPECT_THAT(page, HasSubstr("    queue: team-a\n"));
  EXPECT_THAT(page, HasSubstr("      disk: ssd\n"));
  EXPECT_THAT(page, HasSubstr("  Setup\n    true\n"));
  EXPECT_THAT(page, HasSubstr("controller: rank 0, from node 0 on"));
}

TEST(JobPage, AFailureNamesItsLogAndEachLineOfItsWords) {
  v1::Job job = FailedJob();
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_TIMEOUT);
  job.mutable_failure()->set_message("stopped at its time limit");
  EXPECT_THAT(Summary(job), HasSubstr(": stopped at its time limit"));
  EXPECT_THAT(JobPage(job, {}, {}, kNow), HasSubstr("  Its output: muster logs --rank 1 42.1\n"));
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_INFRA);
  job.mutable_failure()->set_message("Slurm failed.\n  slurmd: error\x1b \n");
  EXPECT_THAT(JobPage(job, {}, {}, kNow), HasSubstr("  Slurm failed.\n    slurmd: error\\x1b \n"));
  EXPECT_THAT(Summary(job), HasSubstr(": Slurm failed. | slurmd: error\\x1b"));
  EXPECT_EQ(OneLine("\n a \n\n\tb\r\n"), "a | b");
}

TEST(Json, HasTheNamesOfTheProtoFiles) {
  v1::SubmitJobResponse response;
  response.set_job_id(42);
  response.set_repeated_request(true);
  EXPECT_EQ(ToJsonLine(response), "{\"job_id\":\"42\",\"repeated_request\":true}\n");
  EXPECT_EQ(ToJson(response), "{\n \"job_id\": \"42\",\n \"repeated_request\": true\n}\n");
}

TEST(Json, HasTheExitCodeOfASuccessAndNoneOfASignal) {
  v1::Job job;
  job.set_name("\"exit\":{}");
  EXPECT_THAT(ToJson(job), Not(HasSubstr("\"code\"")));
  job.mutable_exit();
  EXPECT_THAT(ToJsonLine(job), HasSubstr("\"exit\":{\"code\": 0}"));
  EXPECT_THAT(ToYaml(job), HasSubstr("\nexit:\n  code: 0\n"));
  job.mutable_exit()->set_rank(2);
  EXPECT_THAT(ToJsonLine(job), HasSubstr("\"exit\":{\"code\": 0,\"rank\":2}"));
  EXPECT_EQ(nlohmann::json::parse(ToJson(job))["exit"], nlohmann::json({{"code", 0}, {"rank", 2}}));
  job.mutable_exit()->set_signal(9);
  EXPECT_THAT(ToJson(job), Not(HasSubstr("\"code\"")));
  job.mutable_exit()->set_code(3);
  job.mutable_exit()->clear_signal();
  EXPECT_THAT(ToJsonLine(job), HasSubstr("\"exit\":{\"code\":3,"));
}

TEST(Json, HoldsNothingThatATerminalWouldObey) {
  v1::Job job;
  job.set_name("\x1b]0;x\x07\x7f\xc2\x9b");
  const std::string json = ToJsonLine(job);
  for (char c : json) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << json;
}

TEST(Yaml, LooksLikeThis) {
  v1::ListJobsResponse list;
  v1::Job* job = list.add_jobs();
  *job = client::JobInState(42, v1::JOB_STATE_RUNNING);
  job->mutable_spec()->mutable_command()->set_script("echo a\necho b\n");
  job->set_name("yes");
  *job->mutable_state_reason() = client::Because("a: b");
  job->clear_job_sequence();
  EXPECT_EQ(ToYaml(list),
            "jobs:\n"
            "  - id: \"42\"\n"
            "    spec:\n"
            "      command:\n"
            "        script: |+\n"
            "          echo a\n"
            "          echo b\n"
            "    state: JOB_STATE_RUNNING\n"
            "    name: \"yes\"\n"
            "    project: default\n"
            "    user: ada\n"
            "    create_time: \"2026-03-01T12:00:00Z\"\n"
            "    runs:\n"
            "      - number: 1\n"
            "        cluster: box\n"
            "    cluster: box\n"
            "    state_reason:\n"
            "      code: STATE_REASON_CODE_OTHER\n"
            "      message: \"a: b\"\n");
  EXPECT_EQ(ToYaml(v1::ListJobsResponse()), "{}\n");
}

TEST(Yaml, HoldsNothingThatATerminalWouldObey) {
  v1::Job job;
  job.set_name("\x1b]0;x\x07");
  *job.mutable_state_reason() = client::Because("\x7f\xc2\x9b\xe2\x80\xae");
  const std::string yaml = ToYaml(job);
  EXPECT_EQ(yaml, Harmless(yaml, Keep::kLayout));
}

// Every text comes back from YAML as it went in.
TEST(Yaml, IsReadBackAsWritten) {
  const std::string texts[] = {"",         "a",        "yes",      "No",         "~",     "null",
                               "1",        "1e3",      "a: b",     "a #b",       "- a",   "*a",
                               "&a",       "!a",       "|",        "'",          "\"",    "a\nb",
                               "a\nb\n",   "a\nb\n\n", "\na",      " a\nb",      "a \nb", "a\n b\n",
                               "a\n\n\nb", "a\tb\nc",  "\x1b[0m",  "é\nü",       "{}",    "[]",
                               "%a",       "@a",       "a\\nb",    "2026-03-01", "=",     "<<",
                               "a\r\nb",   "---\na",   "...\na\n", "# a\nb\n",   "\n"};
  for (const std::string& text : texts) {
    v1::JobSpec spec;
    spec.set_setup(text);
    (*spec.mutable_env())["K"] = text;
    spec.mutable_command()->mutable_argv()->add_args(text);
    const YAML::Node node = YAML::Load(ToYaml(spec));
    EXPECT_EQ(node["env"]["K"].as<std::string>(), text) << ToYaml(spec);
    EXPECT_EQ(node["command"]["argv"]["args"][0].as<std::string>(), text) << ToYaml(spec);
    if (text.empty()) continue;
    EXPECT_EQ(node["setup"].as<std::string>(), text) << ToYaml(spec);
  }
}

TEST(ExitCode, FollowsTheStatus) {
  EXPECT_EQ(CodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(CodeFor(absl::NotFoundError("")), 1);
  EXPECT_EQ(CodeFor(absl::UnavailableError("")), 1);
  EXPECT_EQ(CodeFor(absl::PermissionDeniedError("")), 4);
  EXPECT_EQ(CodeFor(absl::UnauthenticatedError("")), 4);
  EXPECT_EQ(CodeFor(absl::DeadlineExceededError("")), 8);
  EXPECT_EQ(CodeFor(contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", "")),
            13);
  EXPECT_EQ(CodeFor(contract::Error(absl::StatusCode::kFailedPrecondition, "OTHER", "")), 1);
}

TEST(ExitCode, FollowsTheJob) {
  EXPECT_EQ(CodeFor(client::JobInState(1, v1::JOB_STATE_SUCCEEDED)), 0);
  EXPECT_EQ(CodeFor(client::JobInState(1, v1::JOB_STATE_CANCELED)), 11);
  v1::Job job = client::JobInState(1, v1::JOB_STATE_FAILED);
  EXPECT_EQ(CodeFor(job), 10);
  for (const auto& [kind, code] :
       std::map<v1::FailureClass, int>{{v1::FAILURE_CLASS_PROGRAM, 10},
                                       {v1::FAILURE_CLASS_TIMEOUT, 10},
                                       {v1::FAILURE_CLASS_OOM, 10},
                                       {v1::FAILURE_CLASS_CONFIG, 10},
                                       {v1::FAILURE_CLASS_INFRA, 12},
                                       {v1::FAILURE_CLASS_PREEMPTED, 12}}) {
    job.mutable_failure()->set_failure_class(kind);
    EXPECT_EQ(CodeFor(job), code) << v1::FailureClass_Name(kind);
  }
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_IMAGE);
  EXPECT_EQ(CodeFor(job), 10) << "no such image";
  job.mutable_failure()->set_retriable(true);
  EXPECT_EQ(CodeFor(job), 12) << "its registry did not answer";
  job.clear_failure();
  job.mutable_runs(0)->set_state(v1::RUN_STATE_LOST);
  EXPECT_EQ(CodeFor(job), 12);
}

TEST(ClusterPage, NodesThatAnAgentMayNotSeeAreNotShownAsNone) {
  v1::Cluster cluster;
  cluster.set_kind(v1::CLUSTER_KIND_KUBERNETES);
  v1::Pool* pool = cluster.mutable_inventory()->add_pools();
  pool->set_name("lab");
  pool->set_is_default(true);
  pool->set_available(true);
  EXPECT_THAT(ClusterPage(cluster, nullptr, Style(), kNow), HasSubstr("nodes not known"));
  v1::ClusterDetails details;
  v1::PoolLoad* load = details.add_pools();
  load->set_pool("lab");
  *load->mutable_now() = *pool;
  EXPECT_THAT(ClusterPage(cluster, &details, Style(), kNow), Not(HasSubstr("0/0")));
  // A pool that takes no jobs has none.
  pool->set_available(false);
  EXPECT_THAT(ClusterPage(cluster, nullptr, Style(), kNow), Not(HasSubstr("not known")));
}

}  // namespace
}  // namespace muster::cli
