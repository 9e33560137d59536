// Runs that Kueue lets go. Kueue itself is not here: the test does to Jobs what Kueue does, by
// https://kueue.sigs.k8s.io/docs/tasks/run/jobs/ and its sources: it sees Jobs by their label, lets
// one go by its `suspend`, and takes the room of one back the same way.
#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/backend_fixture.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";

class KubernetesQueueTest : public BackendFixture {
 protected:
  KubernetesQueueTest() { Start(Config()); }

  TestRun LaunchQueued(v1::JobSpec spec) {
    spec.mutable_kubernetes()->set_queue("team");
    TestRun run = NewRun(std::move(spec));
    Launch(backend(), &run);
    WaitFor("the label by which Kueue sees it", [&] { return QueueOf(run) == "team"; });
    return run;
  }

  std::string QueueOf(const TestRun& run) {
    return JobOf(run)["metadata"]["labels"].value(kQueueLabel, "");
  }

  // To its end, of a program that says "begun".
  TestRun SuspendOnceBegun(const v1::JobSpec& spec) {
    TestRun run = LaunchQueued(spec);
    SetSuspended(run, false);
    WaitFor("its output", [&] {
      EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
      return Output(backend(), run) == "begun\n";
    });
    SetSuspended(run, true);
    ObserveToEnd(backend(), {&run});
    return run;
  }

  // As Kueue does.
  void SetSuspended(const TestRun& run, bool suspended) {
    cluster_.MustDo("PATCH", PathOf("jobs") + "/" + run.handle.run_key,
                    {{"spec", {{"suspend", suspended}}}});
  }
};

TEST_F(KubernetesQueueTest, ARunWaitsForItsQueueAndStartsWhenThatLetsItGo) {
  TestRun run = LaunchQueued(ScriptSpec("echo admitted"));
  ObserveUntil(backend(), {&run}, v1::RUN_STATE_PENDING);
  EXPECT_THAT(run.last.reason, HasSubstr("suspended by its queue"));
  EXPECT_TRUE(ObjectsOf("pods", run).empty());
  SetSuspended(run, false);
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(backend(), run), "admitted\n");
}

TEST_F(KubernetesQueueTest, AHoldTakesARunOutOfItsQueueAndAReleasePutsItBack) {
  TestRun run = LaunchQueued(ScriptSpec("true"));
  run.handle.held = true;
  EXPECT_TRUE(backend().SetHeld(run.handle, true).ok());
  EXPECT_EQ(QueueOf(run), "");
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return run.last.reason.find("held") != std::string::npos;
  });
  run.handle.held = false;
  EXPECT_TRUE(backend().SetHeld(run.handle, false).ok());
  EXPECT_EQ(QueueOf(run), "team");
  EXPECT_TRUE(JobOf(run)["spec"]["suspend"]) << "that is Kueue's to change";
  SetSuspended(run, false);
  ObserveUntil(backend(), {&run}, v1::RUN_STATE_RUNNING);
  EXPECT_TRUE(backend().SetHeld(run.handle, true).ok()) << "it has begun";
  ObserveToEnd(backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
}

// Where nodes may not be listed, what does not fit waits in Kubernetes.
TEST_F(KubernetesQueueTest, AHoldOfARunThatWaitsInKubernetesLetsItWait) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_kubernetes()->set_scheduler_name("nobody");
  TestRun run = NewRun(spec);
  Launch(backend(), &run);
  WaitFor("its pod", [&] { return !ObjectsOf("pods", run).empty(); });
  run.handle.held = true;
  EXPECT_TRUE(backend().SetHeld(run.handle, true).ok());
  WaitFor("its pod to go", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING) << run.last.evidence.DebugString();
    return ObjectsOf("pods", run).empty();
  });
  WaitFor("a reason", [&] {
    EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
    return run.last.reason.find("held") != std::string::npos;
  });
  run.handle.held = false;
  EXPECT_TRUE(backend().SetHeld(run.handle, false).ok());
  WaitFor("its pod is back", [&] { return !ObjectsOf("pods", run).empty(); });
  EXPECT_TRUE(ObserveOnce(backend(), {&run}).ok());
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_PENDING);
  EXPECT_TRUE(backend().Cancel(run.handle).ok());
  ObserveToEnd(backend(), {&run});
}

// What Kueue preempts is suspended. Its pods then end the Job by its failure policy, or do not:
// that is a race of the Job controller's.
TEST_F(KubernetesQueueTest, ARunWhoseRoomTheQueueTakesBackIsPreempted) {
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
