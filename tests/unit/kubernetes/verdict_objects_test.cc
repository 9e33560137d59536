// What Judge says of objects of a real cluster (1.36), shortened.
#include "agents/kubernetes/run_store.h"
#include "agents/kubernetes/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kRun[] = "k7m2-42-1";

absl::Time At(const char* clock) {
  absl::Time time;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-11-21T" + std::string(clock) + "Z", &time,
                              nullptr));
  return time;
}

// A run whose Job has three pods, the state of which is told by a store, as a watch would.
class KubernetesObjectsTest : public testing::Test {
 protected:
  KubernetesObjectsTest() { store_.Want(kRun); }

  static Json Named(const std::string& name) {
    return {{"namespace", "lab"},
            {"name", name},
            {"uid", "uid-of-" + name},
            {"resourceVersion", "7"},
            {"creationTimestamp", "2026-11-21T15:02:22Z"},
            {"labels", {{kRunLabel, kRun}}}};
  }
  static Json Job(const std::string& conditions = "[]", int completions = 1) {
    return {{"metadata", Named(kRun)},
            {"spec", {{"completions", completions}}},
            {"status",
             {{"startTime", "2026-11-21T15:02:22Z"}, {"conditions", Json::parse(conditions)}}}};
  }
  // Both conditions with which a Job ends that has failed.
  static Json FailedJob(const std::string& message, int completions = 1) {
    Json job = Job("[]", completions);
    for (const char* type : {"FailureTarget", "Failed"}) {
      job["status"]["conditions"].push_back({{"type", type},
                                             {"status", "True"},
                                             {"reason", "PodFailurePolicy"},
                                             {"message", message},
                                             {"lastTransitionTime", "2026-11-21T15:02:32Z"}});
    }
    return job;
  }
  static Json Pod(int rank, const std::string& status, const std::string& metadata = "{}") {
    Json pod = {{"metadata", Named(std::string(kRun) + "-" + std::to_string(rank) + "-x8f2p")},
                {"spec", {{"nodeName", "node-2"}}},
                {"status", Json::parse(status)}};
    pod["metadata"]["annotations"] = {
        {"batch.kubernetes.io/job-completion-index", std::to_string(rank)}};
    pod["metadata"].update(Json::parse(metadata));
    return pod;
  }
  static std::string Ended(int code, const std::string& second) {
    return R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {
      "exitCode": )" +
           std::to_string(code) +
           R"(, "reason": "Error", "startedAt": "2026-11-21T15:02:22Z",
      "finishedAt": "2026-11-21T15:02:)" +
           second + R"(Z"}}}]})";
  }
  static std::string Deleted(const std::string& second, int grace) {
    return R"({"deletionTimestamp": "2026-11-21T15:02:)" + second +
           R"(Z", "deletionGracePeriodSeconds": )" + std::to_string(grace) + "}";
  }
  // Trimmed, as those of a list are: all that is said of them here is said of whole ones, too.
  void Tell(const Json& pod) { store_.pods()->OnChange(TrimObject(pod)); }
  void TellEvent(const std::string& object, const std::string& reason, const std::string& message,
                 const std::string& first = "15:02:23", const std::string& last = "15:02:23") {
    store_.events()->OnChange(
        TrimObject({{"metadata", {{"uid", reason + message}}},
                    {"involvedObject", {{"name", object}, {"uid", "uid-of-" + object}}},
                    {"type", "Warning"},
                    {"reason", reason},
                    {"message", message},
                    {"firstTimestamp", "2026-11-21T" + first + "Z"},
                    {"lastTimestamp", "2026-11-21T" + last + "Z"}}));
  }
  agent::Observation See(const Json& job, const char* clock = "15:02:40",
                         v1::RunState last = v1::RUN_STATE_UNSPECIFIED) {
    store_.jobs()->OnChange(TrimObject(job));
    return SeeNow(clock, last);
  }
  agent::Observation SeeNow(const char* clock = "15:02:40",
                            v1::RunState last = v1::RUN_STATE_UNSPECIFIED) {
    RunFacts facts = store_.Facts(kRun);
    facts.now = At(clock);
    facts.last_state = last;
    return Judge(facts, Patience()).value_or(agent::Observation());
  }

  RunStore store_{[](const PodObject&) {}};
};

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
  const agent::Observation seen = See(FailedJob("Container main failed", 3));
  EXPECT_EQ(seen.exit->code(), 5);
  EXPECT_EQ(seen.exit->rank(), 1u);
}

