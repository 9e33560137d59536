// Tests leases on a real Slurm: its nodes end runs by themselves, and start none whose lease has
// ended.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "agents/slurm/run_files.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

class SlurmLeaseTest : public ::testing::Test {
 protected:
  // Makes a script that says when it gets a TERM, and is at work until then.
  static v1::JobSpec Leased(uint32_t nodes = 1) {
    v1::JobSpec spec = ScriptSpec(
        "#!/bin/bash\ntrap 'echo saved; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done");
    spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
    spec.set_nodes(nodes);
    return spec;
  }
  void Renew(absl::Duration remaining) {
    const absl::Status status = backend_->capabilities().renew_leases(remaining);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string SlurmState(const TestRun& run) {
    return cluster_->AsRoot("squeue -h -o %T -j " + run.handle.external_id + " 2>/dev/null; true");
  }
  bool HasRecord(const TestRun& run) {
    return !ReadWhole(RunPaths(cluster_->runs(), run.handle.run_key).exit_record()).empty();
  }
  static void ExpectLeaseEnded(const TestRun& run) {
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
    ASSERT_TRUE(run.last.failure.has_value());
    EXPECT_EQ(run.last.failure->code(), v1::FAILURE_CODE_LEASE_ENDED)
        << run.last.failure->DebugString();
    EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
    EXPECT_TRUE(run.last.failure->retriable());
  }
  // Returns the number of processes of the run on the cluster, which is this machine.
  static std::string ProcessesOf(const TestRun& run) {
    return Root().Run(fmt::format("pgrep -fc '/{}/[s]'; true", run.handle.run_key)).output;
  }

  TestCluster* const cluster_ = &SharedCluster();
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TEST_F(SlurmLeaseTest, NodesObeyLeases) {
  EXPECT_GT(backend_->capabilities().fence_delay, absl::ZeroDuration());
}

TEST_F(SlurmLeaseTest, ARunOnSeveralNodesEndsByItselfOnEachOfThemWhenNobodyRenewsItsLease) {
  Renew(absl::Seconds(20));
  TestRun two = NewRun(Leased(2));
  TestRun one = NewRun(Leased());
  v1::JobSpec without = Leased();
  without.clear_on_cluster_loss();
  TestRun other = NewRun(without);
  for (TestRun* run : {&two, &one, &other}) Launch(*backend_, run);
  // The agent is gone: from here on nobody talks to the cluster.
  for (TestRun* run : {&two, &one}) {
    WaitFor("the end of the lease", [&] { return HasRecord(*run); });
    WaitFor("the end of all processes", [&] { return ProcessesOf(*run) == "0\n"; });
  }
  EXPECT_EQ(Output(*backend_, one), "up\nsaved\n");
  for (const uint32_t rank : {0u, 1u}) EXPECT_EQ(Output(*backend_, two, rank), "up\nsaved\n");
  EXPECT_EQ(Output(*backend_, other), "up\n") << "a run without a lease goes on";
  ObserveToEnd(*backend_, {&two, &one});
  ExpectLeaseEnded(two);
  ExpectLeaseEnded(one);
  EXPECT_TRUE(EndOne(*backend_, other.handle).ok());
  ObserveToEnd(*backend_, {&other});
  EXPECT_EQ(other.handle.state, v1::RUN_STATE_CANCELED);
}

TEST_F(SlurmLeaseTest, ARunWhoseLeaseIsRenewedLivesOnUntilItsOwnEnd) {
  Renew(absl::Seconds(15));
  v1::JobSpec spec = Leased();
  // Twice as long as the lease.
  spec.mutable_command()->set_script("#!/bin/bash\nfor i in {1..30}; do sleep 1; done; echo done");
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  WaitFor("the end", [&] {
    Renew(absl::Seconds(15));
    return HasRecord(run);
  });
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run), "done\n");
}

TEST_F(SlurmLeaseTest, ARunThatWaitsInTheQueueUntilItsLeaseHasEndedIsNotStarted) {
  Renew(absl::Seconds(1));
  TestRun run = NewRun(Leased());
  driver::Hold(&run);
  Launch(*backend_, &run);
  WaitFor("the end of the lease", [&] {
    const std::string text = ReadWhole(RunPaths::LeaseFilePath(cluster_->runs()));
    return std::stoll(text.substr(text.rfind(' '))) < absl::ToUnixMillis(absl::Now());
  });
  cluster_->AsRoot("scontrol release " + run.handle.external_id);
  ObserveToEnd(*backend_, {&run});
  ExpectLeaseEnded(run);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("before its program could start"));
  EXPECT_EQ(Output(*backend_, run), "");
  EXPECT_FALSE(run.last.exit.has_value());
}

TEST_F(SlurmLeaseTest, WhatAProgramHasStartedByItsOwnSrunEndsWithTheLease) {
  Renew(absl::Seconds(20));
  v1::JobSpec spec = Leased();
  // The step ignores the TERM, and its srun is in a session of its own.
  spec.mutable_command()->set_script(
      "#!/bin/bash\nsetsid srun --overlap bash -c \"trap '' TERM; echo step; "
      "while :; do sleep 0.1; : $MUSTER_RUN_KEY/specs; done\" &\nwait");
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  WaitFor("the step", [&] { return Output(*backend_, run) == "step\n"; });
  WaitFor("the end of the lease", [&] { return HasRecord(run); });
  WaitFor("the end of all processes", [&] { return ProcessesOf(run) == "0\n"; });
  ObserveToEnd(*backend_, {&run});
  ExpectLeaseEnded(run);
}

}  // namespace
}  // namespace muster::slurm
