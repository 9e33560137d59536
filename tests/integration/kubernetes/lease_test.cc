// Tests leases on a real Kubernetes: pods stop their programs by themselves, and start none whose
// lease has ended. The kubelets here look at their pods each second.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/backend_fixture.h"
#include "tests/unit/agents/one_run.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KubernetesLeaseTest : public BackendFixture {
 protected:
  static v1::JobSpec Leased(const std::string& script) {
    v1::JobSpec spec = ScriptSpec(script);
    spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
    return spec;
  }
  void Renew(absl::Duration remaining) {
    const absl::Status status = backend_->capabilities().renew_leases(remaining);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Shortens the lease that pods see: by itself it lasts until the slowest kubelet has seen the
  // next one.
  void Shorten(const TestRun& run, absl::Duration remaining) {
    const std::string key = LeaseKey(run.handle.run_key, Config().cluster);
    number_ = std::max(number_, static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()))) + 1;
    const agents::LeaseFile lease = agents::NextLease(number_, absl::ToUnixMillis(absl::Now()),
                                                      absl::ToInt64Milliseconds(remaining));
    number_ = lease.number;
    cluster_.MustDo("PATCH", PathOf("configmaps") + "/" + kLeaseObject,
                    {{"data", {{key, FormatLeaseFile(lease)}}}});
  }
  std::string PhaseOfPod(const TestRun& run) {
    const Json pods = ObjectsOf("pods", run);
    return pods.empty() ? "" : TextAt(pods.at(0), "status/phase");
  }
  static void ExpectLeaseEnded(const TestRun& run) {
    EXPECT_EQ(run.handle.state, v1::RUN_STATE_FAILED) << run.last.evidence.DebugString();
    ASSERT_TRUE(run.last.failure.has_value());
    EXPECT_EQ(run.last.failure->code(), v1::FAILURE_CODE_LEASE_ENDED)
        << run.last.failure->DebugString();
    EXPECT_EQ(run.last.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
    EXPECT_TRUE(run.last.failure->retriable());
    EXPECT_FALSE(run.last.exit.has_value());
  }

 private:
  uint64_t number_ = 0;
};

constexpr char kGoesOn[] =
    "trap 'echo saved; exit 0' TERM; echo up; (trap '' TERM; while :; do sleep 0.1; done) & "
    "while :; do sleep 0.1; done";

TEST_F(KubernetesLeaseTest, PodsStopTheirProgramsByThemselvesWhenNobodyRenewsTheirLease) {
  EXPECT_GT(backend_->capabilities().fence_delay, absl::ZeroDuration());
  Renew(absl::Minutes(1));
  TestRun one = NewRun(Leased(kGoesOn));
  v1::JobSpec pair = Leased(kGoesOn);
  pair.set_nodes(2);
  TestRun two = NewRun(pair);
  v1::JobSpec without = Leased(kGoesOn);
  without.clear_on_cluster_loss();
  TestRun other = NewRun(without);
  for (TestRun* run : {&one, &two, &other}) Launch(*backend_, run);
  ObserveUntil(*backend_, {&one, &two, &other}, v1::RUN_STATE_RUNNING);
  // The agent is gone: from here on nobody renews anything, nor deletes a Job.
  backend_.reset();
  Shorten(one, absl::Seconds(3));
  for (TestRun* run : {&one, &two})
    driver::WaitFor("the end of the pods", [&] { return PhaseOfPod(*run) == "Failed"; });
  EXPECT_EQ(PhaseOfPod(other), "Running") << "a run without a lease goes on";
  Start(Config(), {one.handle, two.handle, other.handle});
  ObserveToEnd(*backend_, {&one, &two});
  ExpectLeaseEnded(one);
  ExpectLeaseEnded(two);
  EXPECT_THAT(Output(*backend_, one), HasSubstr("saved"));
  EXPECT_TRUE(EndOne(*backend_, other.handle).ok());
  ObserveToEnd(*backend_, {&other});
}

TEST_F(KubernetesLeaseTest, ARunWhoseLeaseIsRenewedLivesOn) {
  Renew(absl::Minutes(1));
  TestRun run = NewRun(Leased("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1; done; echo done"));
  Launch(*backend_, &run);
  Shorten(run, absl::Seconds(20));
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  // The lease of a minute comes in place of one that would end before the program does.
  Shorten(run, absl::Seconds(8));
  Renew(absl::Minutes(1));
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run), "done\n");
}

TEST_F(KubernetesLeaseTest, APodThatStartsAfterTheEndOfItsLeaseStartsNoProgram) {
  Renew(absl::Minutes(1));
  TestRun run = NewRun(Leased("echo ran"));
  driver::Hold(&run);
  Launch(*backend_, &run);
  Shorten(run, absl::ZeroDuration());
  EXPECT_TRUE(HoldOne(*backend_, run.handle, false).ok());
  ObserveToEnd(*backend_, {&run});
  ExpectLeaseEnded(run);
  EXPECT_THAT(run.last.failure->message(), HasSubstr("before its program could start"));
  EXPECT_THAT(Output(*backend_, run), Not(HasSubstr("ran\n")));
}

TEST_F(KubernetesLeaseTest, AnAccountWithoutTheRightToTheObjectKeepsNoLeasesAndSaysWhy) {
  const std::string role =
      "/apis/rbac.authorization.k8s.io/v1/namespaces/" + name_space_ + "/roles/muster-agent";
  Json rules = cluster_.MustDo("GET", role)["rules"];
  Json kept = Json::array();
  for (const Json& rule : rules) {
    if (rule["resources"] != Json::array({"configmaps"})) kept.push_back(rule);
  }
  cluster_.MustDo("PATCH", role, {{"rules", kept}});
  Start(Config());
  EXPECT_EQ(backend_->capabilities().fence_delay, absl::ZeroDuration());
  EXPECT_EQ(backend_->capabilities().renew_leases, nullptr);
  agent::v1::Assignment assignment = *NewRun(Leased("true")).handle.assignment;
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("rights.yaml"));
}

}  // namespace
}  // namespace muster::kubernetes
