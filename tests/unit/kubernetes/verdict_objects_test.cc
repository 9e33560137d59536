// Tests Judge on objects of a real cluster (1.36), shortened.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/told_run.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using KubernetesObjectsTest = ToldRunTest;

TEST_F(KubernetesObjectsTest, WhatIsKeptOfAListIsWithoutTemplatesAndManagers) {
  Json job = Job();
  job["spec"]["suspend"] = true;
  const Json kept = job;
  job["spec"]["template"] = {{"spec", {{"containers", {{{"name", "main"}}}}}}};
  job["metadata"]["managedFields"] = {{{"manager", "kube-controller-manager"}}};
  EXPECT_EQ(TrimObject(job), kept);
}

TEST_F(KubernetesObjectsTest, RanksThatTheJobStoppedAreNotTheOneThatFailed) {
  // Ended in the same second as the first one, whose uid comes later.
  Tell(Pod(0, Ended(143, "32"), Deleted("37", 5)));
  Tell(Pod(1, Ended(5, "32")));
  Tell(Pod(2, Ended(143, "32"), Deleted("37", 5)));
  const agents::Observation seen = See(FailedJob("Container main failed", 3));
  EXPECT_EQ(seen.exit->code(), 5);
  EXPECT_EQ(seen.exit->rank(), 1u);
}

TEST_F(KubernetesObjectsTest, OfFailuresInOneSecondTheJobNamesTheFirst) {
  Tell(Pod(0, Ended(4, "31")));
  Tell(Pod(1, Ended(5, "31")));
  const agents::Observation seen = See(FailedJob(
      "Container main for pod lab/k7m2-42-1-1-x8f2p failed with exit code 5 matching FailJob "
      "rule at index 1",
      2));
  EXPECT_EQ(seen.exit->rank(), 1u);
}

TEST_F(KubernetesObjectsTest, APodThatWasDeletedWhileItRanIsNotTheProgramsFailure) {
  Tell(Pod(0, R"({"phase": "Running"})", Deleted("36", 5)));
  // Its node asks for its deletion anew, without grace, when it has ended.
  Tell(Pod(0, Ended(143, "31"), Deleted("32", 0)));
  Tell(Pod(1, Ended(143, "32"), Deleted("37", 5)));
  const agents::Observation seen = See(FailedJob("Container main failed", 2));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(seen.failure->retriable());
  EXPECT_EQ(seen.exit->rank(), 0u);
}

TEST_F(KubernetesObjectsTest, APodThatOthersDeletedIsNotStoppedByTheJobThatNamesItInTheSameSecond) {
  const Json pod = Pod(0, Ended(143, "32"), Deleted("37", 5));
  Tell(pod);
  const std::string name = TextAt(pod, "metadata/name");
  const agents::Observation seen =
      See(FailedJob("Container main for pod lab/" + name + " failed with exit code 143"));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(seen.failure->message(), HasSubstr("not by Muster"));
}

TEST_F(KubernetesObjectsTest, APodThatFailedAndWasDeletedAfterwardsIsTheProgramsFailure) {
  Tell(Pod(0, Ended(143, "31")));
  Tell(Pod(0, Ended(143, "31"), Deleted("40", 0)));
  EXPECT_EQ(See(FailedJob("Container main failed")).failure->failure_class(),
            v1::FAILURE_CLASS_PROGRAM);
}

TEST_F(KubernetesObjectsTest, ADeadlineOfAPodIsATimeLimitAlsoIfTheProgramThenEndsWith0) {
  Json pod = Pod(0, Ended(0, "27"));
  pod["status"]["reason"] = "DeadlineExceeded";
  pod["status"]["message"] = "Pod was active on the node longer than the specified deadline";
  Tell(pod);
  Tell(Pod(1, Ended(143, "33"), Deleted("37", 5)));
  const agents::Observation seen = See(FailedJob("Container main failed", 2));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_THAT(seen.failure->message(), HasSubstr("longer than the specified deadline"));
}

