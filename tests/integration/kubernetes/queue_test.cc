// Runs whose Job is suspended: by Muster, to hold them, and by others, as Kueue does when it takes
// the room of one back. Kueue itself is in test_kubernetes_kueue.py.
#include <string>

#include "gtest/gtest.h"
#include "tests/integration/kubernetes/backend_fixture.h"
#include "tests/unit/agents/one_run.h"

namespace muster::kubernetes {
namespace {

class KubernetesQueueTest : public BackendFixture {
 protected:
  KubernetesQueueTest() { Start(Config()); }

  // Runs, to its end, a program that says "begun".
  TestRun SuspendOnceBegun(const v1::JobSpec& spec) {
    TestRun run = NewRun(spec);
    Launch(backend(), &run);
    WaitFor("its output", [&] {
      EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
      return Output(backend(), run) == "begun\n";
    });
    SetSuspended(run, true);
    ObserveToEnd(backend(), {&run});
    return run;
  }

  void SetSuspended(const TestRun& run, bool suspended) {
    cluster_.MustDo("PATCH", PathOf("jobs") + "/" + run.handle.run_key,
                    {{"spec", {{"suspend", suspended}}}});
  }
};

// A run that does not fit waits in Kubernetes if nodes may not be listed.
TEST_F(KubernetesQueueTest, AHoldOfARunThatWaitsInKubernetesLetsItWait) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_kubernetes()->set_scheduler_name("nobody");
  TestRun run = NewRun(spec);
  Launch(backend(), &run);
  WaitFor("its pod", [&] { return !ObjectsOf("pods", run).empty(); });
  run.handle.held = true;
  EXPECT_TRUE(HoldOne(backend(), run.handle, true).ok());
  WaitFor("its pod to go", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING) << run.last.evidence.DebugString();
    return ObjectsOf("pods", run).empty();
  });
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return run.last.reason.message().find("held") != std::string::npos;
  });
  run.handle.held = false;
  EXPECT_TRUE(HoldOne(backend(), run.handle, false).ok());
  WaitFor("its pod is back", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return !ObjectsOf("pods", run).empty();
  });
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(EndOne(backend(), run.handle).ok());
  ObserveToEnd(backend(), {&run});
}

// Kueue suspends the Jobs that it preempts in the same way. Its pods then end the Job by its
// failure policy, or do not: that is a race of the Job controller's.
TEST_F(KubernetesQueueTest, ARunThatIsSuspendedOnceItHasBegunIsPreempted) {
  v1::JobSpec spec = ScriptSpec("echo begun; sleep 1000");
  spec.mutable_kubernetes()->mutable_termination_grace()->set_seconds(1);
  const TestRun run = SuspendOnceBegun(spec);
  ASSERT_TRUE(run.last.failure.has_value()) << run.last.evidence.DebugString();
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_PREEMPTED)
      << run.last.failure->DebugString();
  EXPECT_TRUE(run.last.failure->retriable());
}

TEST_F(KubernetesQueueTest, AZeroInAnswerToAPreemptionIsNoSuccess) {
  const TestRun run = SuspendOnceBegun(
      ScriptSpec("trap 'echo saved; exit 0' TERM; echo begun; while :; do sleep 0.1; done"));
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_PREEMPTED)
      << run.last.failure->DebugString();
}

}  // namespace
}  // namespace muster::kubernetes
