// Clusters that their operators let take no new runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/refusals.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CordonTest : public CoreTest {
 protected:
  absl::Status Set(SetCordon wish) {
    wish.ticket = 1;
    Do(std::move(wish));
    for (const Effect& effect : last_.effects) {
      if (const auto* reply = std::get_if<StatusReply>(&effect))
        return contract::ToStatus(reply->refusal);
    }
    return absl::InternalError("no reply");
  }
  absl::Status Cordon(const std::string& name, const std::string& reason = "") {
    SetCordon wish{.name = name, .cordon = v1::ClusterCordon()};
    wish.cordon->set_user("ann");
    wish.cordon->set_reason(reason);
    return Set(std::move(wish));
  }
  absl::Status Uncordon(const std::string& name) { return Set({.name = name}); }
};

TEST_F(CordonTest, ACordonedClusterGetsNoNewRunAndKeepsWhatItHas) {
  const SessionId a = Connect("a");
  const uint64_t first = MustSubmit(Spec());
  EXPECT_TRUE(Cordon("a").ok());
  const uint64_t second = MustSubmit(Spec());
  EXPECT_THAT(Assigned(a), IsEmpty());
  EXPECT_EQ(Job(second).state(), v1::JOB_STATE_QUEUED);
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING),
             Event(2, Key(first), v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Job(first).state(), v1::JOB_STATE_RUNNING);
  Gone(a);
  const SessionId again = Connect("a");  // its agent has lost the run
  EXPECT_THAT(Assigned(again), ElementsAre(Key(first)));
}

TEST_F(CordonTest, ItsJobsGoToOtherClusters) {
  const SessionId a = Connect("a");
  const SessionId b = Connect("b");
  EXPECT_TRUE(Cordon("a").ok());
  const uint64_t id = MustSubmit(Spec());
  EXPECT_THAT(Assigned(a), IsEmpty());
  EXPECT_THAT(Assigned(b), ElementsAre(Key(id)));
}

TEST_F(CordonTest, AnUncordonedClusterTakesWhatWaitsAtOnce) {
  const SessionId a = Connect("a");
  EXPECT_TRUE(Cordon("a").ok());
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Uncordon("a").ok());
  EXPECT_THAT(Assigned(a), ElementsAre(Key(id)));
  EXPECT_FALSE(Clusters()[0].has_cordon());
}

TEST_F(CordonTest, ACordonOutlivesTheBrokerAndTheAgent) {
  Connect("a");
  EXPECT_TRUE(Cordon("a", "new drivers").ok());
  Restart();
  const SessionId a = Connect("a");
  MustSubmit(Spec());
  EXPECT_THAT(Assigned(a), IsEmpty());
  EXPECT_EQ(Clusters()[0].cordon().reason(), "new drivers");
}

TEST_F(CordonTest, ARepeatReplacesTheReasonAndKeepsTheTime) {
  Connect("a");
  const absl::Time first = now_;
  EXPECT_TRUE(Cordon("a", "one").ok());
  now_ += absl::Seconds(5);
  EXPECT_TRUE(Cordon("a", "two").ok());
  EXPECT_EQ(Clusters()[0].cordon().reason(), "two");
  EXPECT_EQ(Clusters()[0].cordon().user(), "ann");
  EXPECT_EQ(Clusters()[0].cordon().create_time().seconds(), absl::ToUnixSeconds(first));
  EXPECT_TRUE(Uncordon("a").ok());
  EXPECT_TRUE(Cordon("a").ok());
  EXPECT_EQ(Clusters()[0].cordon().create_time().seconds(), absl::ToUnixSeconds(now_));
}

TEST_F(CordonTest, AnUncordonOfAClusterThatTakesRunsChangesNothing) {
  Connect("a");
  EXPECT_TRUE(Uncordon("a").ok());
  EXPECT_THAT(last_.changes, IsEmpty());
}

TEST_F(CordonTest, WaitingJobsAreToldWhoCordonedTheClusterAndWhy) {
  Gone(Connect("a"));
  EXPECT_TRUE(Cordon("a", "new drivers").ok());
  const v1::StateReason reason = Explain(MustSubmit(Spec()));
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_CLUSTER_CORDONED);
  EXPECT_EQ(reason.cluster(), "a");
  EXPECT_EQ(reason.subject(), "ann");
  EXPECT_EQ(reason.detail(), "new drivers");
  EXPECT_EQ(reason.since().seconds(), absl::ToUnixSeconds(now_));
  EXPECT_THAT(reason.message(), HasSubstr("ann lets the cluster take no new runs: new drivers"));
  EXPECT_THAT(reason.remedy(), HasSubstr("muster clusters uncordon a"));
}

TEST_F(CordonTest, AClusterThatNobodyKnowsIsNotFound) {
  EXPECT_EQ(ReasonOf(Cordon("a")), "NO_SUCH_CLUSTER");
  EXPECT_THAT(std::string(Uncordon("a").message()), HasSubstr("no cluster \"a\" to uncordon"));
}

TEST_F(CordonTest, AForgottenClusterComesBackWithoutItsCordon) {
  Gone(Connect("a"));
  EXPECT_TRUE(Cordon("a").ok());
  Do(ForgetCluster{.ticket = 1, .name = "a"});
  const SessionId a = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_THAT(Assigned(a), ElementsAre(Key(id)));
}

}  // namespace
}  // namespace muster::core