TEST_F(KubernetesObjectsTest, WhatIsLeftOfAJobWhosePodsAreGoneTellsTheExitAndItsRank) {
  const agents::Observation seen = See(FailedJob(
      "Container main for pod lab/k7m2-42-1-11-x8f2p failed with exit code 137 matching FailJob "
      "rule at index 1"));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(seen.exit->signal(), 9);
  EXPECT_EQ(seen.exit->rank(), 11u);
  const agents::Observation plain = See(FailedJob(
      "Container main for pod lab/k7m2-42-1-12345 failed with exit code 3 matching FailJob rule "
      "at index 1"));
  EXPECT_EQ(plain.exit->rank(), 0u) << "those are no index";
  const agents::Observation disrupted =
      See(FailedJob("Pod lab/k7m2-42-1-x8f2p has condition DisruptionTarget matching FailJob rule "
                    "at index 0"));
  EXPECT_EQ(disrupted.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_FALSE(disrupted.exit.has_value());
}

TEST_F(KubernetesObjectsTest, ADiskThatOneselfHasFilledIsNoFaultOfTheNode) {
  Json pod = Pod(0, Ended(137, "27"));
  pod["status"]["reason"] = "Evicted";
  pod["status"]["message"] =
      "Pod ephemeral local storage usage exceeds the total limit of "
      "containers 1Gi. ";
  Tell(pod);
  EXPECT_EQ(See(FailedJob("")).failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  pod["status"]["message"] = "The node was low on resource: memory. ";
  Tell(pod);
  EXPECT_EQ(See(FailedJob("")).failure->failure_class(), v1::FAILURE_CLASS_INFRA);
}

TEST_F(KubernetesObjectsTest, WhileThePodOfALostNodeMayRunTheRunHasNotEnded) {
  Json pod = Pod(0, R"({"phase": "Running", "conditions": [{"type": "DisruptionTarget",
      "status": "True", "reason": "DeletionByTaintManager",
      "message": "Taint manager: deleting due to NoExecute taint"}]})",
                 Deleted("18", 5));
  Tell(pod);
  agents::Observation seen = See(Job(), "15:12:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(seen.reason.message(), AllOf(HasSubstr("on node-2"), HasSubstr("NoExecute taint")));
  EXPECT_EQ(seen.replicas[0].issue().reason(), "DeletionByTaintManager");
  // Others may also delete the Job meanwhile, which does not wait for its pods.
  store_.jobs()->OnDelete(Job());
  seen = SeeNow("15:12:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(seen.reason.message(), HasSubstr("deleted on the cluster, not by Muster"));
  store_.pods()->OnDelete(pod);
  EXPECT_EQ(SeeNow("15:12:00").state, v1::RUN_STATE_CANCELED);
}

TEST_F(KubernetesObjectsTest, ARunDoesNotGoBackToRunningWhenOneOfItsPodsHasFailed) {
  Tell(Pod(0, Ended(143, "31")));
  Tell(Pod(1, R"({"phase": "Running"})"));
  EXPECT_EQ(See(Job("[]", 2)).state, v1::RUN_STATE_FINISHING);
}

TEST_F(KubernetesObjectsTest, WhatFailedBeforeItWasDeletedKeepsItsOwnEnd) {
  Json job = Job();
  job["metadata"].update(Json::parse(Deleted("33", 0)));
  Tell(Pod(0, Ended(3, "32")));
  store_.jobs()->OnChange(job);
  EXPECT_EQ(SeeNow().state, v1::RUN_STATE_FINISHING);
  store_.jobs()->OnDelete(job);
  EXPECT_EQ(SeeNow().exit->code(), 3);
  Tell(Pod(0, Ended(3, "33")));
  EXPECT_EQ(SeeNow().state, v1::RUN_STATE_CANCELED) << "it may have ended for the deletion";
}

TEST_F(KubernetesObjectsTest, AConditionThatCameOfTheDeletionIsNoEndOfItsOwn) {
  const auto failed = [](const std::string& second) {
    Json job = Job(R"([{"type": "Failed", "status": "True", "reason": "PodFailurePolicy",
                        "lastTransitionTime": "2026-11-21T15:02:)" +
                   second + R"(Z"}])");
    job["metadata"].update(Json::parse(Deleted("33", 0)));
    return job;
  };
  Tell(Pod(0, Ended(143, "33")));
  EXPECT_EQ(See(failed("33")).state, v1::RUN_STATE_FAILED) << "the pod ended by itself";
  Tell(Pod(0, Ended(143, "33"), Deleted("38", 5)));
  EXPECT_EQ(See(failed("33")).state, v1::RUN_STATE_FINISHING);
  store_.jobs()->OnDelete(failed("33"));
  EXPECT_EQ(SeeNow().state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(See(failed("32")).state, v1::RUN_STATE_FAILED) << "it was there before";
}

