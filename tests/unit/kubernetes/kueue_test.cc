#include "agents/kubernetes/objects/kueue.h"

#include <mutex>
#include <string>
#include <vector>

#include "agents/hosts/local_host.h"
#include "agents/kubernetes/cluster/queue_view.h"
#include "contract/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json ConditionOf(const char* type, const char* status, const char* message) {
  return {{"type", type}, {"status", status}, {"message", message}};
}

Json WorkloadOf(const std::vector<Json>& conditions) {
  return {{"metadata",
           {{"uid", "w"},
            {"ownerReferences", {{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"uid", "j"}}}}}},
          {"spec", {{"active", true}, {"podSets", "large"}}},
          {"status", {{"conditions", conditions}}}};
}

std::string WordsOf(const Json& workload) {
  // A list is trimmed, and changes come as they are.
  const std::optional<Workload> whole = ParseWorkload(workload);
  const std::optional<Workload> trimmed = ParseWorkload(TrimWorkload(workload));
  if (!whole.has_value() || !trimmed.has_value()) return "no workload";
  EXPECT_EQ(whole->words, trimmed->words);
  EXPECT_EQ(whole->job_uid, "j");
  return whole->words;
}

TEST(KueueTest, AWorkloadSaysWhyItWaitsInKueuesWords) {
  EXPECT_EQ(WordsOf(WorkloadOf({})), "");
  EXPECT_EQ(WordsOf(WorkloadOf({ConditionOf("QuotaReserved", "False", "1 more cpu needed")})),
            "1 more cpu needed");
  EXPECT_EQ(WordsOf(WorkloadOf({ConditionOf("QuotaReserved", "True", "reserved"),
                                ConditionOf("Admitted", "True", "admitted")})),
            "");
}

TEST(KueueTest, AWorkloadThatWasTakenBackSaysWhatItWaitsForNow) {
  EXPECT_EQ(WordsOf(WorkloadOf({ConditionOf("Evicted", "True", "preempted by another"),
                                ConditionOf("QuotaReserved", "False", "no room")})),
            "no room");
  Json inactive = WorkloadOf({ConditionOf("Evicted", "True", "its time was over")});
  inactive["spec"]["active"] = false;
  EXPECT_EQ(WordsOf(inactive), "its time was over");
}

TEST(KueueTest, OnlyWhatKueueItselfHasDeactivatedIsGivenUp) {
  Json workload = WorkloadOf({ConditionOf("Evicted", "True", "requeued too often")});
  const auto is_given_up = [&](const char* reason, bool is_active) {
    workload["spec"]["active"] = is_active;
    workload["status"]["conditions"][0]["reason"] = reason;
    return ParseWorkload(TrimWorkload(workload))->is_given_up;
  };
  EXPECT_TRUE(is_given_up("DeactivatedDueToRequeuingLimitExceeded", false));
  EXPECT_TRUE(is_given_up("DeactivatedDueToAdmissionCheck", false));
  EXPECT_FALSE(is_given_up("Deactivated", false)) << "people may make it active again";
  EXPECT_FALSE(is_given_up("DeactivatedDueToRequeuingLimitExceeded", true)) << "they have";
}

