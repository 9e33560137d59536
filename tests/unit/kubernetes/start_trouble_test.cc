// Reasons that runs do not start, and the time that the agent waits for them; with objects of a
// real cluster (1.36), shortened.
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/told_run.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using StartTroubleTest = ToldRunTest;

TEST_F(StartTroubleTest, AKeyThatASecretLacksIsSaidByAnEventThatComesAgainAndAgain) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  const std::string words =
      "MountVolume.SetUp failed for volume \"d\" : references non-existent secret key: nope";
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", words, "15:02:23", "15:08:00");
  const agents::Observation seen = See(Job(), "15:08:01");
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(seen.failure->message(), HasSubstr(words));
}

TEST_F(StartTroubleTest, PatienceWithAnImageBeginsWhenItIsFirstMissedAndNotWhenThePodIsMade) {
  const std::string waiting = R"("containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}])";
  Tell(Pod(0, R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True",
      "lastTransitionTime": "2026-11-21T16:00:00Z"}], )" +
                  waiting + "}"));
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "16:04:00", "16:05:00");
  EXPECT_EQ(See(Job(), "16:06:00").state, v1::RUN_STATE_STARTING) << "it found no node for long";
  EXPECT_EQ(See(Job(), "16:09:01").state, v1::RUN_STATE_FAILED);
}

TEST_F(StartTroubleTest, AMountThatFailedBeforeTheVolumesWereThereIsNoTroubleOfALongPull) {
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
  EXPECT_EQ(SeeNow("15:08:00").reason.message(), "");
}

TEST_F(StartTroubleTest, AMountThatIsNotTriedAgainHasSucceededAlsoWhereThePodDoesNotSaySo) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", "secret \"x\" not found", "15:02:23", "15:02:33");
  EXPECT_THAT(See(Job(), "15:02:40").reason.message(),
              HasSubstr("not found; Muster gives the run up at"));
  EXPECT_EQ(See(Job(), "15:07:30").state, v1::RUN_STATE_STARTING);
  EXPECT_EQ(See(Job(), "16:02:33").state, v1::RUN_STATE_STARTING);
}

// Kueue let the Job go before its launch was complete, and its agent was away then.
TEST_F(StartTroubleTest, WhatTheLaunchItselfMakesIsMissedOnceTheLaunchIsThrough) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  store_.jobs()->OnChange(TrimObject(Job()));
  for (const std::string secret : {"k7m2-42-1", "k7m2-42-1-files-0"}) {
    TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", "secret \"" + secret + "\" not found", "15:02:23",
              "15:30:00");
    RunFacts facts = store_.Facts(kRun);
    facts.now = At("15:30:01");
    EXPECT_EQ(Judge(facts, Patience())->state, v1::RUN_STATE_STARTING) << secret;
    EXPECT_THAT(Judge(facts, Patience())->reason.message(), Not(HasSubstr("gives the run up")));
    facts.job->launch_complete_since = At("15:30:01");
    EXPECT_EQ(Judge(facts, Patience())->state, v1::RUN_STATE_STARTING) << "it is mounted anew soon";
    facts.job->launch_complete_since = At("15:29:59");
    EXPECT_EQ(Judge(facts, Patience())->state, v1::RUN_STATE_STARTING) << "it counts from then on";
    facts.job->launch_complete_since = At("15:25:01");
    EXPECT_EQ(Judge(facts, Patience())->failure->failure_class(), v1::FAILURE_CLASS_CONFIG)
        << "somebody has deleted it";
  }
}