TEST_F(KubernetesObjectsTest, WhatSucceededBeforeItWasDeletedHasSucceededIfAllOfItHas) {
  Json job = Job("[]", 2);
  job["metadata"].update(Json::parse(Deleted("33", 0)));
  const auto succeeded = [](int rank) {
    Json pod = Pod(rank, Ended(0, "32"));
    pod["status"]["phase"] = "Succeeded";
    return pod;
  };
  Tell(succeeded(0));
  store_.jobs()->OnChange(job);
  store_.jobs()->OnDelete(job);
  EXPECT_EQ(SeeNow().state, v1::RUN_STATE_CANCELED);
  Tell(succeeded(1));
  EXPECT_EQ(SeeNow().state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(KubernetesObjectsTest, AQuotaIsWaitedForAndARefusedPodIsNot) {
  TellEvent(kRun, "FailedCreate",
            "Error creating: pods \"k7m2-42-1-trhtd\" is forbidden: exceeded quota: small");
  agents::Observation seen = See(Job(), "23:00:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(seen.reason.message(),
            "FailedCreate: Error creating: pods \"k7m2-42-1-...\" is forbidden: exceeded quota: "
            "small");
  TellEvent(kRun, "FailedCreate",
            "Error creating: pods \"k7m2-42-1-abcde\" is forbidden: violates PodSecurity "
            "\"restricted:latest\": privileged",
            "15:02:33", "15:02:33");
  EXPECT_EQ(See(Job(), "15:03:00").state, v1::RUN_STATE_PENDING);
  seen = See(Job(), "23:00:00");
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(seen.failure->message(), HasSubstr("violates PodSecurity \"restricted:latest\""));
}

TEST_F(KubernetesObjectsTest, APodThatAPolicyDeniesIsNotWaitedFor) {
  const std::string denied = "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no";
  TellEvent(kRun, "FailedCreate",
            "Error creating: pods \"k7m2-42-1-abcde\" is forbidden: " + denied);
  const agents::Observation seen = See(Job(), "23:00:00");
  ASSERT_TRUE(seen.failure.has_value());
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(seen.failure->message(), HasSubstr(denied));
}

TEST_F(KubernetesObjectsTest, ARunIsPendingUntilAllOfItsPodsAreMadeAndIsNotSoAgain) {
  Tell(Pod(0, R"({"phase": "Running"})"));
  EXPECT_EQ(See(Job("[]", 2)).state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(See(Job("[]", 2), "15:03:00", v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
}

TEST_F(KubernetesObjectsTest, AContainerThatItsNodeHasLostIsTheClustersDoing) {
  Tell(Pod(0, R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated":
      {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "not located"}}}]})"));
  const agents::Observation seen = See(FailedJob("Container main failed with exit code 137"));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(seen.failure->retriable());
  EXPECT_FALSE(seen.exit.has_value()) << "the code is nobody's";
}

TEST_F(KubernetesObjectsTest, APodThatTheJobControllerMadeTooManyAndTookBackSaysNothingOfTheRun) {
  Json surplus = Pod(0, R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {
      "terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}]})",
                     R"({"uid": "surplus", "creationTimestamp": "2026-11-21T15:02:24Z",
                         "deletionTimestamp": "2026-11-21T15:02:25Z",
                         "deletionGracePeriodSeconds": 0})");
  Tell(surplus);
  const Json complete = Job(R"([{"type": "Complete", "status": "True",
                                 "lastTransitionTime": "2026-11-21T15:02:32Z"}])");
  EXPECT_EQ(See(complete).state, v1::RUN_STATE_SUCCEEDED) << "the other one was never seen";
  Tell(Pod(0, R"({"phase": "Running", "containerStatuses": [{"name": "main", "state": {
      "running": {"startedAt": "2026-11-21T15:02:23Z"}}}]})"));
  EXPECT_EQ(See(Job()).state, v1::RUN_STATE_RUNNING);
}

