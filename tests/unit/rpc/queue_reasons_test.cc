// Questions that are answered from what is committed: why jobs wait, and which clusters there are.
#include "broker/app/queue_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "broker/engine/cluster_board.h"
#include "tests/unit/rpc/await_loss.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class QueueReasonsTest : public testing::Test {
 protected:
  // Returns the jobs, the one submitted first first.
  std::vector<v1::Job> List() {
    v1::ListJobsRequest request;
    request.set_page_size(1000);
    request.set_order_by("id");
    v1::ListJobsResponse response;
    const grpc::Status status = broker_.jobs().ListJobs(Call().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.jobs().begin(), response.jobs().end()};
  }

  TestBroker broker_;
};

TEST_F(QueueReasonsTest, JobsThatAreAlikeAreAllExplainedAndAFewDifferentOnes) {
  for (int i = 0; i < 50; ++i) broker_.Submit();
  for (const v1::Job& job : List())
    EXPECT_EQ(job.state_reason().code(), v1::STATE_REASON_CODE_NO_CLUSTERS);
  for (size_t i = 0; i < kMaxExplained + 5; ++i) {
    v1::SubmitJobRequest request = SubmitTrue();
    request.mutable_spec()->mutable_resources()->set_memory_bytes((i + 1) << 20);
    broker_.Submit(request);
  }
  const std::vector<v1::Job> jobs = List();
  size_t explained = 0;
  for (const v1::Job& job : jobs) explained += job.has_state_reason() ? 1 : 0;
  EXPECT_EQ(explained, 50 + kMaxExplained - 1);
  EXPECT_EQ(broker_.Get(jobs.back().id()).state_reason().code(), v1::STATE_REASON_CODE_NO_CLUSTERS);
}

TEST_F(QueueReasonsTest, AJobIsExplainedOnlyIfItWaitsForACluster) {
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect());
  const uint64_t assigned = broker_.Submit();
  agent.ReadAssignments(1);
  agent.Finish();
  const uint64_t held = broker_.Submit(), canceled = broker_.Submit(), waits = broker_.Submit();
  v1::HoldJobsRequest hold;
  hold.add_job_ids(held);
  v1::HoldJobsResponse is_held;
  ASSERT_TRUE(broker_.jobs().HoldJobs(Call().get(), hold, &is_held).ok());
  v1::CancelJobsRequest cancel;
  cancel.add_job_ids(canceled);
  v1::CancelJobsResponse is_canceled;
  ASSERT_TRUE(broker_.jobs().CancelJobs(Call().get(), cancel, &is_canceled).ok());
  EXPECT_EQ(broker_.Get(assigned).state_reason().clusters_size(), 0) << "one has it";
  EXPECT_EQ(broker_.Get(held).state_reason().code(), v1::STATE_REASON_CODE_HELD);
  EXPECT_FALSE(broker_.Get(canceled).has_state_reason());
  EXPECT_EQ(broker_.Get(waits).state_reason().code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
}

TEST_F(QueueReasonsTest, AJobWhoseAgentIsGoneSaysSoWhereverItIsShown) {
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect());
  const uint64_t id = broker_.Submit(), ended = broker_.Submit();
  const auto runs = agent.ReadAssignments(2);
  agent.Report(runs[0].run_key(), v1::RUN_STATE_LAUNCHING);
  agent.Report(runs[0].run_key(), v1::RUN_STATE_RUNNING);
  agent.Succeed(runs[1].run_key());
  EXPECT_FALSE(broker_.Get(id).has_state_reason());
  agent.Finish();
  ASSERT_TRUE(AwaitLoss(broker_, "gpu"));
  const v1::Job job = broker_.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING) << "it goes on, as far as anyone knows";
  EXPECT_EQ(job.state_reason().code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  EXPECT_EQ(job.state_reason().cluster(), "gpu");
  EXPECT_TRUE(job.state_reason().has_since());
  EXPECT_EQ(List()[0].state_reason().SerializeAsString(), job.state_reason().SerializeAsString());
  EXPECT_FALSE(broker_.Get(ended).has_state_reason());
  v1::UpdateJobRequest update;
  update.set_job_id(id);
  (*update.mutable_set_labels())["team"] = "a";
  v1::UpdateJobResponse updated;
  ASSERT_TRUE(broker_.jobs().UpdateJob(Call().get(), update, &updated).ok());
  EXPECT_EQ(updated.job().state_reason().code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
}

TEST_F(QueueReasonsTest, QuestionsWaitForNoCommit) {
  FakeAgent agent(broker_);
  ASSERT_TRUE(agent.Connect());
  agent.Finish();
  ASSERT_TRUE(AwaitLoss(broker_, "gpu"));
  const uint64_t queued = broker_.Submit();
  broker_.store().CloseGate();
  auto submitting = std::async(std::launch::async, [this] { return broker_.Submit(); });
  broker_.store().AwaitCommit();
  EXPECT_EQ(broker_.Get(queued).state_reason().code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  EXPECT_EQ(List().size(), 1u) << "a job is shown once it is on disk";
  v1::ListClustersResponse clusters;
  ASSERT_TRUE(broker_.clusters().ListClusters(Call().get(), {}, &clusters).ok());
  ASSERT_EQ(clusters.clusters_size(), 1);
  EXPECT_EQ(clusters.clusters(0).state(), v1::CLUSTER_STATE_DISCONNECTED);
  v1::GetClusterRequest request;
  request.set_name("gpu");
  v1::GetClusterResponse cluster;
  EXPECT_TRUE(broker_.clusters().GetCluster(Call().get(), request, &cluster).ok());
  broker_.store().OpenGate();
  EXPECT_EQ(submitting.get(), queued + 1);
}

core::ShownCluster Shown(const std::string& name, uint32_t active) {
  auto saved = std::make_shared<core::PutCluster>();
  saved->name = name;
  auto view = std::make_shared<core::ClusterView>();
  view->saved = std::move(saved);
  view->active = active;
  return {name, std::move(view)};
}

std::vector<std::string> Texts(const core::ClusterViews& clusters) {
  std::vector<std::string> texts;
  for (const auto& cluster : clusters)
    texts.push_back(cluster->name() + std::to_string(cluster->active));
  return texts;
}

TEST(ClusterBoardTest, TakesOverWhatHasChangedAndLeavesWhatWasGivenOut) {
  ClusterBoard board;
  EXPECT_THAT(Texts(*board.Read()), IsEmpty());
  board.Show({Shown("b", 1), Shown("a", 1), Shown("c", 1)});
  const auto before = board.Read();
  EXPECT_EQ(board.Read(), before) << "nothing is copied twice";
  board.Show({Shown("c", 2), {"a", nullptr}, {"none", nullptr}});
  EXPECT_THAT(Texts(*before), ElementsAre("a1", "b1", "c1"));
  EXPECT_THAT(Texts(*board.Read()), ElementsAre("b1", "c2"));
}

}  // namespace
}  // namespace muster::broker
