#include "agents/kubernetes/kueue.h"

#include <atomic>

#include "agents/hosts/local_host.h"
#include "agents/kubernetes/queue_view.h"
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

// The server's first answers may be parts.
TEST(KueueTest, AServerThatIsStartingIsNotTakenForOneWithoutKueue) {
  std::atomic<bool> is_whole = false;
  ScriptedServer server([&](const ScriptedRequest&) {
    Json answer = {{"groups", {{{"name", "apiregistration.k8s.io"}}}}};
    if (is_whole) answer["groups"].push_back({{"name", "batch"}});
    return ScriptedReply{.body = answer.dump()};
  });
  hosts::LocalHost host;
  Endpoint endpoint;
  endpoint.server = server.url();
  Api api(endpoint, &host);
  QueueView view({"lab"}, &api);
  v1::JobSpec spec;
  spec.mutable_kubernetes()->set_queue("team");
  view.Learn(absl::ZeroDuration());
  EXPECT_TRUE(view.Check(spec, "lab").ok());
  EXPECT_TRUE(view.MayHaveDefaultQueue("lab")) << "nothing says that there is no Kueue";
  is_whole = true;
  view.Learn(absl::ZeroDuration());
  EXPECT_FALSE(view.Check(spec, "lab").ok());
  EXPECT_FALSE(view.MayHaveDefaultQueue("lab"));
}

}  // namespace
}  // namespace muster::kubernetes
