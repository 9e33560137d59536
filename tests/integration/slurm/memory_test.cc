// Tests memory limits, enforced by cgroups, and by Slurm's own polling.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

// Fills 400 MB; a run has 100.
constexpr char kHungryScript[] = "dd if=/dev/zero of=/dev/null bs=400M count=1";

v1::JobSpec HungrySpec() {
  v1::JobSpec spec = ScriptSpec(kHungryScript);
  spec.mutable_resources()->set_memory_bytes(100 << 20);
  return spec;
}

TEST(SlurmMemoryTest, ARunOverItsMemoryInACgroupIsOutOfMemory) {
  TestCluster cluster("--nodes 1 --no-dbd --cgroup --node-prefix mustermem");
  const std::unique_ptr<agents::Backend> backend = cluster.MakeBackend();
  TestRun run = NewRun(HungrySpec());
  Launch(*backend, &run);
  ObserveToEnd(*backend, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(run.last.failure.has_value());
  EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_OOM)
      << run.last.failure->DebugString();
}

}  // namespace
}  // namespace muster::slurm