TEST_F(StartTroubleTest, PatienceWithAnImageDoesNotBeginWithATroubleOfTheSandbox) {
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ErrImagePull", "message": "503 Service Unavailable"}}}]})"));
  TellEvent("k7m2-42-1-0-x8f2p", "FailedCreatePodSandBox", "no network yet", "15:02:23");
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", "secret \"x\" not found", "15:02:24", "15:02:30");
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "15:08:30", "15:08:30");
  EXPECT_EQ(See(Job(), "15:08:31").state, v1::RUN_STATE_STARTING) << "it is tried again";
  EXPECT_EQ(See(Job(), "15:13:31").failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(StartTroubleTest, PatienceWithAnImageGoesOnWhenAQueueTakesTheRunBackAndLetsItGoAnew) {
  const std::string pulling = R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]})";
  TellEvent("k7m2-42-1-0-first", "Failed", "Failed to pull image \"x\"", "15:02:25", "15:06:00");
  Tell(Pod(0, pulling));  // another one, of another name
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "15:08:00", "15:08:00");
  Json job = Job();
  job["status"]["startTime"] = "2026-11-21T15:07:50Z";
  EXPECT_EQ(See(job, "15:08:01").failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(StartTroubleTest, PatienceWithAnImageIsNotSpentByAnotherRank) {
  const std::string pulling = R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ErrImagePull", "message": "reset by nobody"}}}]})";
  TellEvent("k7m2-42-1-0-x8f2p", "Failed", "Failed to pull image", "15:02:25", "15:02:25");
  Tell(Pod(0, R"({"phase": "Running"})"));
  Tell(Pod(1, pulling));
  TellEvent("k7m2-42-1-1-x8f2p", "Failed", "Failed to pull image: 1", "15:08:30", "15:08:30");
  EXPECT_EQ(See(Job("[]", 2), "15:08:31").state, v1::RUN_STATE_STARTING);
  EXPECT_EQ(SeeNow("15:13:31").failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(StartTroubleTest, PatienceIsNotSpentByATroubleThatPassedHoursAgo) {
  TellEvent("k7m2-42-1-0-first", "FailedMount", "secret \"k7m2-42-1\" not found", "10:00:00",
            "10:00:01");
  Tell(Pod(0, R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  TellEvent("k7m2-42-1-0-x8f2p", "FailedMount", "driver csi not found", "16:00:00", "16:00:05");
  EXPECT_EQ(See(Job(), "16:00:06").state, v1::RUN_STATE_STARTING);
}

TEST_F(StartTroubleTest, PatienceWithAnImageDoesNotWaitForAWarningThatIsLate) {
  Tell(Pod(0, R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True",
      "lastTransitionTime": "2026-11-21T10:00:00Z"}], "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]})"));
  store_.jobs()->OnChange(TrimObject(Job()));
  RunFacts facts = store_.Facts(kRun);
  facts.now = absl::Now();
  EXPECT_EQ(Judge(facts, Patience())->state, v1::RUN_STATE_STARTING) << "it was pulled for long";
  facts.now += absl::Minutes(6);
  EXPECT_EQ(Judge(facts, Patience())->state, v1::RUN_STATE_FAILED);
}

// Side-cars that Muster makes are never started again; those that others put into the pod may be.
std::string Sidecar(int restarts, const std::string& state) {
  return fmt::format(
      R"({{"phase": "Pending", "initContainerStatuses": [{{"name": "mesh", "restartCount": {},
          "started": false, "state": {}}}], "containerStatuses": [
          {{"name": "main", "state": {{"waiting": {{"reason": "PodInitializing"}}}}}}]}})",
      restarts, state);
}
constexpr char kRunning[] = R"({"running": {"startedAt": "2026-11-21T15:03:00Z"}})";
constexpr char kBackOff[] = R"({"waiting": {"reason": "CrashLoopBackOff", "message":
    "back-off 40s restarting failed container=mesh pod=k7m2-42-1-0-x8f2p_lab"}})";

