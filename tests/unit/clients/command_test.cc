// Tests the muster binary against a fake broker: what it sends, what it prints where, and how it
// exits. Verbs that wait and follow are in command_follow_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "contract/errors.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandTest, RunSendsWhatItsFlagsSay) {
  const Outcome outcome = Run({"run",           "-q",      "--name",    "n",
                               "--cluster",     "a",       "--cluster", "b",
                               "--nodes",       "2",       "--gpus",    "H100:8",
                               "--cpus",        "4",       "--memory",  "16Gi",
                               "--time",        "4h",      "--env",     "A=1=2",
                               "--env",         "B=[x,y]", "--label",   "team=v",
                               "--pool",        "gpu",     "--workdir", "/w",
                               "--priority",    "-5",      "--project", "p",
                               "--preemptible", "--",      "echo",      "--wait",
                               "[a,b]",         "",        "--",        "é"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "42\n");
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(submitted_.size(), 1u);
  const v1::JobSpec& spec = submitted_[0].spec();
  EXPECT_THAT(spec.command().argv().args(), ElementsAre("echo", "--wait", "[a,b]", "", "--", "é"));
  EXPECT_EQ(spec.name(), "n");
  EXPECT_THAT(spec.placement().clusters(), ElementsAre("a", "b"));
  EXPECT_EQ(spec.placement().pool(), "gpu");
  EXPECT_EQ(spec.nodes(), 2u);
  EXPECT_EQ(spec.resources().cpu_millis(), 4000u);
  EXPECT_EQ(spec.resources().memory_bytes(), 16ull << 30);
  EXPECT_EQ(spec.resources().gpus(0).count_millis(), 8000u);
  EXPECT_EQ(spec.time_limit().seconds(), 4 * 3600);
  EXPECT_EQ(spec.env().at("A"), "1=2");
  EXPECT_EQ(spec.env().at("B"), "[x,y]");
  EXPECT_EQ(spec.labels().at("team"), "v");
  EXPECT_EQ(spec.working_directory(), "/w");
  EXPECT_EQ(spec.priority(), -5);
  EXPECT_TRUE(spec.preemptible());
  EXPECT_EQ(spec.project(), "p");
  EXPECT_EQ(submitted_[0].request_id().size(), 36u);
}

TEST_F(CommandTest, RunTakesAnImageAndItsMounts) {
  const Outcome outcome = Run({"run", "--image", "nvcr.io/nvidia/tao:5.0", "--mount", "/d:/data:ro",
                               "--mount", "/r:/r", "--", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(submitted_.size(), 1u);
  const v1::JobSpec& spec = submitted_[0].spec();
  EXPECT_EQ(spec.image(), "nvcr.io/nvidia/tao:5.0");
  ASSERT_EQ(spec.mounts_size(), 2);
  EXPECT_EQ(spec.mounts(0).source(), "/d");
  EXPECT_EQ(spec.mounts(0).target(), "/data");
  EXPECT_TRUE(spec.mounts(0).read_only());
  EXPECT_EQ(spec.mounts(1).target(), "/r");
  EXPECT_FALSE(spec.mounts(1).read_only());
}

TEST_F(CommandTest, SubmitReadsAFileAndFlagsOverrideIt) {
  const std::string path = WriteFile("run: echo\nname: file\nnodes: 3\nenv: {A: 1}\n");
  const Outcome outcome = Run({"submit", path, "--name", "flag", "--env", "B=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "42\n");
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].spec().name(), "flag");
  EXPECT_EQ(submitted_[0].spec().nodes(), 3u);
  EXPECT_EQ(submitted_[0].spec().env().size(), 2u);
}

TEST_F(CommandTest, SubmitTakesASkyPilotTaskAndSaysWhatItIgnores) {
  const std::string path =
      WriteFile("num_nodes: 2\nenvs: {A: }\nrun: echo $A\nresources: {use_spot: true}\n");
  const Outcome outcome = Run({"submit", "--env", "A=1", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "42\n");
  EXPECT_THAT(outcome.err, HasSubstr("to Muster's clusters: resources.use_spot (--strict"));
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].spec().nodes(), 2u);
  EXPECT_EQ(submitted_[0].spec().env().at("A"), "1");
}

TEST_F(CommandTest, StrictRefusesWhatASkyPilotTaskSaysInVain) {
  const std::string path = WriteFile("num_nodes: 2\nrun: x\nresources: {use_spot: true}\n");
  for (const char* verb : {"submit", "plan"}) {
    const Outcome outcome = Run({verb, "--strict", path});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("job.yaml:3:23: resources.use_spot: means nothing"));
  }
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(CommandTest, SubmitSendsSeveralJobsTogether) {
  std::vector<v1::SubmitJobsRequest> requests;
  broker_.submit_jobs =
      [&](const v1::SubmitJobsRequest& request) -> absl::StatusOr<v1::SubmitJobsResponse> {
    requests.push_back(request);
    v1::SubmitJobsResponse response;
    for (int i = 0; i < request.requests_size(); ++i) response.add_responses()->set_job_id(7 + i);
    return response;
  };
  const Outcome outcome = Run({"submit", WriteFile("run: a\n---\nrun: b\n")});
  EXPECT_EQ(outcome.out, "7\n8\n");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_NE(requests[0].requests(0).request_id(), requests[0].requests(1).request_id());
  Run({"submit", "--request-id", "mine", WriteFile("run: a\n---\nrun: b\n")});
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].requests(0).request_id(), "mine.1");
  EXPECT_EQ(requests[1].requests(1).request_id(), "mine.2");
}

