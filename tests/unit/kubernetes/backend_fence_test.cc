// Proofs that nothing of a run lives on the cluster, and that nothing ever will.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using Proof = agents::FenceOutcome::Kind;
using ::testing::HasSubstr;

constexpr char kFenced[] = "k7m2-5-1";

class BackendFenceTest : public ScriptedClusterTest {
 protected:
  BackendFenceTest() { Start({kFenced}); }

  void AddPod(const std::string& phase) {
    const Json pod = {{"metadata",
                       {{"name", std::string(kFenced) + "-0"},
                        {"namespace", "lab"},
                        {"uid", "p"},
                        {"resourceVersion", "6"},
                        {"labels", {{kRunLabel, kFenced}}}}},
                      {"status", {{"phase", phase}}}};
    Set([&] { pods_ = Json::array({pod}); });
  }
  agents::FenceOutcome Fence() { return backend_->Fence(Handle(kFenced)); }
};

TEST_F(BackendFenceTest, ARunWithoutAJobCanNeverBegin) {
  const agents::FenceOutcome fence = Fence();
  EXPECT_EQ(fence.kind, Proof::kNeverBegins) << fence.evidence.DebugString();
  EXPECT_THAT(fence.evidence.detail(), HasSubstr("neither a Job k7m2-5-1"));
  for (const std::string& change : TakeChanges())
    EXPECT_EQ(change.find(kFenced), std::string::npos) << "nothing is made for it: " << change;
}

TEST_F(BackendFenceTest, AJobThatHasNotEndedIsNotFenced) {
  Set([&] { jobs_ = Json::array({MakeJob(kFenced)}); });
  EXPECT_EQ(Fence().kind, Proof::kNotYet);
}

TEST_F(BackendFenceTest, APodThatOutlivesItsJobIsNotFenced) {
  AddPod("Running");
  const agents::FenceOutcome fence = Fence();
  EXPECT_EQ(fence.kind, Proof::kNotYet);
  EXPECT_THAT(fence.evidence.detail(), HasSubstr("pod k7m2-5-1-0"));
  Set([&] { jobs_ = Json::array({EndedJob(kFenced)}); });
  EXPECT_EQ(Fence().kind, Proof::kNotYet);
  AddPod("Failed");
  EXPECT_EQ(Fence().kind, Proof::kEnded);
}

TEST_F(BackendFenceTest, AServerThatDoesNotAnswerProvesNothing) {
  Set([&] { refuses_lists_ = true; });
  EXPECT_EQ(Fence().kind, Proof::kNotYet);
}

TEST_F(BackendFenceTest, TheServerOfAnotherClusterProvesNothing) {
  ASSERT_TRUE(backend_->Inventory().ok());
  Set([&] { identity_ = "cluster-2"; });
  EXPECT_EQ(Fence().kind, Proof::kNotYet);
}

}  // namespace
}  // namespace muster::kubernetes
