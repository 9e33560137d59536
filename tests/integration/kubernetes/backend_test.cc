// Tests the life of runs on a real Kubernetes cluster, with an agent that has the least rights.
#include <string>

#include "absl/time/clock.h"
#include "agents/kubernetes/job_calls.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/backend_fixture.h"
#include "tests/unit/agents/one_run.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using Kind = agents::LaunchOutcome::Kind;
using Found = agents::LookupOutcome::Kind;

class KubernetesBackendTest : public BackendFixture {};

TEST_F(KubernetesBackendTest, ThreePodsMeetAtTheMaster) {
  v1::JobSpec spec = ScriptSpec(R"(exec python3 - <<'PYTHON'
import os, socket, time
rank, world = int(os.environ["NODE_RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", address[1]))
    peers = [server.accept()[0] for _ in range(world - 1)]
    print("met", sorted(int(peer.recv(16)) for peer in peers))
else:
    for _ in range(600):
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(str(rank).encode())
    peer.close()
    print("rank", rank)
PYTHON)");
  spec.set_nodes(3);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run, 0), "met [1, 2]\n");
  EXPECT_EQ(Output(backend(), run, 2), "rank 2\n");
  EXPECT_EQ(run.last.nodes.size(), 3);
}

TEST_F(KubernetesBackendTest, TheRankThatFailsFirstCountsAndTheOthersLogsAreKept) {
  v1::JobSpec spec = WithGate(
      ScriptSpec(fmt::format("echo rank $NODE_RANK; if [ $NODE_RANK = 1 ]; then {}; exit 5; fi; "
                             "sleep 300",
                             kAwaitGate)));
  spec.set_nodes(2);
  spec.mutable_kubernetes()->mutable_termination_grace()->set_seconds(1);
  TestRun run = NewRun(spec);
  Launch(backend(), &run);
  // A pod that has not begun when the other one fails has no log.
  for (const uint32_t rank : {0, 1}) {
    WaitFor("its output", [&] {
      EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
      return Output(backend(), run, rank) == fmt::format("rank {}\n", rank);
    });
  }
  OpenGate();
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value());
  EXPECT_EQ(run.last.exit->code(), 5);
  EXPECT_EQ(run.last.exit->rank(), 1u);
  EXPECT_THAT(Output(backend(), run, 0), OutputOfCanceled("rank 0\n")) << "it was deleted";
  EXPECT_EQ(Output(backend(), run, 1), "rank 1\n");
}

TEST_F(KubernetesBackendTest, ACancelEndsARunThatWaitsAndOneThatIgnoresTerm) {
  v1::JobSpec stubborn = ScriptSpec("trap '' TERM; echo ready; while :; do sleep 0.1; done");
  stubborn.mutable_kubernetes()->mutable_termination_grace()->set_seconds(1);
  TestRun running = NewRun(stubborn);
  TestRun waiting = NewRun(ScriptSpec("true"));
  Hold(&waiting);
  Launch(backend(), &running);
  Launch(backend(), &waiting);
  WaitFor("the trap", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&running, &waiting}).ok());
    return Output(backend(), running) == "ready\n";
  });
  EXPECT_EQ(waiting.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(backend(), waiting.handle).ok());
  EXPECT_TRUE(EndOne(backend(), running.handle).ok());
  ObserveToEnd(backend(), {&running, &waiting});
  EXPECT_EQ(running.handle.state, v1::RUN_STATE_CANCELED) << running.last.evidence.DebugString();
  EXPECT_EQ(waiting.handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_TRUE(EndOne(backend(), running.handle).ok()) << "a run that has ended counts as canceled";
  for (const char* kind : {"jobs", "pods", "secrets"}) {
    WaitFor(std::string("nothing is left of ") + kind,
            [&] { return ObjectsOf(kind, running).empty() && ObjectsOf(kind, waiting).empty(); });
  }
}

TEST_F(KubernetesBackendTest, AJobThatOthersDeleteEndsTheRunAndSaysSo) {
  v1::JobSpec spec = ScriptSpec("echo up; sleep 300");
  spec.mutable_kubernetes()->mutable_termination_grace()->set_seconds(1);
  TestRun run = NewRun(spec);
  Launch(backend(), &run);
  ObserveUntil(backend(), {&run}, v1::RUN_STATE_RUNNING);
  cluster_.MustDo("DELETE",
                  PathOf("jobs") + "/" + run.handle.run_key + "?propagationPolicy=Background");
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(run.last.evidence.detail(), HasSubstr("not by Muster"));
}

TEST_F(KubernetesBackendTest, ATimeLimitIsATimeout) {
  v1::JobSpec spec = ScriptSpec("trap 'exit 0' TERM; while :; do sleep 0.1; done");
  spec.mutable_time_limit()->set_seconds(2);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT)
      << run.last.failure->DebugString();
}

TEST_F(KubernetesBackendTest, AnImageThatIsNotThereEndsTheRunAndItsJob) {
  KubernetesConfig config = Config();
  config.start_grace = absl::Seconds(1);
  Start(config);
  v1::JobSpec spec = ScriptSpec("true");
  spec.set_image("registry.test/missing:1");
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_IMAGE)
      << run.last.failure->DebugString();
  WaitFor("the Job is gone", [&] { return ObjectsOf("jobs", run).empty(); });
}