TEST_F(CommandTest, AnErrorAboutOneOfSeveralJobsCountsThemAsTheFileDoes) {
  broker_.submit_jobs = [](const auto&) -> absl::StatusOr<v1::SubmitJobsResponse> {
    return contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_CLUSTER",
                           "placement.clusters names \"x\"",
                           {{"request", "1"}, {"field", "spec.placement.clusters"}});
  };
  const Outcome outcome = Run({"submit", WriteFile("run: a\n---\nrun: b\n")});
  EXPECT_EQ(outcome.code, 13);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("job.yaml: job 2: --cluster: placement.clusters names \"x\" [UNKNOWN_CLUSTER]\n"));
}

TEST_F(CommandTest, HoldSubmitsAJobThatStartsAfterItsRelease) {
  EXPECT_EQ(Run({"run", "-q", "--hold", "--", "true"}).out, "42\n");
  EXPECT_EQ(Run({"submit", "--hold", WriteFile("run: a\n")}).out, "42\n");
  EXPECT_EQ(Run({"run", "-q", "--", "true"}).out, "42\n");
  ASSERT_EQ(submitted_.size(), 3u);
  EXPECT_TRUE(submitted_[0].held());
  EXPECT_TRUE(submitted_[1].held());
  EXPECT_FALSE(submitted_[2].held());
  EXPECT_EQ(Run({"plan", "--hold", "--", "true"}).code, 2);
}

