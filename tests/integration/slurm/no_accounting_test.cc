// The life of runs on a cluster without slurmdbd.
#include "agents/slurm/fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using Found = agents::LookupOutcome::Kind;

class SlurmWithoutAccountingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster("--nodes 2 --no-dbd --min-job-age 5"); }
  static void TearDownTestSuite() { delete cluster_; }

  void WaitUntilForgotten() {
    WaitFor("squeue to forget the jobs",
            [&] { return Lines(cluster_->AsRoot("squeue -h -t all -o %i")).empty(); });
  }

  static TestCluster* cluster_;
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TestCluster* SlurmWithoutAccountingTest::cluster_ = nullptr;

TEST_F(SlurmWithoutAccountingTest, EndsAreToldFromTheQueueAndTheExitRecord) {
  TestRun good = NewRun(ScriptSpec("true"));
  TestRun bad = NewRun(ScriptSpec("exit 3"));
  TestRun no_record = NewRun(ScriptSpec("kill -KILL 0"));
  TestRun canceled = NewRun(ScriptSpec("sleep 300"));
  for (TestRun* run : {&good, &bad, &no_record, &canceled}) Launch(*backend_, run);
  cluster_->AsRoot("scancel " + canceled.handle.external_id);
  ObserveToEnd(*backend_, {&good, &bad, &no_record, &canceled});
  EXPECT_EQ(good.handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(bad.handle.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(bad.last.exit->code(), 3);
  EXPECT_EQ(no_record.handle.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(no_record.last.exit.has_value());
  EXPECT_EQ(no_record.last.exit->signal(), 9);
  EXPECT_EQ(canceled.handle.state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(backend_->SchedulerCalls().count("sacct"), 0u);
}

TEST_F(SlurmWithoutAccountingTest, AForgetfulQueueLosesNothing) {
  TestRun good = NewRun(ScriptSpec("true"));
  TestRun bad = NewRun(ScriptSpec("exit 4"));
  TestRun canceled = NewRun(ScriptSpec("echo up; sleep 300"));
  for (TestRun* run : {&good, &bad, &canceled}) Launch(*backend_, run);
  WaitFor("the start", [&] { return Output(*backend_, canceled) == "up\n"; });
  cluster_->AsRoot("scancel " + canceled.handle.external_id);
  WaitUntilForgotten();
  EXPECT_EQ(backend_->Lookup(good.handle).external_id, good.handle.external_id) << "by its claim";
  ObserveToEnd(*backend_, {&good, &bad, &canceled});
  EXPECT_EQ(good.handle.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(bad.handle.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(bad.last.exit->code(), 4);
  EXPECT_EQ(canceled.handle.state, v1::RUN_STATE_CANCELED) << canceled.last.evidence.DebugString();
}

TEST_F(SlurmWithoutAccountingTest, ALookupOfWhatWasNeverLaunchedIsAbsent) {
  const TestRun run = NewRun(ScriptSpec("true"));
  EXPECT_EQ(backend_->Lookup(run.handle).kind, Found::kAbsent);
}

TEST_F(SlurmWithoutAccountingTest, TheInventorySaysThatThereIsNoAccounting) {
  const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  ASSERT_EQ(inventory->issues_size(), 1);
  EXPECT_EQ(inventory->issues(0).code(), v1::CLUSTER_ISSUE_CODE_ACCOUNTING);
  EXPECT_THAT(inventory->issues(0).message(), HasSubstr("no accounting"));
}

}  // namespace
}  // namespace muster::slurm