TEST_F(KubernetesObjectsTest, APodTooManyThatRanAndWasTakenBackIsNotTheRunsEnd) {
  Json kept = Pod(0, Ended(0, "31"));
  Json surplus = Pod(0, Ended(0, "33"), Deleted("32", 30));
  for (Json* pod : {&kept, &surplus}) (*pod)["status"]["phase"] = "Succeeded";
  Tell(kept);
  surplus["metadata"]["uid"] = "surplus";
  surplus["metadata"]["creationTimestamp"] = "2026-11-21T15:02:59Z";
  Tell(surplus);
  const Json complete = Job(R"([{"type": "Complete", "status": "True",
                                 "lastTransitionTime": "2026-11-21T15:02:34Z"}])");
  EXPECT_EQ(See(complete).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(KubernetesObjectsTest, ASuspendedJobEndsItsPodsFirstAndIsPreemptedThen) {
  Json suspended = Job();
  suspended["spec"]["suspend"] = true;
  Tell(Pod(0, R"({"phase": "Running"})"));
  EXPECT_EQ(See(suspended).state, v1::RUN_STATE_FINISHING);
  Tell(Pod(0, Ended(143, "31"), Deleted("30", 30)));
  const agents::Observation seen = See(suspended);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PREEMPTED);
  EXPECT_FALSE(seen.exit.has_value()) << "its code is its answer to a TERM";
  EXPECT_THAT(seen.failure->message(), EndsWith("suspended by others (Job lab/k7m2-42-1)"));
  Json failed = FailedJob("Container main failed");
  failed["spec"]["suspend"] = true;
  const std::string message = See(failed).failure->message();
  EXPECT_THAT(message, EndsWith("exit code 143 of container main (pod k7m2-42-1-0-x8f2p on "
                                "node-2)"));
  EXPECT_EQ(message.find("pod k7m2"), message.rfind("pod k7m2"));
}

TEST_F(KubernetesObjectsTest, WhatEndedByItselfBeforeItsJobWasSuspendedHasItsOwnEnd) {
  Json suspended = Job();
  suspended["spec"]["suspend"] = true;
  Tell(Pod(0, Ended(3, "31")));
  EXPECT_EQ(See(suspended).reason.message(), "its pods have ended");
  Tell(Pod(0, Ended(3, "31"), Deleted("32", 0)));
  EXPECT_EQ(See(suspended).reason.message(), "its pods have ended")
      << "a deletion afterwards is no matter";
  Json failed = FailedJob("Container main failed");
  failed["spec"]["suspend"] = true;
  EXPECT_EQ(See(failed).exit->code(), 3);
}

TEST_F(KubernetesObjectsTest, AHoldThatComesAsTheProgramBeginsIsTheRunsEndAndAnotherOneMayFollow) {
  Json held = Job();
  held["spec"]["suspend"] = true;
  held["metadata"]["annotations"][kHeldAnnotation] = "true";
  Tell(Pod(0, R"({"phase": "Running"})"));
  EXPECT_THAT(See(held).reason.message(), HasSubstr("the hold came as its program began"));
  Tell(Pod(0, Ended(143, "31"), Deleted("30", 30)));
  const agents::Observation seen = See(held);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED) << "it is not held as if nothing had run";
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(seen.failure->retriable());
}

TEST_F(KubernetesObjectsTest, OfAJobThatWasSuspendedAndWentOnTheLatestPodCounts) {
  Tell(Pod(0, Ended(143, "31")));
  Tell(Pod(0, R"({"phase": "Running"})",
           R"({"uid": "another", "creationTimestamp": "2026-11-21T15:03:00Z"})"));
  EXPECT_EQ(See(Job()).state, v1::RUN_STATE_RUNNING);
}

TEST_F(KubernetesObjectsTest, APodThatIsTakenBackBeforeAnythingRanInItIsNotTheRunsEnd) {
  Tell(Pod(0, R"({"phase": "Pending"})",
           R"({"deletionTimestamp": "2026-11-21T15:03:00Z", "deletionGracePeriodSeconds": 0})"));
  EXPECT_EQ(See(Job()).state, v1::RUN_STATE_PENDING);
}