TEST(KueueTest, WhatACheckHasSaidOutlastsThatKueueForgetsItAsItGivesUp) {
  Json rejected = WorkloadOf({ConditionOf("QuotaReserved", "True", "reserved")});
  rejected["status"]["admissionChecks"] = {
      {{"name", "licence"}, {"state", "Ready"}, {"message", "fine"}},
      {{"name", "budget"}, {"state", "Rejected"}, {"message", "over by 3 hours"}}};
  const std::optional<Workload> before = ParseWorkload(TrimWorkload(rejected));
  ASSERT_TRUE(before.has_value());
  Json evicted = WorkloadOf({ConditionOf("Evicted", "True", "budget, were rejected")});
  evicted["status"]["conditions"][0]["reason"] = "DeactivatedDueToAdmissionCheck";
  evicted["spec"]["active"] = false;
  Workload now = *ParseWorkload(TrimWorkload(evicted));
  KeepRefusals(*before, &now);
  EXPECT_EQ(now.words, "budget, were rejected (budget: over by 3 hours)");
  // The next change of it says no more than the last one, and no less.
  Workload later = *ParseWorkload(TrimWorkload(evicted));
  KeepRefusals(now, &later);
  EXPECT_EQ(later.words, now.words);
  Workload again =
      *ParseWorkload(TrimWorkload(WorkloadOf({ConditionOf("QuotaReserved", "False", "no room")})));
  KeepRefusals(now, &again);
  EXPECT_EQ(again.words, "no room") << "somebody has made it active again";
}

TEST(KueueTest, AdmissionChecksThatAreNotReadyAreNamed) {
  Json workload = WorkloadOf({ConditionOf("QuotaReserved", "True", "reserved")});
  workload["status"]["admissionChecks"] = {
      {{"name", "licence"}, {"state", "Ready"}, {"message", "fine"}},
      {{"name", "budget"}, {"state", "Pending"}, {"message", "ask the board"}}};
  EXPECT_EQ(WordsOf(workload), "admission checks: budget is Pending: ask the board");
}

TEST(KueueTest, AWorkloadOfSomethingElseThanAJobIsNone) {
  Json workload = WorkloadOf({});
  workload["metadata"]["ownerReferences"][0]["kind"] = "Pod";
  EXPECT_FALSE(ParseWorkload(workload).has_value());
  EXPECT_FALSE(ParseWorkload(Json::object()).has_value());
}

TEST(KueueTest, WhatARunWaitsForNamesTheQueue) {
  EXPECT_EQ(QueueWords("team", ""), "waits in queue team (Kueue)");
  EXPECT_EQ(QueueWords("team", "no room"), "waits in queue team (Kueue): no room");
}

// ---- what a cluster must have

std::string RefusalOf(const v1::JobSpec& spec, const char* group) {
  const ApiGroups groups =
      ParseGroups({{"groups", {{{"name", group}, {"preferredVersion", {{"version", "v1"}}}}}}});
  EXPECT_EQ(groups.at(group), "v1");
  return std::string(ToStd(CheckSchedulers(spec, groups).message()));
}

TEST(KueueTest, AQueueWithoutKueueIsRefusedByItsField) {
  v1::JobSpec spec;
  EXPECT_EQ(RefusalOf(spec, "batch"), "");
  spec.mutable_kubernetes()->set_queue("team");
  EXPECT_EQ(RefusalOf(spec, "kueue.x-k8s.io"), "");
  EXPECT_THAT(RefusalOf(spec, "batch"),
              AllOf(HasSubstr("kubernetes.queue is \"team\""), HasSubstr("has no Kueue"),
                    HasSubstr("leave kubernetes.queue out")));
}

TEST(KueueTest, AGangSchedulerThatIsNotThereIsRefusedByItsField) {
  v1::JobSpec spec;
  spec.mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_POD_GROUP);
  EXPECT_EQ(RefusalOf(spec, "scheduling.x-k8s.io"), "");
  EXPECT_THAT(RefusalOf(spec, "scheduling.volcano.sh"),
              AllOf(HasSubstr("kubernetes.gang is pod_group"), HasSubstr("no PodGroups"),
                    HasSubstr("leave kubernetes.gang out")));
  spec.mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_VOLCANO);
  EXPECT_EQ(RefusalOf(spec, "scheduling.volcano.sh"), "");
  EXPECT_THAT(RefusalOf(spec, "batch"),
              AllOf(HasSubstr("kubernetes.gang is volcano"), HasSubstr("no Volcano")));
}