TEST_F(StartTroubleTest, AnInitContainerThatEndsAgainAndAgainEndsTheRunAndSaysHowOften) {
  Tell(Pod(0, Sidecar(1, kBackOff)));
  TellEvent("k7m2-42-1-0-x8f2p", "BackOff", "Back-off restarting failed container mesh", "15:02:30",
            "15:07:00");
  const std::string words = "CrashLoopBackOff: the init container \"mesh\" has ended and was ";
  const agents::Observation waiting = See(Job(), "15:02:40");
  EXPECT_EQ(waiting.state, v1::RUN_STATE_STARTING);
  EXPECT_THAT(waiting.reason.message(),
              HasSubstr(words + "started again 1 time; Muster gives the run up at 15:07:30 UTC"));
  EXPECT_EQ(waiting.reason.code(), v1::STATE_REASON_CODE_CANNOT_START);
  EXPECT_EQ(waiting.reason.scheduler_reason(), "CrashLoopBackOff");
  EXPECT_EQ(waiting.reason.subject(), "k7m2-42-1-0-x8f2p");
  EXPECT_EQ(waiting.reason.rank(), 0u);
  EXPECT_THAT(waiting.reason.remedy(), HasSubstr("(kubernetes.start_grace)"));
  Tell(Pod(0, Sidecar(4, kBackOff)));
  EXPECT_EQ(SeeNow("15:07:29").state, v1::RUN_STATE_STARTING);
  const agents::Observation seen = SeeNow("15:07:30");
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(seen.failure->message(), "The pod cannot start: " + words +
                                         "started again 4 times (pod k7m2-42-1-0-x8f2p on node-2)");
  EXPECT_THAT(seen.failure->remedy(), HasSubstr("kubectl logs POD -c CONTAINER --previous"));
}

TEST_F(StartTroubleTest, TheCodeOfAFailureSaysWhatIsWrongWithTheImage) {
  StartTrouble trouble;
  trouble.failure_class = v1::FAILURE_CLASS_IMAGE;
  const auto code = [&](const char* reason, const char* message) {
    trouble.reason = reason;
    trouble.message = message;
    return FailureCodeOf(trouble);
  };
  EXPECT_EQ(code("InvalidImageName", ""), v1::FAILURE_CODE_IMAGE_NAME_INVALID);
  EXPECT_EQ(code("ErrImageNeverPull", ""), v1::FAILURE_CODE_IMAGE_NOT_FOUND);
  EXPECT_EQ(code("ErrImagePull", "a.lab/b:2: not found"), v1::FAILURE_CODE_IMAGE_NOT_FOUND);
  EXPECT_EQ(code("ErrImagePull", "unexpected status: 401 Unauthorized"),
            v1::FAILURE_CODE_IMAGE_ACCESS_DENIED);
  EXPECT_EQ(code("ImageInspectError", "?"), v1::FAILURE_CODE_IMAGE_UNAVAILABLE);
  trouble.is_registrys = true;
  EXPECT_EQ(code("ErrImagePull", "i/o timeout"), v1::FAILURE_CODE_REGISTRY_UNAVAILABLE);
  trouble.is_nodes = true;
  EXPECT_EQ(code("ErrImagePull", "no space left"), v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE);
  trouble.failure_class = v1::FAILURE_CLASS_CONFIG;
  EXPECT_EQ(code("CreateContainerError", ""), v1::FAILURE_CODE_CANNOT_START);
}

TEST_F(StartTroubleTest, AnInitContainerThatRunsAfterAllEndsNoRun) {
  Tell(Pod(0, Sidecar(3, kRunning)));
  TellEvent("k7m2-42-1-0-x8f2p", "BackOff", "Back-off restarting failed container mesh", "15:02:30",
            "15:04:00");
  EXPECT_EQ(See(Job(), "15:09:00").state, v1::RUN_STATE_STARTING);
}