TEST_F(KubernetesObjectsTest, OfFailuresInOneSecondTheJobNamesTheFirst) {
  Tell(Pod(0, Ended(4, "31")));
  Tell(Pod(1, Ended(5, "31")));
  const agent::Observation seen = See(FailedJob(
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
  const agent::Observation seen = See(FailedJob("Container main failed", 2));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(seen.failure->retriable());
  EXPECT_EQ(seen.exit->rank(), 0u);
}

TEST_F(KubernetesObjectsTest, APodThatOthersDeletedIsNotStoppedByTheJobThatNamesItInTheSameSecond) {
  const Json pod = Pod(0, Ended(143, "32"), Deleted("37", 5));
  Tell(pod);
  const std::string name = TextAt(pod, "metadata/name");
  const agent::Observation seen =
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
  const agent::Observation seen = See(FailedJob("Container main failed", 2));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_THAT(seen.failure->message(), HasSubstr("longer than the specified deadline"));
}

TEST_F(KubernetesObjectsTest, WhatIsLeftOfAJobWhosePodsAreGoneTellsTheExitAndItsRank) {
  const agent::Observation seen = See(FailedJob(
      "Container main for pod lab/k7m2-42-1-11-x8f2p failed with exit code 137 matching FailJob "
      "rule at index 1"));
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(seen.exit->signal(), 9);
  EXPECT_EQ(seen.exit->rank(), 11u);
  const agent::Observation plain = See(FailedJob(
      "Container main for pod lab/k7m2-42-1-12345 failed with exit code 3 matching FailJob rule "
      "at index 1"));
  EXPECT_EQ(plain.exit->rank(), 0u) << "those are no index";
  const agent::Observation disrupted =
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
  agent::Observation seen = See(Job(), "15:12:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(seen.reason, AllOf(HasSubstr("on node-2"), HasSubstr("NoExecute taint")));
  EXPECT_EQ(seen.replicas[0].issue().reason(), "DeletionByTaintManager");
  // Also if others delete the Job meanwhile, which does not wait for its pods.
  store_.jobs()->OnDelete(Job());
  seen = SeeNow("15:12:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(seen.reason, HasSubstr("deleted on the cluster, not by Muster"));
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
  agent::Observation seen = See(Job(), "23:00:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(seen.reason,
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
  const agent::Observation seen = See(Job(), "23:00:00");
  ASSERT_TRUE(seen.failure.has_value());
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(seen.failure->message(), HasSubstr(denied));
}

TEST_F(KubernetesObjectsTest, ARunIsPendingUntilAllOfItsPodsAreMadeAndIsNotSoAgain) {
  Tell(Pod(0, R"({"phase": "Running"})"));
  EXPECT_EQ(See(Job("[]", 2)).state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(See(Job("[]", 2), "15:03:00", v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
}

TEST_F(KubernetesObjectsTest, AKeyThatASecretLacksIsSaidByAnEventThatComesAgainAndAgain) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  const std::string words =
      "MountVolume.SetUp failed for volume \"d\" : references non-existent secret key: nope";
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", words, "15:02:23", "15:08:00");
  const agent::Observation seen = See(Job(), "15:08:01");
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(seen.failure->message(), HasSubstr(words));
}

TEST_F(KubernetesObjectsTest, PatienceWithAnImageBeginsWhenItIsFirstMissedAndNotWhenThePodIsMade) {
  const std::string waiting = R"("containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}])";
  Tell(Pod(0, R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True",
      "lastTransitionTime": "2026-11-21T16:00:00Z"}], )" +
                  waiting + "}"));
  EXPECT_EQ(See(Job(), "16:00:10").state, v1::RUN_STATE_STARTING) << "it found no node for long";
  EXPECT_EQ(See(Job(), "16:06:00").state, v1::RUN_STATE_FAILED);
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "16:04:00", "16:05:00");
  EXPECT_EQ(See(Job(), "16:06:00").state, v1::RUN_STATE_STARTING);
}

TEST_F(KubernetesObjectsTest, AMountThatFailedBeforeTheVolumesWereThereIsNoTroubleOfALongPull) {
  const auto creating = [](const char* is_made) {
    return R"({"phase": "Pending", "conditions": [{"type": "PodReadyToStartContainers",
        "status": ")" +
           std::string(is_made) + R"("}], "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})";
  };
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount",
            "driver name efs.csi.aws.com not found in the list of registered CSI drivers",
            "15:02:23", "15:07:30");
  Tell(Pod(0, creating("False")));
  EXPECT_EQ(See(Job(), "15:08:00").state, v1::RUN_STATE_FAILED);
  Tell(Pod(0, creating("True")));
  EXPECT_EQ(SeeNow("15:08:00").state, v1::RUN_STATE_STARTING);
  EXPECT_EQ(SeeNow("15:08:00").reason, "");
}