TEST_F(KubernetesBackendTest, WhatCouldNeverFitIsRefusedBeforeAnythingIsMade) {
  TestRun run = NewRun(GpuSpec("true", 1, 16));
  const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("nvidia.com/gpu"));
  EXPECT_TRUE(ObjectsOf("jobs", run).empty());
}

TEST_F(KubernetesBackendTest, ARefusalOfTheServerReachesTheUserWhole) {
  v1::JobSpec spec = ScriptSpec("true");
  (*spec.mutable_kubernetes()->mutable_node_selector())["no spaces"] = "x";
  TestRun run = NewRun(spec);
  const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("no spaces"));
}

TEST_F(KubernetesBackendTest, WhatDoesNotFitNowWaitsAsAWholeAndStartsOnceThereIsRoom) {
  TestRun first = NewRun(WithGate(GpuSpec(kAwaitGate, 1, 8)));
  TestRun second = NewRun(GpuSpec("echo at last", 2, 8));
  Launch(backend(), &first);
  ObserveUntil(backend(), {&first}, v1::RUN_STATE_RUNNING);
  Launch(backend(), &second);
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&second}).ok());
    return second.last.reason.message().find("there is room for") != std::string::npos;
  });
  EXPECT_EQ(second.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(ObjectsOf("pods", second).empty()) << "no half of it holds a node";
  OpenGate();
  ObserveToEnd(backend(), {&first, &second});
  EXPECT_EQ(second.handle.state, v1::RUN_STATE_SUCCEEDED) << second.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), second, 1), "at last\n");
}

TEST_F(KubernetesBackendTest, AHeldRunStartsOnceItIsReleased) {
  TestRun run = NewRun(ScriptSpec("echo released"));
  Hold(&run);
  Launch(backend(), &run);
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return run.last.reason.message().find("held") != std::string::npos;
  });
  EXPECT_TRUE(ObjectsOf("pods", run).empty());
  run.handle.held = false;
  EXPECT_TRUE(HoldOne(backend(), run.handle, false).ok());
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(run.last.evidence.source(), v1::EVIDENCE_SOURCE_POD);
  EXPECT_THAT(run.last.evidence.detail(), HasSubstr("resourceVersion"));
}

TEST_F(KubernetesBackendTest, ALaunchThatWasCutShortCannotStartAndIsCompletedByTheNext) {
  TestRun run = NewRun(ScriptSpec("echo whole"));
  KubernetesConfig config = Config();
  const absl::StatusOr<RunObjects> objects =
      MakeObjects(*run.handle.assignment, config, name_space_);
  ASSERT_TRUE(objects.ok()) << objects.status();
  JobCalls calls(&cluster_.api(), nullptr);
  JobObject job;
  bool is_new = false;
  ASSERT_FALSE(calls.CreateJob(*objects, &job, &is_new).has_value());
  // An agent that was killed came as far as this.
  ASSERT_FALSE(calls.CreateOwned(*objects, job, is_new).has_value());
  EXPECT_EQ(backend().Lookup(run.handle).kind, Found::kAbsent);
  Launch(backend(), &run);
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run), "whole\n");
}

TEST_F(KubernetesBackendTest, ARunWithGpusStartsOnNodesThatTheirTaintKeepsForIt) {
  const Json taint = {{"key", "nvidia.com/gpu"}, {"value", "present"}, {"effect", "NoSchedule"}};
  const Json taints = {{"taints", Json::array({taint})}};
  const NodeSpec first("node-1", taints, {{"taints", nullptr}});
  const NodeSpec second("node-2", taints, {{"taints", nullptr}});
  const TestRun run = RunToEnd(GpuSpec("echo up", 2, 8));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
}

TEST_F(KubernetesBackendTest, AJobOfThatNameThatIsAnothersIsNotAdopted) {
  TestRun run = NewRun(ScriptSpec("true"));
  const Json pod = {{"restartPolicy", "Never"},
                    {"containers", {{{"name", "x"}, {"image", "debian:12"}}}}};
  cluster_.MustDo("POST", PathOf("jobs"),
                  {{"metadata", {{"name", run.handle.run_key}}},
                   {"spec", {{"suspend", true}, {"template", {{"spec", pod}}}}}});
  const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("none of Muster's"));
  EXPECT_EQ(backend().Lookup(run.handle).kind, Found::kAbsent);
}