TEST_F(StartTroubleTest, PatienceWithAnInitContainerDoesNotBeginAnewWithEachOfItsStarts) {
  Tell(Pod(0, Sidecar(1, kBackOff)));
  store_.jobs()->OnChange(TrimObject(Job()));
  const std::optional<absl::Time> since = store_.Facts(kRun).pods.at(0).waiting_since;
  ASSERT_TRUE(since.has_value());
  for (const char* state : {kRunning, R"({"terminated": {"exitCode": 1}})", kBackOff}) {
    Tell(Pod(0, Sidecar(2, state)));
    EXPECT_EQ(store_.Facts(kRun).pods.at(0).waiting_since, since) << state;
  }
  RunFacts facts = store_.Facts(kRun);
  facts.now = *since + Patience().start_grace;
  EXPECT_EQ(Judge(facts, Patience())->state, v1::RUN_STATE_FAILED) << "nobody wrote a Warning";
}

TEST_F(StartTroubleTest, AClaimWithoutAVolumeIsWaitedForAndSaysWhoKnowsWhy) {
  Json pod = Pod(0, R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
      "status": "False", "reason": "Unschedulable"}]})");
  pod["spec"].erase("nodeName");
  pod["status"]["conditions"][0]["message"] =
      "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found";
  Tell(pod);
  EXPECT_EQ(See(Job(), "16:02:25").reason.message(),
            "Unschedulable: 0/2 nodes are available: pod has unbound immediate "
            "PersistentVolumeClaims; the run waits until its claim has a volume: kubectl describe "
            "pvc, in its namespace, tells why it has none");
  unbound_claims_ = {{"kubernetes.volumes[1].claim", "\"slow\" has no volume yet", false}};
  EXPECT_EQ(SeeNow("16:02:25").reason.message(),
            "kubernetes.volumes[1].claim \"slow\" has no volume yet");
}

TEST_F(StartTroubleTest, AClaimThatNothingMakesAVolumeForIsWaitedForAsLongAsOneThatIsMissing) {
  Json pod = Pod(0, R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
      "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2026-11-21T16:00:00Z",
      "message": "pod has unbound immediate PersistentVolumeClaims. not found"}]})");
  pod["spec"].erase("nodeName");
  Tell(pod);
  TellEvent("k7m2-42-1-0-x8f2p", "FailedScheduling",
            "pod has unbound immediate PersistentVolumeClaims. not found", "16:00:00", "16:04:00");
  unbound_claims_ = {{"kubernetes.volumes[1].claim", "\"data\" has no volume", true}};
  const agents::Observation waiting = See(Job(), "16:04:59");
  EXPECT_EQ(waiting.reason.message(),
            "kubernetes.volumes[1].claim \"data\" has no volume; Muster gives the run up at "
            "16:05:00 UTC");
  EXPECT_THAT(waiting.reason.remedy(),
              StartsWith("Give it a volume, or make it anew with a storage class"));
  const agents::Observation seen = SeeNow("16:05:00");
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(seen.failure->message(),
            "The pod cannot start: kubernetes.volumes[1].claim \"data\" has "
            "no volume (pod k7m2-42-1-0-x8f2p)");
  EXPECT_EQ(seen.failure->remedy(), contract::RemedyFor(contract::FailureCause::kClaimUnbound));
  EXPECT_EQ(seen.failure->phase(), v1::FAILURE_PHASE_FILES);
  EXPECT_EQ(seen.failure->rank(), 0u);
}

TEST_F(StartTroubleTest, TheEndOfAMissingClaimSaysItOnceAndTheCauseFirst) {
  const std::string words = "0/2 nodes are available: persistentvolumeclaim \"nosuch\" not found";
  for (const int rank : {0, 1}) {
    Json pod = Pod(rank, R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2026-11-21T16:00:00Z"}]})");
    pod["spec"].erase("nodeName");
    pod["status"]["conditions"][0]["message"] = words + ". not found";
    Tell(pod);
    TellEvent(fmt::format("k7m2-42-1-{}-x8f2p", rank), "FailedScheduling", words + ". not found",
              "16:00:00", "16:05:00");
    TellEvent(fmt::format("k7m2-42-1-{}-x8f2p", rank), "Other", "something else", "16:00:00",
              "16:05:00");
  }
  const agents::Observation seen = See(Job("[]", 2), "16:06:00");
  EXPECT_EQ(seen.failure->message(),
            "The pod cannot start: Unschedulable: " + words + " (pod k7m2-42-1-0-x8f2p)");
  EXPECT_EQ(seen.failure->remedy(), "Make it in the run's namespace, or name another.");
  ASSERT_EQ(seen.failure->quotes_size(), 1);
  EXPECT_THAT(seen.failure->quotes(0).text(), HasSubstr("Other: something else"));
}

