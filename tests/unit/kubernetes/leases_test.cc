// The ConfigMap of the leases, on a server that a test scripts, and how pods see it.
#include "agents/kubernetes/leases.h"

#include <map>
#include <mutex>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/hosts/local_host.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/made_objects.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = "k7m2-42-1";

class LeasesTest : public testing::Test {
 protected:
  // Keeps ConfigMaps as a server does.
  ScriptedReply Answer(const ScriptedRequest& request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Json body = Json::parse(request.body, nullptr, false);
    if (request.target.ends_with("/selfsubjectaccessreviews")) {
      const Json asked = body["spec"]["resourceAttributes"];
      asked_.push_back(TextAt(asked, "verb") + " " + TextAt(asked, "namespace") + "/" +
                       TextAt(asked, "name"));
      const bool allowed = TextAt(asked, "verb") != denied_;
      return {.status = 201, .body = Json{{"status", {{"allowed", allowed}}}}.dump()};
    }
    calls_.push_back(request.method + " " + request.target);
    if (refuses_) return {.status = 403, .body = R"({"kind": "Status", "reason": "Forbidden"})"};
    const std::string collection = request.target.substr(0, request.target.find("/configmaps"));
    Json& object = objects_[collection];
    if (request.method == "PATCH" && object.is_null())
      return {.status = 404, .body = R"({"kind": "Status", "reason": "NotFound"})"};
    object.merge_patch(body);
    return {.status = 200, .body = object.dump()};
  }
  std::optional<agents::LeaseFile> Lease(const std::string& name_space,
                                         const std::string& key = "k7m2.lab") {
    const std::lock_guard<std::mutex> lock(mutex_);
    return agents::ParseLeaseFile(
        objects_["/api/v1/namespaces/" + name_space].value("data", Json::object()).value(key, ""));
  }

  std::mutex mutex_;
  std::map<std::string, Json> objects_;
  std::vector<std::string> calls_;
  std::vector<std::string> asked_;
  std::string denied_;
  bool refuses_ = false;
  ScriptedServer server_{[this](const ScriptedRequest& request) { return Answer(request); }};
  hosts::LocalHost host_;
  Api api_{[this] {
             Endpoint endpoint;
             endpoint.server = server_.url();
             return endpoint;
           }(),
           &host_};
  Leases leases_{"lab", {"runs", "team"}, &api_};
};

TEST_F(LeasesTest, NoRunIsLaunchedBeforeTheBrokerHasGivenALease) {
  EXPECT_TRUE(absl::IsUnavailable(leases_.Open("runs", kRun)));
  EXPECT_TRUE(leases_.Renew(absl::Minutes(1)).ok());
  EXPECT_TRUE(leases_.Open("runs", kRun).ok());
  ASSERT_TRUE(Lease("runs").has_value());
  EXPECT_TRUE(leases_.Renew(absl::ZeroDuration()).ok());
  EXPECT_TRUE(absl::IsUnavailable(leases_.Open("runs", "k7m2-43-1"))) << "it has ended";
}

TEST_F(LeasesTest, ARenewalIsOneWriteForEachNamespaceThatHasSuchRuns) {
  ASSERT_TRUE(leases_.Renew(absl::Minutes(1)).ok());
  EXPECT_THAT(calls_, IsEmpty()) << "no namespace has such a run yet";
  for (const char* run : {"k7m2-1-1", "k7m2-2-1", "k7m2-3-1"})
    ASSERT_TRUE(leases_.Open("runs", run).ok());
  leases_.Adopt("team", "k7m2-4-1");
  calls_.clear();
  const std::optional<agents::LeaseFile> before = Lease("runs");
  ASSERT_TRUE(leases_.Renew(absl::Minutes(1)).ok());
  EXPECT_THAT(calls_, ElementsAre("PATCH /api/v1/namespaces/runs/configmaps/muster-lease",
                                  "PATCH /api/v1/namespaces/team/configmaps/muster-lease",
                                  "POST /api/v1/namespaces/team/configmaps"));
  const std::optional<agents::LeaseFile> after = Lease("runs");
  ASSERT_TRUE(after.has_value() && Lease("team").has_value());
  EXPECT_GT(after->number, before->number);
}