TEST_F(KubernetesObjectsTest, WhatAJobNeedsAndIsNotThereIsNamed) {
  const auto end = [&](const std::string& container, const std::string& message) {
    Tell(Pod(0,
             R"({"phase": "Failed", "initContainerStatuses": [{"name": ")" + container +
                 R"(", "state": {"terminated": {"exitCode": 1, "reason": "Error",
                    "finishedAt": "2026-11-21T15:02:30Z", "message": ")" +
                 message + R"("}}}]})",
             R"({"ownerReferences": [{"kind": "Job", "uid": "j"}]})"));
    return See(FailedJob("Container " + container + " failed"));
  };
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "inputs[0].uri \"/data\" is not there");
  const agents::Observation seen =
      end("storage",
          "\\nmuster-end/1 seal=j phase=files problem=no_tar field=uploads\\n/muster/work"
          "\\nmuster-end/1 seal=j phase=files problem=missing field=inputs[0].uri\\n/data\\n");
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_FALSE(seen.exit.has_value());
  EXPECT_THAT(seen.failure->message(),
              StartsWith("What the job needs is not all there: uploads: the image has no tar to "
                         "unpack them; inputs[0].uri \"/data\" is not there: exit code 1 of "
                         "container storage (pod "));
  EXPECT_THAT(seen.failure->quotes(), IsEmpty()) << "the sentence has the event's words";
  EXPECT_EQ(seen.failure->phase(), v1::FAILURE_PHASE_FILES);
  EXPECT_THAT(seen.failure->remedy(), StartsWith("Use an image that has tar"));
  EXPECT_EQ(seen.failure->code(), v1::FAILURE_CODE_INPUTS_MISSING);
  const std::string record = "\\nmuster-end/1 seal=j phase=files problem=";
  EXPECT_EQ(end("storage", record + "not_made field=results_directory\\n/out\\n").failure->code(),
            v1::FAILURE_CODE_RESULTS_DIRECTORY);
  EXPECT_EQ(end("storage", record + "not_unpacked field=uploads\\n/muster/work\\n").failure->code(),
            v1::FAILURE_CODE_FILES_NOT_BROUGHT);
  EXPECT_THAT(end("storage", "muster: uploads: no tar").failure->message(),
              StartsWith("What comes before the command failed: "))
      << "tar and the image's other programs write such lines as well";
  EXPECT_THAT(end("istio-init", "").failure->message(),
              StartsWith("What comes before the command failed: exit code 1 of container istio-"));
}

TEST_F(KubernetesObjectsTest, ASuspendedJobThatHasNotBegunWaits) {
  Json suspended = Job();
  suspended["spec"]["suspend"] = true;
  EXPECT_EQ(See(suspended).state, v1::RUN_STATE_PENDING);
}

TEST(KubernetesTrimTest, ATrimmedPodKeepsTheMemoryLimitsOfItsContainersAndNoMoreOfThem) {
  const Json pod = Json::parse(R"({
      "spec": {
        "initContainers": [{"name": "storage", "resources": {"limits": {"memory": "64Mi"}}}],
        "containers": [{"name": "main", "command": ["secret"],
                        "resources": {"limits": {"memory": "2Gi"}, "requests": {"cpu": "1"}}},
                       {"name": "proxy"}]},
      "status": {
        "initContainerStatuses": [{"name": "storage"}],
        "containerStatuses": [{"name": "proxy"}, {"name": "main"}]}})");
  const Json trimmed = TrimObject(pod);
  EXPECT_EQ(trimmed.dump().find("secret"), std::string::npos);
  for (const Json& read : {pod, trimmed}) {
    const PodObject parsed = ParsePod(read);
    ASSERT_EQ(parsed.containers.size(), 3u);
    EXPECT_EQ(parsed.containers[0].memory_limit_bytes, uint64_t{64} << 20);
    EXPECT_EQ(parsed.containers[1].memory_limit_bytes, 0u);
    EXPECT_EQ(parsed.containers[2].memory_limit_bytes, uint64_t{2} << 30);
  }
}

}  // namespace
}  // namespace muster::kubernetes