TEST_F(CommandTest, ValidateSubmitsNothing) {
  const Outcome outcome = Run({"run", "--validate", "--", "true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_TRUE(submitted_[0].validate_only());
}

TEST_F(CommandTest, ABadFileIsNamedWithItsPlaceAndNothingIsSent) {
  const Outcome outcome = Run({"submit", WriteFile("run: x\nresources:\n  memory: 16Q\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:3:11: resources.memory: \"16Q\""));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(CommandTest, AFieldThatTheBrokerDoesNotKnowIsToldInItsWords) {
  broker_.submit_job = [](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    return contract::Error(absl::StatusCode::kUnimplemented, "FIELD_NOT_HONOURED",
                           "this broker does not know the fields with the numbers 99",
                           {{"field", "99"}});
  };
  const Outcome outcome = Run({"submit", WriteFile("run: x\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the fields with the numbers 99"));
}

struct Refusal {
  absl::Status status;
  int code;
  const char* says;
};

TEST_F(CommandTest, ExitsByWhatTheBrokerAnswers) {
  const Refusal refusals[] = {
      {absl::PermissionDeniedError("not for you"), 4, "muster: not for you\n"},
      {contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", "too big"), 13,
       "muster: too big [CANNOT_BE_PLACED]\n"},
      {contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_CLUSTER", "no such cluster"), 13,
       "muster: no such cluster [UNKNOWN_CLUSTER]\n"},
      {contract::RetryableError(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", "full",
                                absl::Minutes(5)),
       1, "muster: full [QUEUE_FULL]\nmuster: try again in 5m\n"},
      {contract::BadField("nodes", "7 is odd"), 1, "muster: nodes: 7 is odd\n"},
      {contract::Error(absl::StatusCode::kDeadlineExceeded, "SLOW", "too slow"), 8,
       "muster: too slow [SLOW]\n"}};
  for (const Refusal& refusal : refusals) {
    broker_.submit_job = [&](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
      return refusal.status;
    };
    const Outcome outcome = Run({"run", "--", "true"});
    EXPECT_EQ(outcome.code, refusal.code) << refusal.says;
    EXPECT_THAT(outcome.err, StartsWith(refusal.says));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(CommandTest, BadUsageIsCodeTwoAndSaysWhatToDo) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "subcommand"},
      {{"fly"}, "fly"},
      {{"run"}, "put the command after --"},
      {{"run", "echo"}, "put the command after --"},
      {{"run", "--"}, "no command after --"},
      {{"run", "--nmae", "x", "--", "y"}, "--nmae"},
      {{"run", "--memory", "16Q", "--", "x"}, "--memory: \"16Q\""},
      {{"run", "--env", "novalue", "--", "x"}, "--env: \"novalue\" is not KEY=VALUE"},
      {{"run", "--image", "i", "--mount", "/a", "--", "x"},
       "--mount: \"/a\" is not SRC:DST or SRC:DST:ro"},
      {{"run", "--image", "i", "--mount", "/a:/b:rw", "--", "x"},
       "--mount: \"/a:/b:rw\" is not SRC:DST or SRC:DST:ro"},
      {{"run", "--nodes", "-1", "--", "x"}, "nodes"},
      {{"list", "-o", "xml"}, "\"xml\" is not table"},
      {{"list", "--", "x"}, "only run and plan take a command"},
      {{"list", "--", "--name"}, "\"--name\" is more than muster list takes; only run and plan"},
      {{"list", "--", "cancel", "7"}, "only run and plan take a command"},
      {{"--", "list"}, "subcommand"},
      {{"show", "--", "-7"}, "\"-7\" is not a job"},
      {{"show"}, "name at least one job"},
      {{"show", "banana"}, "\"banana\" is not a job"},
      {{"show", "0"}, "\"0\" is not a job"},
      {{"wait", "--timeout", "later", "1"}, "\"later\" is not a duration"},
      {{"logs"}, "name at least one job"},
      {{"logs", "1", "--filter", "id > 1"}, "either jobs or --filter"},
      {{"logs", "1", "2", "--run", "1"}, "--run is for one job"},
      {{"cp", "42_[1-2]:x", "y"}, "one job at a time"},
      {{"events"}, "add -f"},
      {{"list", "--name", "\xff"}, "\"\\xff\" is not UTF-8"},
      {{"submit"}, "FILE"}};
  for (const auto& [arguments, says] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << says << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

TEST_F(CommandTest, HelpAndVersionGoToStandardOutput) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"--version"}, {"version"}}) {
    const Outcome outcome = RunCommand("", arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("muster"));
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(CommandTest, WithoutABrokerItSaysWhatItHasTriedAndHowToNameOne) {
  const Outcome outcome = RunCommand("", {"list"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("cannot reach the broker at "
                        "unix:/nonexistent/.local/state/muster/broker.sock (tried because none is "
                        "named by --broker, by MUSTER_BROKER or in "
                        "/nonexistent/.config/muster/config.yaml)"));
  EXPECT_THAT(outcome.err, HasSubstr("name another one with --broker or MUSTER_BROKER"));
  const Outcome homeless = Command("", {"list"}, /*on_terminal=*/false, {"HOME="}).Finish();
  EXPECT_EQ(homeless.code, 2);
  EXPECT_THAT(homeless.err, HasSubstr("no broker is named: use --broker ADDRESS"));
  broker_.Stop();
  const Outcome gone = Run({"list"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("cannot reach the broker at " + broker_.address() +
                                  " (named by MUSTER_BROKER)"));
  EXPECT_THAT(gone.err, HasSubstr("trying again for up to 2s; Ctrl-C to stop"));
  EXPECT_THAT(gone.err, HasSubstr("start the broker"));
}

TEST_F(CommandTest, AnUnclearSubmissionNamesTheIdToRepeatItWith) {
  broker_.submit_job = [](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    return contract::RetryableError(absl::StatusCode::kUnavailable, "BROKER_STOPPED", "stopped",
                                    absl::Minutes(5));
  };
  const Outcome outcome = Run({"run", "-q", "--request-id", "mine", "--", "true"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("without making a second job, add: --request-id mine\n"));
}

TEST_F(CommandTest, SubmitsUnderTheRequestIdThatIsGiven) {
  EXPECT_EQ(Run({"run", "--request-id", "mine", "--", "true"}).code, 0);
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].request_id(), "mine");
  const Outcome bad = Run({"run", "--request-id", std::string(1000, 'x'), "--", "true"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("request_id"));
}

TEST_F(CommandTest, ListPagesOnAndStopsAtItsLimit) {
  std::vector<v1::ListJobsRequest> requests;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    requests.push_back(request);
    v1::ListJobsResponse page;
    // The second page is empty and not the last.
    for (int i = 0; requests.size() != 2 && i < std::min(request.page_size(), 2); ++i) {
      *page.add_jobs() = JobInState(10 * requests.size() + i, v1::JOB_STATE_RUNNING);
    }
    if (requests.size() < 4) page.set_next_page_token("t");
    return page;
  };
  EXPECT_EQ(Run({"list", "-q", "--limit", "0"}).out, "10\n11\n30\n31\n40\n41\n");
  EXPECT_THAT(requests, ::testing::SizeIs(4));
  requests.clear();
  const Outcome limited = Run({"list", "-o", "name", "--limit", "3"});
  EXPECT_EQ(limited.out, "10\n11\n30\n");
  EXPECT_EQ(limited.err, "");
}

TEST_F(CommandTest, ListSaysThatThereAreMoreOnlyToPeopleAtItsOwnLimit) {
  broker_.list_jobs =
      [](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    v1::ListJobsResponse page;
    for (int i = 0; i < request.page_size(); ++i) page.add_jobs()->set_id(i + 1);
    page.set_next_page_token("t");
    return page;
  };
  EXPECT_THAT(Run({"list"}).err, HasSubstr("there are more; --limit 0 lists all of them"));
  EXPECT_EQ(Run({"list", "--limit", "1"}).err, "");
  for (const char* format : {"json", "jsonl", "yaml", "name"})
    EXPECT_EQ(Run({"list", "-o", format}).err, "") << format;
}

TEST_F(CommandTest, ListMakesAFilterOfItsFlags) {
  std::string filter;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    filter = request.filter();
    return v1::ListJobsResponse();
  };
  const Outcome outcome =
      Run({"list", "--state", "running", "--state", "QUEUED", "--name", "a\"b", "--cluster", "c",
           "--project", "p", "--label", "team=v", "--filter", "state != FAILED"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "muster: no jobs\n");
  EXPECT_EQ(
      filter,
      "(state = \"RUNNING\" OR state = \"QUEUED\") AND (cluster = \"c\") AND name = \"a\\\"b\" AND "
      "project = \"p\" AND label.team = \"v\" AND (state != FAILED)");
}

TEST_F(CommandTest, ListTakesHeldForAState) {
  std::string filter;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    filter = request.filter();
    return v1::ListJobsResponse();
  };
  EXPECT_EQ(Run({"list", "--state", "held", "--state", "running"}).code, 0);
  EXPECT_EQ(filter, "(held = true OR state = \"RUNNING\")");
}

TEST_F(CommandTest, ListTakesStatesWithCommasBetweenThem) {
  std::string filter;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    filter = request.filter();
    return v1::ListJobsResponse();
  };
  EXPECT_EQ(Run({"list", "--state", "running,held", "--state", "FAILED"}).code, 0);
  EXPECT_EQ(filter, "(state = \"RUNNING\" OR held = true OR state = \"FAILED\")");
  const Outcome bad = Run({"list", "--state", "running,,done"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("\"\" is not a state of jobs"));
}

TEST_F(CommandTest, AFilterAloneIsSentAsItWasWritten) {
  std::string filter;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    filter = request.filter();
    return v1::ListJobsResponse();
  };
  Run({"list", "--filter", "state = FAILED"});
  EXPECT_EQ(filter, "state = FAILED");
}

TEST_F(CommandTest, EveryFormatOfAListing) {
  broker_.list_jobs = [&](const auto&) -> absl::StatusOr<v1::ListJobsResponse> {
    v1::ListJobsResponse page;
    for (uint64_t id : {1, 2}) page.add_jobs()->set_id(id);
    return page;
  };
  EXPECT_EQ(Run({"list", "-o", "json"}).out,
            "{\n \"jobs\": [\n  {\n   \"id\": \"1\"\n  },\n  {\n   \"id\": \"2\"\n  }\n ]\n}\n");
  EXPECT_EQ(Run({"list", "-o", "jsonl"}).out, "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
  EXPECT_EQ(Run({"list", "-o", "yaml"}).out, "---\njobs:\n  - id: \"1\"\n  - id: \"2\"\n");
  EXPECT_EQ(Run({"list", "-o", "name"}).out, "1\n2\n");
  EXPECT_EQ(Run({"list", "-o", "jsonl", "-q"}).out, "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
  EXPECT_THAT(Run({"list"}).out, StartsWith("  ID  NAME"));
  EXPECT_THAT(Run({"list", "-o", "wide"}).out, HasSubstr("PRIORITY"));
}

TEST_F(CommandTest, ListSendsItsOrder) {
  std::string order;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    order = request.order_by();
    return v1::ListJobsResponse();
  };
  Run({"list", "--order-by", "priority desc"});
  EXPECT_EQ(order, "priority desc");
}

TEST_F(CommandTest, ClustersAreListedAndShown) {
  v1::Cluster cluster;
  cluster.set_name("box");
  cluster.set_kind(v1::CLUSTER_KIND_MACHINES);
  cluster.set_state(v1::CLUSTER_STATE_CONNECTED);
  v1::Pool* pool = cluster.mutable_inventory()->add_pools();
  v1::ClusterIssue* issue = cluster.mutable_inventory()->add_issues();
  issue->set_message("memory is not enforced");
  issue->set_remedy("run it as root");
  pool->set_name("default");
  pool->set_available(true);
  v1::NodeGroup* group = pool->add_node_groups();
  group->set_count(2);
  group->set_cpus(8);
  (*group->mutable_gpus())["h100"] = 4;
  broker_.list_clusters = [&](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse response;
    *response.add_clusters() = cluster;
    return response;
  };
  broker_.get_cluster =
      [&](const v1::GetClusterRequest& request) -> absl::StatusOr<v1::GetClusterResponse> {
    if (request.name() != "box")
      return absl::NotFoundError("no cluster \"" + request.name() + "\"");
    v1::GetClusterResponse response;
    *response.mutable_cluster() = cluster;
    return response;
  };
  EXPECT_THAT(Run({"clusters"}).out,
              HasSubstr("box       machines  CONNECTED        0  2 nodes, 16 cpus, 8 h100"));
  (*cluster.mutable_scheduler_calls())["squeue"] = 40;
  (*cluster.mutable_scheduler_calls())["sbatch"] = 2;
  EXPECT_THAT(Run({"clusters", "-o", "wide"}).out, HasSubstr("     42"));
  // A warning of always is on the cluster's page, not a problem of now.
  EXPECT_THAT(Run({"clusters", "-o", "wide"}).out, Not(HasSubstr("not enforced")));
  EXPECT_THAT(Run({"clusters", "box"}).out, HasSubstr("memory is not enforced. run it as root"));
  EXPECT_EQ(Run({"clusters", "-o", "name"}).out, "box\n");
  EXPECT_THAT(Run({"clusters", "box"}).out, HasSubstr("2 x 8 cpus h100:4"));
  const Outcome unknown = Run({"clusters", "elsewhere"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(unknown.err, "muster: no cluster \"elsewhere\"\n");
}

TEST_F(CommandTest, ANamespaceThatTakesNoRunsIsAProblemAndHidesNoNodes) {
  v1::Cluster cluster;
  cluster.set_name("lab");
  cluster.set_kind(v1::CLUSTER_KIND_KUBERNETES);
  cluster.set_state(v1::CLUSTER_STATE_CONNECTED);
  v1::Pool* pool = cluster.mutable_inventory()->add_pools();
  pool->set_name("team-a");
  pool->set_state("forbidden");
  broker_.list_clusters = [&](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse response;
    *response.add_clusters() = cluster;
    return response;
  };
  EXPECT_THAT(Run({"clusters"}).out, HasSubstr("nodes not known   pool team-a is forbidden\n"));
  pool->clear_state();
  pool->set_available(true);
  EXPECT_THAT(Run({"clusters"}).out, Not(HasSubstr("pool team-a")));
}

TEST_F(CommandTest, ColoursAreForTerminalsOnly) {
  broker_.list_jobs = [&](const auto&) -> absl::StatusOr<v1::ListJobsResponse> {
    v1::ListJobsResponse page;
    *page.add_jobs() = JobInState(1, v1::JOB_STATE_FAILED);
    return page;
  };
  EXPECT_THAT(Run({"list"}).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(RunOnTerminal(broker_.address(), {"list"}).out, HasSubstr("\x1b[31m"));
  EXPECT_THAT(RunOnTerminal(broker_.address(), {"list"}, {"NO_COLOR=1"}).out,
              Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace muster::cli