TEST_F(KubernetesObjectsTest, AMountThatIsNotTriedAgainHasSucceededAlsoWhereThePodDoesNotSaySo) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", "secret \"k7m2-42-1\" not found", "15:02:23",
            "15:02:33");
  EXPECT_THAT(See(Job(), "15:02:40").reason, HasSubstr("not found; Muster gives the run up at"));
  EXPECT_EQ(See(Job(), "15:07:30").state, v1::RUN_STATE_STARTING);
  EXPECT_EQ(See(Job(), "16:02:33").state, v1::RUN_STATE_STARTING);
}

TEST_F(KubernetesObjectsTest, PatienceWithAnImageDoesNotBeginWithATroubleOfTheSandbox) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ErrImagePull", "message": "503 Service Unavailable"}}}]})"));
  TellEvent("k7m2-42-1-0-x8f2p", "FailedCreatePodSandBox", "no network yet", "15:02:23");
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", "secret \"x\" not found", "15:02:24", "15:02:30");
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "15:08:30", "15:08:30");
  EXPECT_EQ(See(Job(), "15:08:31").state, v1::RUN_STATE_STARTING) << "it is tried again";
  EXPECT_EQ(See(Job(), "15:13:31").failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(KubernetesObjectsTest, PatienceWithAnImageGoesOnWhenAQueueTakesTheRunBackAndLetsItGoAnew) {
  const std::string pulling = R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]})";
  TellEvent("k7m2-42-1-0-first", "Failed", "Failed to pull image \"x\"", "15:02:25", "15:06:00");
  Tell(Pod(0, pulling));  // another one, of another name
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "15:08:00", "15:08:00");
  Json job = Job();
  job["status"]["startTime"] = "2026-11-21T15:07:50Z";
  EXPECT_EQ(See(job, "15:08:01").failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(KubernetesObjectsTest, APodThatIsRefusedIsSoSinceItsFirstRefusalAndNotBeforeANewStart) {
  const std::string denied =
      "Error creating: pods \"k7m2-42-1-a\" is forbidden: violates PodSecurity";
  TellEvent(kRun, "FailedCreate", denied, "15:02:25", "15:06:00");
  Json job = Job();
  job["status"]["startTime"] = "2026-11-21T15:10:00Z";
  EXPECT_EQ(See(job, "15:10:01").state, v1::RUN_STATE_PENDING) << "it may be mended";
  EXPECT_EQ(SeeNow("15:10:01").reason, "its pods are about to be made");
  TellEvent(kRun, "FailedCreate", denied + ": b", "15:10:01", "15:10:01");
  EXPECT_EQ(See(job, "15:10:02").failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
}

TEST_F(KubernetesObjectsTest, AWrongImageEndsARunAlsoIfAnotherOfItsPodsFindsNoNode) {
  Json nowhere = Pod(0, R"({"phase": "Pending"})");
  nowhere["spec"].erase("nodeName");
  Tell(nowhere);
  Tell(Pod(1, R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "InvalidImageName", "message": "Not A Name"}}}]})"));
  EXPECT_EQ(See(Job("[]", 2)).failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(KubernetesObjectsTest, ASuspendedJobEndsItsPodsFirstAndIsPreemptedThen) {
  Json suspended = Job();
  suspended["spec"]["suspend"] = true;
  Tell(Pod(0, R"({"phase": "Running"})"));
  EXPECT_EQ(See(suspended).state, v1::RUN_STATE_FINISHING);
  Tell(Pod(0, Ended(143, "31")));
  const agent::Observation seen = See(suspended);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PREEMPTED);
  EXPECT_FALSE(seen.exit.has_value()) << "its code is its answer to a TERM";
}

TEST_F(KubernetesObjectsTest, AHoldThatComesAsTheProgramBeginsIsTheRunsEndAndAnotherOneMayFollow) {
  Json held = Job();
  held["spec"]["suspend"] = true;
  held["metadata"]["annotations"][kHeldAnnotation] = "true";
  Tell(Pod(0, R"({"phase": "Running"})"));
  EXPECT_THAT(See(held).reason, HasSubstr("the hold came as its program began"));
  Tell(Pod(0, Ended(143, "31")));
  const agent::Observation seen = See(held);
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

TEST_F(KubernetesObjectsTest, ASuspendedJobThatHasNotBegunWaits) {
  Json suspended = Job();
  suspended["spec"]["suspend"] = true;
  EXPECT_EQ(See(suspended).state, v1::RUN_STATE_PENDING);
}

}  // namespace
}  // namespace muster::kubernetes