// Pods see the file late, so that what it says lasts longer than the lease; the fence knows of it.
TEST_F(LeasesTest, WhatPodsAreGivenIsNoMoreThanTheFenceWaitsFor) {
  ASSERT_TRUE(leases_.Renew(absl::Minutes(1)).ok());
  const absl::Time end = absl::Now() + absl::Minutes(1);
  ASSERT_TRUE(leases_.Open("runs", kRun).ok());
  const std::optional<agents::LeaseFile> lease = Lease("runs");
  ASSERT_TRUE(lease.has_value());
  const absl::Duration more = absl::FromUnixMillis(lease->end_unix_ms) - end;
  EXPECT_GT(more, absl::Seconds(140)) << "two looks of a kubelet may be 90 s apart";
  EXPECT_GE(LeaseFenceDelay(),
            more + kLeaseGrace +
                absl::Milliseconds(2 * agents::kLeaseClockSkewMs + agents::kLeaseLookMs));
}

TEST_F(LeasesTest, AgentsThatShareANamespaceDoNotRenewEachOthersLeases) {
  Leases other("other", {"runs"}, &api_);
  for (Leases* leases : {&leases_, &other}) {
    ASSERT_TRUE(leases->Renew(absl::Minutes(1)).ok());
    ASSERT_TRUE(leases->Open("runs", kRun).ok());
  }
  const auto others = Lease("runs", "k7m2.other");
  ASSERT_TRUE(others.has_value());
  ASSERT_TRUE(leases_.Renew(absl::Minutes(5)).ok());
  EXPECT_EQ(Lease("runs", "k7m2.other")->number, others->number);
}

TEST_F(LeasesTest, AWriteThatIsRefusedKeepsRunsWaitingWithTheServersWords) {
  ASSERT_TRUE(leases_.Renew(absl::Minutes(1)).ok());
  refuses_ = true;
  const absl::Status status = leases_.Open("runs", kRun);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("runs/muster-lease"));
  EXPECT_FALSE(leases_.Renew(absl::Minutes(1)).ok());
  refuses_ = false;
  EXPECT_TRUE(leases_.Open("runs", kRun).ok());
}

TEST_F(LeasesTest, TheRightsAreAskedForOnceAndWithoutThemThereAreNoLeases) {
  denied_ = "patch";
  EXPECT_FALSE(leases_.MayWrite());
  EXPECT_FALSE(leases_.MayWrite());
  EXPECT_THAT(asked_, ElementsAre("create runs/", "patch runs/muster-lease", "create team/",
                                  "patch team/muster-lease"));
  Leases allowed("lab", {"runs"}, &api_);
  denied_ = "";
  EXPECT_TRUE(allowed.MayWrite());
}

TEST(PodLeaseTest, OnlyAPodWithALeaseSeesItAndItsAgentsAlone) {
  agent::v1::Assignment assignment = MakeAssignment();
  const RunObjects without = Make(assignment);
  EXPECT_THAT(without.job.dump(), testing::Not(HasSubstr("muster-lease")));
  EXPECT_FALSE(without.secret["data"].contains(kLeaseTermsFile));
  assignment.mutable_spec()->set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
  const RunObjects objects = Make(assignment);
  EXPECT_EQ(FindByName(PodOf(objects).at("volumes"), "name", "muster-lease").at("configMap"),
            Json::parse(R"({"name": "muster-lease", "optional": true, "defaultMode": 292,
                            "items": [{"key": "k7m2.lab", "path": "lease"}]})"));
  const Json mount = FindByName(MainOf(objects).at("volumeMounts"), "name", "muster-lease");
  EXPECT_EQ(mount.at("mountPath"), "/muster/lease");
  EXPECT_FALSE(mount.contains("subPath")) << "a file of its own would never be renewed";
  EXPECT_EQ(FileOf(objects, kLeaseTermsFile), "1 5 30\n");
}

}  // namespace
}  // namespace muster::kubernetes