// Plays a server whose groups a test changes, and learns of them by a clock of the test's own.
class QueueViewTest : public testing::Test {
 protected:
  void SetGroups(const std::vector<std::string>& names) {
    Json groups = Json::array();
    for (const std::string& name : names)
      groups.push_back({{"name", name}, {"preferredVersion", {{"version", "v1"}}}});
    const std::lock_guard lock(mutex_);
    groups_ = std::move(groups);
  }
  absl::Status CheckAfter(absl::Duration pause) {
    now_ += pause;
    return view_.Check(spec_, "lab");
  }

  QueueViewTest() { spec_.mutable_kubernetes()->set_queue("team"); }

  v1::JobSpec spec_;
  absl::Time now_ = absl::UnixEpoch();
  std::mutex mutex_;
  Json groups_ = Json::array();  // guarded by mutex_
  int asked_ = 0;                // for the groups; guarded by mutex_
  hosts::LocalHost host_;
  ScriptedServer server_{[this](const ScriptedRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.target.find("watch=1") != std::string::npos)
      return ScriptedReply{.stays_open = true};
    if (request.target == "/apis") ++asked_;
    if (request.target.find("/localqueues") != std::string::npos) {
      return ScriptedReply{
          .body = R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"team"}}]})"};
    }
    return ScriptedReply{.body = Json{{"groups", groups_}}.dump()};
  }};
  Api api_{[this] {
             Endpoint endpoint;
             endpoint.server = server_.url();
             return endpoint;
           }(),
           &host_};
  QueueView view_{{"lab"}, &api_, [this] { return now_; }};
};

TEST_F(QueueViewTest, AServerThatIsStartingIsNotTakenForOneWithoutKueue) {
  SetGroups({"apiregistration.k8s.io"});
  EXPECT_TRUE(CheckAfter(kGroupsAreFresh).ok());
  EXPECT_TRUE(CheckAfter(kGroupsAreFresh).ok()) << "a part confirms nothing";
  EXPECT_TRUE(view_.MayHaveDefaultQueue("lab")) << "nothing says that there is no Kueue";
  SetGroups({"batch"});
  CheckAfter(kGroupsAreFresh).IgnoreError();
  EXPECT_TRUE(absl::IsInvalidArgument(CheckAfter(kGroupsAreFresh)));
  EXPECT_FALSE(view_.MayHaveDefaultQueue("lab"));
}

TEST_F(QueueViewTest, WhatOneAnswerLacksIsRefusedOnlyOnceALaterOneLacksItAsWell) {
  SetGroups({"batch"});
  view_.Learn(absl::ZeroDuration());
  view_.Learn(absl::ZeroDuration());  // in the same moment
  const absl::Status early = CheckAfter(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(early)) << early;
  EXPECT_THAT(std::string(early.message()), AllOf(HasSubstr("has no Kueue"), HasSubstr("in 5 s")));
  EXPECT_TRUE(absl::IsUnavailable(CheckAfter(kGroupsAreFresh - absl::Seconds(1))));
  EXPECT_EQ(asked_, 2) << "not for each job";
  const absl::Status late = CheckAfter(absl::Seconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(late)) << late;
  SetGroups({"batch", "kueue.x-k8s.io"});
  EXPECT_TRUE(CheckAfter(kGroupsAreFresh).ok()) << "it was installed";
  SetGroups({"batch"});
  v1::JobSpec gang;
  gang.mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_VOLCANO);
  EXPECT_TRUE(absl::IsInvalidArgument(view_.Check(gang, "lab"))) << "of each by itself";
}

TEST_F(QueueViewTest, KueueThatWasThereStaysUntilASecondAnswerLacksIt) {
  SetGroups({"batch", "kueue.x-k8s.io"});
  EXPECT_TRUE(CheckAfter(kGroupsAreFresh).ok());
  SetGroups({"batch"});
  EXPECT_TRUE(CheckAfter(kGroupsAreFresh).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckAfter(kGroupsAreFresh)));
}

}  // namespace
}  // namespace muster::kubernetes
