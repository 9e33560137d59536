#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "contract/refusals.h"
#include "contract/text.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ForgetClusterTest : public CoreTest {
 protected:
  absl::Status Forget(const std::string& name) {
    Do(ForgetCluster{.ticket = 1, .name = name});
    for (const Effect& effect : last_.effects) {
      if (const auto* reply = std::get_if<StatusReply>(&effect))
        return contract::ToStatus(reply->refusal);
    }
    return absl::InternalError("no reply");
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const v1::Cluster& cluster : Clusters()) names.push_back(cluster.name());
    return names;
  }
};

TEST_F(ForgetClusterTest, AClusterThatIsAwayGoesAlsoFromTheStore) {
  Gone(Connect("a"));
  Gone(Connect("b"));
  EXPECT_TRUE(Forget("a").ok());
  EXPECT_THAT(Names(), ElementsAre("b"));
  Restart();
  EXPECT_THAT(Names(), ElementsAre("b"));
}

TEST_F(ForgetClusterTest, OneThatNobodyKnowsCannotBeForgotten) {
  Gone(Connect("a"));
  const absl::Status status = Forget("b");
  EXPECT_EQ(ReasonOf(status), "NO_SUCH_CLUSTER");
  EXPECT_THAT(ToStd(status.message()), HasSubstr("the known ones are \"a\""));
}

TEST_F(ForgetClusterTest, OneWithAnAgentStays) {
  const SessionId session = Connect("a");
  EXPECT_EQ(ReasonOf(Forget("a")), "CLUSTER_CONNECTED");
  EXPECT_THAT(Names(), ElementsAre("a"));
  Gone(session);
  EXPECT_TRUE(Forget("a").ok());
}

TEST_F(ForgetClusterTest, OneWithRunsStaysAndSaysHowMany) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  MustSubmit(Spec());
  Gone(session);
  const absl::Status status = Forget("a");
  EXPECT_EQ(ReasonOf(status), "CLUSTER_HAS_RUNS");
  EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("active_runs"), "2");
  EXPECT_THAT(ToStd(status.message()), HasSubstr("has 2 runs that have not ended"));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
}

TEST_F(ForgetClusterTest, RunsWhoseLogsNeverCameAreClosed) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Report(session,
         {Event(1, Key(id), v1::RUN_STATE_LAUNCHING), Event(2, Key(id), v1::RUN_STATE_RUNNING),
          Event(3, Key(id), v1::RUN_STATE_SUCCEEDED)});
  Gone(session);
  EXPECT_THAT(store_.Restore(now_)->runs, SizeIs(1));
  EXPECT_TRUE(Forget("a").ok());
  EXPECT_THAT(store_.Restore(now_)->runs, IsEmpty());
  Restart();
  EXPECT_THAT(Names(), IsEmpty()) << "no run brings it back";
  EXPECT_EQ(Job(id).cluster(), "a") << "the job's history stays";
}

TEST_F(ForgetClusterTest, ItsQueuedJobsWaitAndTheNextOfThatNameTakesThem) {
  const SessionId first = Connect("a");
  const uint64_t retried = MustSubmit(Spec());
  Report(first, {InfraFailure(1, Key(retried))});
  Gone(first);
  const uint64_t named = MustSubmit(SpecOn("a"));
  EXPECT_TRUE(Forget("a").ok());
  EXPECT_EQ(Explain(named).code(), v1::STATE_REASON_CODE_NO_CLUSTERS);
  Gone(Connect("b"));
  EXPECT_EQ(Job(named).state(), v1::JOB_STATE_QUEUED);
  agent::v1::AgentHello other = Hello("a");
  other.mutable_inventory()->set_identity("another one of that name");
  const SessionId second = Connect(other);
  EXPECT_FALSE(Closed(second).has_value());
  EXPECT_THAT(Assigned(second), ElementsAre(Key(named)));
  EXPECT_EQ(ReasonOf(SubmitOne(SpecOn("c")).status()), "UNKNOWN_CLUSTER");
}

TEST_F(ForgetClusterTest, OthersGoOn) {
  Gone(Connect("a"));
  const SessionId other = Connect("b");
  const uint64_t first = MustSubmit(Spec());
  EXPECT_TRUE(Forget("a").ok());
  Report(other, {LogsComplete(1, Key(first), v1::RUN_STATE_SUCCEEDED)});
  const uint64_t second = MustSubmit(Spec());
  EXPECT_THAT(Assigned(other), ElementsAre(Key(second)));
  Connect("c");
  EXPECT_THAT(Names(), ElementsAre("b", "c"));
}

}  // namespace
}  // namespace muster::core
