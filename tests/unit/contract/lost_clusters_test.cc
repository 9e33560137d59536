#include "contract/lost_clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"

namespace muster::contract {
namespace {

using testing::HasSubstr;

TEST(ClusterLossPolicies, HaveNamesThatAreRead) {
  for (int i = v1::CLUSTER_LOSS_POLICY_WAIT; i <= v1::ClusterLossPolicy_MAX; ++i) {
    const auto policy = static_cast<v1::ClusterLossPolicy>(i);
    EXPECT_EQ(ClusterLossPolicyOf(Name(policy)), policy);
  }
  EXPECT_EQ(Name(v1::CLUSTER_LOSS_POLICY_UNSPECIFIED), "wait");
  EXPECT_EQ(ClusterLossPolicyOf("never"), v1::CLUSTER_LOSS_POLICY_UNSPECIFIED);
}

TEST(ClusterLossPolicies, OneThatIsNoneIsRefusedByName) {
  v1::JobSpec spec;
  FieldErrors good;
  CheckClusterLoss(spec, &good);
  EXPECT_TRUE(good.ToStatus().ok());
  spec.set_on_cluster_loss(static_cast<v1::ClusterLossPolicy>(17));
  FieldErrors bad;
  CheckClusterLoss(spec, &bad);
  EXPECT_THAT(std::string(bad.ToStatus().message()), HasSubstr("17 is no policy"));
}

TEST(ClusterLostReason, KeepsWhatIsKnownAndSaysWhenAnotherRunFollows) {
  v1::StateReason no_word;
  no_word.set_code(v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  no_word.set_cluster("a");
  no_word.set_message("no word from cluster \"a\"");
  no_word.set_remedy("start its agent");
  const v1::StateReason reason = ClusterLost(no_word, absl::FromUnixSeconds(1'750'000'000));
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_CLUSTER_LOST);
  EXPECT_EQ(reason.until().seconds(), 1'750'000'000);
  EXPECT_EQ(reason.cluster(), "a");
  EXPECT_EQ(reason.remedy(), "start its agent");
  EXPECT_EQ(
      reason.message(),
      "another run follows from 2025-06-15T15:06:40Z on, unless its cluster is heard; no word "
      "from cluster \"a\"");
}

}  // namespace
}  // namespace muster::contract