TEST_F(KubernetesBackendTest, ASecretOrServiceOfThatNameThatIsAnothersStaysAndTheRunSaysSo) {
  for (const char* kind : {"Service", "Secret"}) {
    const std::string path = PathOf(kind == std::string("Secret") ? "secrets" : "services");
    v1::JobSpec spec = ScriptSpec("true");
    spec.set_nodes(2);
    TestRun run = NewRun(spec);
    Json own = {{"metadata", {{"name", run.handle.run_key}, {"labels", {{"mine", "yes"}}}}}};
    if (kind == std::string("Service")) own["spec"] = {{"ports", {{{"port", 80}}}}};
    const Json made = cluster_.MustDo("POST", path, own);
    const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
    EXPECT_EQ(outcome.kind, Kind::kRefused);
    EXPECT_THAT(outcome.failure.message(),
                HasSubstr(fmt::format("{0} {1}/{2}: a {0} of that name is there, and is not this "
                                      "run's",
                                      kind, name_space_, run.handle.run_key)));
    EXPECT_THAT(outcome.failure.remedy(), HasSubstr("Have its owner rename"));
    WaitFor("the Job is gone", [&] { return ObjectsOf("jobs", run).empty(); });
    const Json there = cluster_.MustDo("GET", path + "/" + run.handle.run_key);
    EXPECT_EQ(there["metadata"]["uid"], made["metadata"]["uid"]);
    EXPECT_EQ(there["metadata"]["labels"], own["metadata"]["labels"]);
  }
}

TEST_F(KubernetesBackendTest, AnAgentThatIsStartedAnewGoesOnWithRunsAndLogs) {
  TestRun run = NewRun(WithGate(ScriptSpec(fmt::format("echo one; {}; echo two", kAwaitGate))));
  Launch(backend(), &run);
  WaitFor("the first line", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return Output(backend(), run) == "one\n";
  });
  Start(Config(), {run.handle});
  OpenGate();
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run), "one\ntwo\n");
}

TEST_F(KubernetesBackendTest, ARunThatEndedAndWentWhileNobodyLookedIsLost) {
  TestRun run = NewRun(ScriptSpec("true"));
  Launch(backend(), &run);
  backend_.reset();
  WaitFor("the end", [&] { return At(JobOf(run), "status/succeeded") == 1; });
  cluster_.MustDo("DELETE",
                  PathOf("jobs") + "/" + run.handle.run_key + "?propagationPolicy=Background");
  WaitFor("the Job is gone", [&] { return ObjectsOf("jobs", run).empty(); });
  Start(Config(), {run.handle});
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_LOST);
  EXPECT_THAT(run.last.evidence.detail(), HasSubstr("nobody saw it go"));
}

TEST_F(KubernetesBackendTest, ForgettingLetsKubernetesCleanUp) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.set_nodes(2);
  spec.mutable_kubernetes()->mutable_time_to_live()->set_seconds(0);
  const TestRun run = RunToEnd(spec);
  EXPECT_GT(JobOf(run)["spec"]["ttlSecondsAfterFinished"].get<int>(), 600000);
  EXPECT_TRUE(ForgetOne(backend(), run.handle).ok());
  for (const char* kind : {"jobs", "pods", "secrets", "services"}) {
    WaitFor(std::string("nothing is left of ") + kind,
            [&] { return ObjectsOf(kind, run).empty(); });
  }
}

TEST_F(KubernetesBackendTest, NothingChangesWhileTheApiServerIsAway) {
  TestRun run = NewRun(ScriptSpec("echo up; sleep 300"));
  Launch(backend(), &run);
  ObserveUntil(backend(), {&run}, v1::RUN_STATE_RUNNING);
  cluster_.Stop("kube-apiserver");
  cluster_.Kill("kube-apiserver");
  (void)ObserveOnce(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_RUNNING);
  cluster_.AwaitApi();
  WaitFor("the watches are back", [&] { return ObserveOnce(backend(), {&run}).ok(); });
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_RUNNING);
  // A server that has just started may refuse what it will take; an agent asks again.
  WaitFor("the cancel is taken", [&] { return EndOne(backend(), run.handle).ok(); });
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED);
}

TEST_F(KubernetesBackendTest, APlanShowsTheManifestAfterADryRun) {
  v1::JobSpec spec = ScriptSpec("true");
  const absl::StatusOr<v1::JobPlan> plan = backend().Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->submission(), HasSubstr("kind: \"Job\""));
  for (const v1::ClusterCheck& check : plan->checks())
    EXPECT_EQ(check.result(), v1::CHECK_RESULT_OK) << check.DebugString();
  EXPECT_TRUE(cluster_.MustDo("GET", PathOf("jobs"))["items"].empty());
}

TEST_F(KubernetesBackendTest, APlanTakesAQuotaThatIsFullForNoRefusal) {
  const Json quota = {{"metadata", {{"name", "few"}}}, {"spec", {{"hard", {{"secrets", "1"}}}}}};
  cluster_.MustDo("POST", PathOf("secrets"), {{"metadata", {{"name", "others"}}}});
  cluster_.MustDo("POST", PathOf("resourcequotas"), quota);
  WaitFor("the quota counts", [&] {
    return cluster_.MustDo("GET", PathOf("resourcequotas") + "/few")["status"]["used"]["secrets"] ==
           "1";
  });
  const absl::StatusOr<v1::JobPlan> plan = backend().Plan(ScriptSpec("true"), "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->checks(0).seen(), HasSubstr("exceeded quota: few"));
  EXPECT_EQ(plan->checks(0).result(), v1::CHECK_RESULT_WARN);
}

}  // namespace
}  // namespace muster::kubernetes
