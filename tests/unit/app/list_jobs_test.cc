#include "broker/app/list_jobs.h"

#include <gtest/gtest.h>

#include "broker/app/answer_room.h"
#include "broker/core/event_bounds.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

// An agent that listens to nothing.
class DeafPeer : public AgentPeer {
 public:
  bool Send(agent::v1::ConnectResponse /*message*/) override { return true; }
  void Close(const absl::Status& /*status*/) override {}
  void Handled() override {}
  void Ask(agent::v1::AgentQuestion /*question*/,
           std::chrono::steady_clock::time_point /*deadline*/, Answered /*answered*/) override {}
};

class ListJobsTest : public AppTest {
 protected:
  // A cluster whose agent was here and is gone.
  void LoseCluster(const std::string& name) {
    agent::v1::AgentHello hello;
    hello.set_protocol_version(1);
    hello.set_cluster(name);
    hello.set_kind(v1::CLUSTER_KIND_MACHINES);
    hello.set_journal_id("journal");
    hello.set_max_active_runs(1);
    hello.mutable_inventory()->set_identity("of " + name);
    engine_->Gone(engine_->Connect(hello, std::make_shared<DeafPeer>()));
    // An answer comes after what was handled before.
    std::promise<void> answered;
    engine_->ForgetCluster("nobody", [&](const absl::Status&) { answered.set_value(); });
    answered.get_future().wait();
  }

  // Makes jobs that the cluster has. Its agent said as much of each as it may.
  void WaitingJobs(uint64_t count, const std::string& cluster) {
    core::Changes changes;
    for (uint64_t id = 1; id <= count; ++id) {
      core::InsertJob insert;
      insert.id = id;
      insert.spec = std::make_shared<const v1::JobSpec>();
      core::UpdateJob update;
      update.id = id;
      update.state = v1::JOB_STATE_PENDING;
      update.job_sequence = 1;
      update.cluster = cluster;
      update.cluster_kind = v1::CLUSTER_KIND_MACHINES;
      update.runs = 1;
      core::PutRun run;
      run.job = id;
      run.run.set_number(1);
      run.run.set_cluster(cluster);
      run.run.set_state(v1::RUN_STATE_PENDING);
      v1::StateReason& reason = *run.run.mutable_state_reason();
      reason.set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
      reason.set_message(std::string(core::kMaxDetailBytes, 'm'));
      changes.insert(changes.end(), {insert, update, run});
    }
    ASSERT_TRUE(store_.Commit(changes).ok());
  }
};

TEST_F(ListJobsTest, APageIsSmallEnoughForGrpcAlsoWhenThereIsNoWordOfItsJobs) {
  LoseCluster("lab");
  constexpr size_t kJobs = 1000;
  WaitingJobs(kJobs, "lab");
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  size_t listed = 0, silent = 0;
  do {
    const auto page = ListJobs(alice_, services_, request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->ByteSizeLong(), kMaxAnswerBytes + (1 << 10));
    listed += page->jobs_size();
    for (const v1::Job& job : page->jobs()) {
      EXPECT_TRUE(job.has_state_reason());
      EXPECT_LE(job.state_reason().message().size(), core::kMaxDetailBytes);
      silent += job.state_reason().code() == v1::STATE_REASON_CODE_AGENT_DISCONNECTED ? 1 : 0;
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, kJobs);
  EXPECT_GT(silent, 700u) << "most have room for it";
}

}  // namespace
}  // namespace muster::broker
