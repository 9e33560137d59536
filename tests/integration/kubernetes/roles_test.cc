// Tests jobs of several programs on a real cluster: each rank of each is a pod.
#include "contract/roles.h"

#include <string>

#include "agents/kubernetes/job_calls.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/backend_fixture.h"
#include "tests/unit/agents/one_run.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

class KubernetesRolesTest : public BackendFixture {
 protected:
  KubernetesRolesTest() { Start(Config()); }

  // Makes a learner on one node and actors on two.
  static v1::JobSpec RolesSpec(const std::string& learner, const std::string& actor) {
    v1::JobSpec spec = ScriptSpec("");
    spec.clear_command();
    spec.set_nodes(3);
    spec.mutable_kubernetes()->mutable_termination_grace()->set_seconds(5);
    v1::Role* role = spec.add_roles();
    role->set_name("learner");
    role->set_nodes(1);
    role->mutable_command()->set_script("#!/bin/bash\n" + learner);
    role = spec.add_roles();
    role->set_name("actor");
    role->set_first_node(1);
    role->set_nodes(2);
    role->mutable_command()->set_script("#!/bin/bash\n" + actor);
    (*role->mutable_env())["SHARED"] = "of the actor";
    return spec;
  }
};

TEST_F(KubernetesRolesTest, EachRoleHasItsOwnPlaceEnvironmentAndLogs) {
  const std::string tell =
      "echo $MUSTER_ROLE $NODE_RANK of $WORLD_SIZE, $SHARED at ${MASTER_ADDR#$MUSTER_RUN_KEY}";
  v1::JobSpec spec = RolesSpec(tell, tell);
  (*spec.mutable_env())["SHARED"] = "of the job";
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run, 0), "learner 0 of 1, of the job at 127.0.0.1\n");
  for (const int rank : {0, 1}) {
    EXPECT_EQ(Output(backend(), run, 1 + rank),
              fmt::format("actor {} of 2, of the actor at -1.{}\n", rank, run.handle.run_key));
  }
}

TEST_F(KubernetesRolesTest, OneRoleThatFailsEndsAllAndIsTheRunsExit) {
  v1::JobSpec spec = RolesSpec("sleep 300", "[ $NODE_RANK = 0 ] || exit 7; sleep 300");
  spec.mutable_roles(0)->set_leads(true);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.exit.has_value()) << run.last.evidence.DebugString();
  EXPECT_EQ(run.last.exit->code(), 7);
  EXPECT_EQ(run.last.exit->rank(), 2u);
}

TEST_F(KubernetesRolesTest, TheSuccessOfARoleThatLeadsEndsTheOthersAndIsTheRuns) {
  v1::JobSpec spec = RolesSpec(R"(exec python3 -c '
import socket
server = socket.create_server(("", 29778))
actors = [server.accept()[0] for _ in range(2)]
print("learned")
')",
                               // The program connects once it is ready for the TERM.
                               "trap 'echo stopped; exit 3' TERM; "
                               "until (: >/dev/tcp/$MUSTER_ROLE_LEARNER_NODES/29778) 2>/dev/null; "
                               "do sleep 0.1; done; while :; do sleep 0.1; done");
  spec.mutable_roles(0)->set_leads(true);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_FALSE(run.last.failure.has_value());
  EXPECT_EQ(Output(backend(), run, 0), "learned\n");
  for (const int rank : {1, 2}) EXPECT_THAT(Output(backend(), run, rank), HasSubstr("stopped\n"));
}

// This is the usual end: the others lose the one that led them, and fail of that at once.
TEST_F(KubernetesRolesTest, RolesThatFailBecauseTheLeadingOneIsThroughFailNothing) {
  v1::JobSpec spec = RolesSpec(R"(exec python3 -c '
import socket
server = socket.create_server(("", 29777))
actors = [server.accept()[0] for _ in range(2)]
')",
                               R"(exec python3 -c '
import os, socket, sys, time
while True:
    try:
        learner = socket.create_connection((os.environ["MUSTER_ROLE_LEARNER_NODES"], 29777))
        break
    except OSError:
        time.sleep(0.1)
learner.recv(1)
sys.exit(9)
')");
  spec.mutable_roles(0)->set_leads(true);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_FALSE(run.last.failure.has_value());
}

// The third of four nodes is nobody's.
TEST_F(KubernetesRolesTest, RolesNeedNotTakeAllNodes) {
  v1::JobSpec spec = RolesSpec("sleep 15", "sleep 15");
  spec.set_nodes(4);
  KubernetesConfig config = Config();
  // Longer than the others need for their places on a busy machine, and shorter than they run.
  config.gang_grace = absl::Seconds(10);
  Start(config);
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
}

TEST_F(KubernetesRolesTest, AServerWithoutSuccessPoliciesRunsNoJobOfWhichARoleLeads) {
  v1::JobSpec spec = RolesSpec("true", "sleep 300");
  spec.mutable_roles(0)->set_leads(true);
  TestRun run = NewRun(spec);
  // A server that knows nothing of the policy keeps the Job so.
  const absl::StatusOr<RunObjects> objects =
      MakeObjects(*run.handle.assignment, Config(), name_space_);
  ASSERT_TRUE(objects.ok()) << objects.status();
  Json job = objects->job;
  job["spec"].erase("successPolicy");
  cluster_.MustDo("POST", PathOf("jobs"), job);
  const agents::LaunchOutcome outcome = LaunchOne(backend(), *run.handle.assignment);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("success policy"));
  EXPECT_TRUE(ObjectsOf("pods", run).empty());
  const Json left = ObjectsOf("jobs", run);
  EXPECT_TRUE(left.empty() || left[0]["metadata"].contains("deletionTimestamp")) << left;
}

}  // namespace
}  // namespace muster::kubernetes