TEST_F(StartTroubleTest, ARankThatTheSuccessOfThoseThatLeadHasEndedIsShownAsEndedByThat) {
  Tell(Pod(0, R"({"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": {
      "terminated": {"exitCode": 0, "finishedAt": "2026-11-21T15:02:30Z"}}}]})"));
  Tell(Pod(1, Ended(143, "32"), Deleted("31", 0)));
  Json job = Job(R"([{"type": "SuccessCriteriaMet", "status": "True"},
                     {"type": "Complete", "status": "True"}])",
                 2);
  job["metadata"]["annotations"][kLeadingAnnotation] = "0";
  agents::Observation seen = See(job);
  ASSERT_EQ(seen.replicas.size(), 2u);
  EXPECT_FALSE(seen.replicas[0].has_issue());
  EXPECT_EQ(seen.replicas[1].issue().reason(), "SuccessPolicy");
  job["metadata"]["annotations"].erase(kLeadingAnnotation);
  seen = See(job);
  EXPECT_EQ(seen.replicas[1].issue().reason(), "Error") << "all count";
}

TEST_F(StartTroubleTest, WordsThatStandInASentenceEndWithoutALine) {
  Json pod = Pod(0, Ended(127, "31"));
  pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = "prog: not found\n";
  Tell(pod);
  EXPECT_EQ(See(FailedJob("")).failure->message().find('\n'), std::string::npos);
}

TEST_F(StartTroubleTest, APodThatNoSchedulerLooksAtSaysSo) {
  Json pod = Pod(0, R"({"phase": "Pending"})");
  pod["spec"].erase("nodeName");
  Tell(pod);
  EXPECT_EQ(See(Job(), "15:02:25").reason.message(), "") << "it has only just been made";
  EXPECT_THAT(SeeNow("15:03:25").reason.message(), HasSubstr("no scheduler has looked at its pod"));
}

TEST_F(StartTroubleTest, APodThatIsRefusedIsSoSinceItsFirstRefusalAndNotBeforeANewStart) {
  const std::string denied =
      "Error creating: pods \"k7m2-42-1-a\" is forbidden: violates PodSecurity";
  TellEvent(kRun, "FailedCreate", denied, "15:02:25", "15:06:00");
  Json job = Job();
  job["status"]["startTime"] = "2026-11-21T15:10:00Z";
  EXPECT_EQ(See(job, "15:10:01").state, v1::RUN_STATE_PENDING) << "it may be mended";
  EXPECT_EQ(SeeNow("15:10:01").reason.message(), "its pods are about to be made");
  TellEvent(kRun, "FailedCreate", denied + ": b", "15:10:01", "15:10:01");
  EXPECT_EQ(See(job, "15:10:02").failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
}

TEST_F(StartTroubleTest, AWrongImageEndsARunAlsoIfAnotherOfItsPodsFindsNoNode) {
  Json nowhere = Pod(0, R"({"phase": "Pending"})");
  nowhere["spec"].erase("nodeName");
  Tell(nowhere);
  Tell(Pod(1, R"({"phase": "Pending", "containerStatuses": [{"name": "main",
      "state": {"waiting": {"reason": "InvalidImageName", "message": "Not A Name"}}}]})"));
  EXPECT_EQ(See(Job("[]", 2)).failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

}  // namespace
}  // namespace muster::kubernetes
