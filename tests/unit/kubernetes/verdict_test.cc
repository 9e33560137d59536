#include "agents/kubernetes/verdict/verdict.h"

#include "agents/kubernetes/objects/kueue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/verdict_world.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using verdict_world::FailedWorld;
using verdict_world::kNow;
using verdict_world::kSetupFailed;
using verdict_world::World;

TEST(KubernetesVerdictTest, ACompleteJobHasSucceeded) {
  const agents::Observation seen = World().Job("Complete").Seen();
  EXPECT_EQ(seen.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.external_id, "lab/k7m2-42-1");
  EXPECT_FALSE(seen.failure.has_value());
  EXPECT_THAT(seen.evidence.detail(), HasSubstr("resourceVersion 7"));
}

constexpr char kDoneAtHalf[] = R"({"phase": "Succeeded", "conditions": [
    {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
     "lastTransitionTime": "2027-01-15T07:59:%sZ"}],
  "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 0,
    "startedAt": "2027-01-15T07:59:10Z", "finishedAt": "2027-01-15T07:59:30Z"}}}]})";

TEST(KubernetesVerdictTest, AZeroOfAPodThatWasToldToStopIsNoSuccess) {
  std::string pod = kDoneAtHalf;
  pod.replace(pod.find("%s"), 2, "29");
  const agents::Observation seen = World().Job("Complete").Pod(pod).Seen();
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
}

TEST(KubernetesVerdictTest, AProgramThatFailedBeforeAnotherPodWasEvictedHasFailedByItself) {
  World world = FailedWorld();
  world.Ended(3, "Error", 0, "10").Ended(143, "Error", 1, "40");
  const absl::Time evicted = *world.facts().pods[1].containers[0].finished - absl::Seconds(5);
  world.facts().pods[1].deletion_time = evicted - absl::Seconds(20);
  world.facts().pods[1].conditions.push_back(
      {"DisruptionTarget", true, "DeletionByTaintManager", "node gone", evicted});
  const agents::Observation seen = world.Seen();
  EXPECT_EQ(seen.exit->code(), 3);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM) << seen.failure->message();
  EXPECT_FALSE(seen.failure->retriable());
}

TEST(KubernetesVerdictTest, APodThatWasEvictedAfterItsEndHasEndedByItself) {
  std::string pod = kDoneAtHalf;
  pod.replace(pod.find("%s"), 2, "31");
  EXPECT_EQ(World().Job("Complete").Pod(pod).Seen().state, v1::RUN_STATE_SUCCEEDED);
}

TEST(KubernetesVerdictTest, AnExitCodeIsThatOfTheRankThatFailedFirst) {
  const agents::Observation seen =
      FailedWorld().Ended(143, "Error", 0, "40").Ended(3, "Error", 1, "30").Seen();
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.exit->code(), 3);
  EXPECT_EQ(seen.exit->rank(), 1u);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_THAT(seen.failure->message(), StartsWith("The command ended with exit code 3 (pod "))
      << "the cause first: tables cut what is behind it";
  EXPECT_THAT(seen.failure->message(), Not(HasSubstr("resourceVersion")));
  EXPECT_FALSE(seen.failure->retriable());
}

TEST(KubernetesVerdictTest, ADeathBySignalIsNoExitCode) {
  const agents::Observation seen = FailedWorld().Ended(139).Seen();
  EXPECT_EQ(seen.exit->signal(), 11);
  EXPECT_EQ(seen.exit->code(), 0);
  EXPECT_THAT(
      seen.failure->message(),
      StartsWith(
          "The command was ended by signal 11 (SIGSEGV): exit code 139 of container main (pod "));
}

TEST(KubernetesVerdictTest, MemoryThatRanOutIsNeitherTheProgramsNorTheClusters) {
  const agents::Observation seen = FailedWorld().Ended(137, "OOMKilled").Seen();
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_OOM);
  EXPECT_EQ(seen.failure->code(), v1::FAILURE_CODE_OUT_OF_MEMORY);
  EXPECT_THAT(seen.failure->remedy(), HasSubstr("more memory"));
}

TEST(KubernetesVerdictTest, TheMemoryLimitThatWasReachedIsNamed) {
  World world = FailedWorld().Ended(137, "OOMKilled");
  world.facts().pods[0].containers[0].memory_limit_bytes = uint64_t{1} << 30;
  const agents::Observation seen = world.Seen();
  EXPECT_EQ(seen.failure->memory_limit_bytes(), uint64_t{1} << 30);
  EXPECT_THAT(seen.failure->message(),
              HasSubstr("used more memory than it had: its memory limit of 1Gi: exit code 137"));
}

// Makes a pod that its kubelet has ended at the deadline; `state` is its program's.
World OverdueWorld(const std::string& state, const std::string& container = "main") {
  return World()
      .Job("Failed", "PodFailurePolicy", "Container main for pod lab/k7m2-42-1-0 failed")
      .Pod(R"({"phase": "Failed", "reason": "DeadlineExceeded",
               "message": "Pod was active on the node longer than the specified deadline",
               "containerStatuses": [{"name": ")" +
           container + R"(", "state": )" + state + "}]}");
}

TEST(KubernetesVerdictTest, AtItsTimeLimitAProgramEndsWithItsOwnStatus) {
  const auto ended = [](int code) {
    return OverdueWorld(R"({"terminated": {"exitCode": )" + std::to_string(code) +
                        R"(, "reason": "Error", "finishedAt": "2027-01-15T07:59:30Z"}})")
        .Seen();
  };
  EXPECT_EQ(ended(7).failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
  ASSERT_TRUE(ended(7).exit.has_value());
  EXPECT_EQ(ended(7).exit->code(), 7);
  EXPECT_EQ(ended(143).exit->signal(), 15);
  ASSERT_TRUE(ended(0).exit.has_value()) << "it may have cleaned up, and ended well";
  EXPECT_EQ(ended(0).exit->code(), 0);
}

TEST(KubernetesVerdictTest, AtATimeLimitNoStatusIsToldThatIsNotTheCommands) {
  const auto has_exit = [](const std::string& state, const std::string& container = "main") {
    const agents::Observation seen = OverdueWorld(state, container).Seen();
    EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT) << state;
    return seen.exit.has_value();
  };
  EXPECT_FALSE(has_exit(R"({"running": {}})"));
  EXPECT_FALSE(has_exit(R"({"waiting": {"reason": "ContainerCreating"}})"));
  EXPECT_FALSE(
      has_exit(R"({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}})"));
  EXPECT_FALSE(has_exit(std::string(R"({"terminated": {"exitCode": 143, "message": ")") +
                        kSetupFailed + R"("}})"));
  EXPECT_FALSE(has_exit(R"({"terminated": {"exitCode": 143}})", "storage"));
}

TEST(KubernetesVerdictTest, TheDeadlineOfAJobIsATimeLimitToo) {
  World job;
  job.Job("Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
  EXPECT_EQ(job.Seen().failure->failure_class(), v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_FALSE(job.Seen().exit.has_value());
  EXPECT_EQ(job.Ended(143).Seen().exit->signal(), 15);
}

TEST(KubernetesVerdictTest, ASetupThatTheClusterEndedHasNoExitStatusEither) {
  World world = FailedWorld().Ended(143, "Error", 0, "30", kSetupFailed);
  world.facts().pods[0].conditions.push_back({"DisruptionTarget", true, "DeletionByTaintManager",
                                              "node gone",
                                              world.facts().pods[0].containers[0].finished});
  EXPECT_EQ(world.Seen().failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_FALSE(world.Seen().exit.has_value());
}

TEST(KubernetesVerdictTest, ADisruptionIsTheClustersAndAPreemptionIsNamed) {
  World lost = FailedWorld().Ended(137);
  const auto end = lost.facts().pods[0].containers[0].finished;
  lost.facts().pods[0].conditions.push_back(
      {"DisruptionTarget", true, "DeletionByTaintManager", "node gone", end});
  EXPECT_EQ(lost.Seen().failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(lost.Seen().failure->retriable());
  World preempted = FailedWorld().Ended(143);
  preempted.facts().pods[0].conditions.push_back(
      {"DisruptionTarget", true, "PreemptionByScheduler", "", end});
  EXPECT_EQ(preempted.Seen().failure->failure_class(), v1::FAILURE_CLASS_PREEMPTED);
}

TEST(KubernetesVerdictTest, ARunOnANodeThatDoesNotAnswerSaysWhatEndsItAndNeverEndsByItself) {
  World lost = World().Pod(R"({"phase": "Running"})");
  PodObject& pod = lost.facts().pods[0];
  pod.deletion_time = kNow;
  pod.deletion_grace = absl::Seconds(30);
  EXPECT_THAT(lost.Seen().reason.message(), Not(HasSubstr("kubectl delete node")));
  World evicted = lost;
  evicted.facts().pods[0].conditions.push_back(
      {"DisruptionTarget", true, "DeletionByTaintManager", "node gone", kNow});
  EXPECT_THAT(evicted.Seen().reason.message(), HasSubstr("kubectl delete node node-1"));
  // One that was deleted before its node went.
  lost.facts().now += absl::Hours(100);
  EXPECT_THAT(lost.Seen().reason.message(), HasSubstr("kubectl delete node node-1"));
  EXPECT_EQ(lost.Seen().state, v1::RUN_STATE_FINISHING);
}

TEST(KubernetesVerdictTest, AJobWithoutPodsToAskIsAFaultOfTheCluster) {
  const agents::Observation seen = FailedWorld().Seen();
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(seen.failure->message(), HasSubstr("backoff limit"));
}

TEST(KubernetesVerdictTest, ARunIsAsFarAsItsSlowestPod) {
  World world;
  world.Pod(R"({"phase": "Running"})", "node-1", 0).Pod(R"({"phase": "Pending"})", "node-2", 1);
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_STARTING);
  world.Pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}]})",
            "", 2);
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(world.Seen().reason.message(),
            "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
}

// The words of Volcano 1.10.
TEST(KubernetesVerdictTest, OfAGangThatWaitsThatPodIsToldWhichTheSchedulerHasNoNodeFor) {
  World world;
  world.Pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Schedulable", "message": "Pod t-1/k7m2-42-1-0 can possibly be assigned to node-2"}]})",
            "", 0);
  EXPECT_THAT(world.Seen().reason.message(), HasSubstr("Schedulable: Pod"));
  world.Pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Unschedulable", "message": "pod group is not ready, 2 Pending, 2 minAvailable"}]})",
            "", 1);
  EXPECT_THAT(world.Seen().reason.message(), StartsWith("Unschedulable: pod group is not ready"));
}

TEST(KubernetesVerdictTest, WhatTheSchedulerSaysTwiceIsToldOnce) {
  World world;
  world.Pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Unschedulable",
      "message": "0/2 nodes are available: persistentvolumeclaim \"x\" not found. not found"}]})");
  EXPECT_THAT(world.Seen().reason.message(),
              testing::StartsWith(
                  "Unschedulable: 0/2 nodes are available: persistentvolumeclaim \"x\" not found"
                  "; Muster gives the run up at "));
}

TEST(KubernetesVerdictTest, AnImageWithAWrongNameEndsTheRunAtOnceAndOneThatIsMissingAfterAWhile) {
  const auto waiting = [](const std::string& reason) {
    return R"({"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": ")" +
           reason + R"(", "message": "Back-off pulling image"}}}]})";
  };
  EXPECT_EQ(World().Pod(waiting("InvalidImageName")).Seen().failure->failure_class(),
            v1::FAILURE_CLASS_IMAGE);
  World missing = World().Pod(waiting("ImagePullBackOff"));
  EXPECT_EQ(missing.Seen().state, v1::RUN_STATE_STARTING);
  EXPECT_THAT(missing.Seen().reason.message(), HasSubstr("Back-off pulling image"));
  missing.facts().now += absl::Minutes(10);
  EXPECT_EQ(missing.Seen().state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(missing.Seen().failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST(KubernetesVerdictTest, ASecretThatIsNotThereIsTheConfigurationsAfterAWhile) {
  World world =
      World().Pod(R"({"phase": "Pending"})").Event("FailedMount", "secret \"keys\" not found");
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_STARTING);
  world.facts().now += absl::Minutes(10);
  world.facts().events[0].last_seen = world.facts().now - absl::Minutes(2);  // tried once more
  EXPECT_EQ(world.Seen().failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(world.Seen().failure->message(), HasSubstr("secret \"keys\" not found"));
  EXPECT_EQ(world.Seen().failure->quotes_size(), 0) << "that is said";
}

TEST(KubernetesVerdictTest, ItsPodsAreToldByRankWithWhatKeepsThemFromRunning) {
  World world;
  world
      .Pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
           "reason": "Unschedulable", "message": "0/2 nodes are available.",
           "lastTransitionTime": "2027-01-15T07:59:03Z"}]})",
           "", 2)
      .Pod(R"({"phase": "Running"})", "node-1", 0)
      .Ended(3, "Error", 1);
  const std::vector<v1::Replica> replicas = world.Seen().replicas;
  ASSERT_EQ(replicas.size(), 3u);
  EXPECT_EQ(replicas[0].name(), "k7m2-42-1-0");
  EXPECT_EQ(replicas[0].node(), "node-1");
  EXPECT_EQ(replicas[0].phase(), "Running");
  EXPECT_FALSE(replicas[0].has_issue());
  EXPECT_EQ(replicas[1].rank(), 1u);
  EXPECT_EQ(replicas[1].issue().reason(), "Error");
  EXPECT_EQ(replicas[1].issue().message(), "container main ended with exit code 3");
  EXPECT_EQ(replicas[2].node(), "");
  EXPECT_EQ(replicas[2].issue().reason(), "Unschedulable");
  EXPECT_EQ(replicas[2].issue().message(), "0/2 nodes are available.");
  EXPECT_EQ(replicas[2].issue().since().seconds(), absl::ToUnixSeconds(kNow) - 57);
}

TEST(KubernetesVerdictTest, OfManyPodsTheFirstRanksAreTold) {
  World world;
  for (int index = 300; index-- > 0;) world.Pod(R"({"phase": "Running"})", "node-1", index);
  const std::vector<v1::Replica> replicas = world.Seen().replicas;
  ASSERT_EQ(replicas.size(), agents::kMaxReplicas);
  EXPECT_EQ(replicas.front().rank(), 0u);
  EXPECT_EQ(replicas.back().rank(), agents::kMaxReplicas - 1);
}

TEST(KubernetesVerdictTest, AHeldRunAndASuspendedOneSayWhoHoldsThem) {
  World world;
  world.facts().job->is_suspended = true;
  EXPECT_EQ(world.Seen().reason.message(), "suspended by others");
  world.facts().queue_wait = "waits in queue team (Kueue)";
  EXPECT_EQ(world.Seen().reason.message(), "waits in queue team (Kueue)");
  world.facts().job->is_held = true;
  EXPECT_THAT(world.Seen().reason.message(), HasSubstr("held"));
  world.facts().job->is_held = false;
  world.facts().job->queue = "team";
  EXPECT_EQ(world.Seen().reason.message(), "waits in queue team (Kueue)") << "Kueue may let it go";
  world.facts().job->queue = kHeldQueue;
  EXPECT_THAT(world.Seen().reason.message(), HasSubstr("held"));
}

TEST(KubernetesVerdictTest,
     ARunIsNotHeldBeforeItsPodsAreGoneForOneMayHaveBegunOnANodeThatIsSilent) {
  World world;
  world.facts().job->is_suspended = true;
  world.facts().job->is_held = true;
  world.Pod(R"({"phase": "Pending"})");
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(world.Seen().reason.message(), kBeingHeldWords);
  EXPECT_NE(world.Seen().reason.code(), v1::STATE_REASON_CODE_HELD);
  world.facts().pods.clear();
  EXPECT_EQ(world.Seen().reason.code(), v1::STATE_REASON_CODE_HELD);
}

TEST(KubernetesVerdictTest, WhatKueueHasGivenUpEndsInItsWords) {
  World world;
  world.facts().job->is_suspended = true;
  world.facts().job->queue = "team";
  world.facts().queue_wait = "waits in queue team (Kueue): requeued too often";
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_PENDING);
  world.facts().queue_has_given_up = true;
  world.Event("Failed", "registry.example/missing:1 not found");
  const agents::Observation seen = world.Seen();
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(seen.failure.has_value());
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_FALSE(seen.failure->retriable());
  EXPECT_THAT(seen.failure->message(), HasSubstr("requeued too often"));
  EXPECT_THAT(seen.failure->ShortDebugString(), HasSubstr("missing:1 not found"));
}

TEST(KubernetesVerdictTest, ADeletedJobIsCanceledUnlessItHadEnded) {
  World world;
  world.facts().deleted_job = *std::exchange(world.facts().job, std::nullopt);
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(world.Seen().evidence.detail(), HasSubstr("not by Muster"));
  world.facts().deleted_job->conditions.push_back({"Complete", true, "", "", kNow});
  EXPECT_EQ(world.Seen().state, v1::RUN_STATE_SUCCEEDED);
}

TEST(KubernetesVerdictTest, AJobThatMusterGaveUpWasNotDeletedByOthers) {
  World world;
  world.facts().deleted_job = *std::exchange(world.facts().job, std::nullopt);
  EXPECT_EQ(world.Seen().reason.message(), "deleted on the cluster, not by Muster");
  world.facts().given_up = true;
  EXPECT_THAT(world.Seen().evidence.detail(), HasSubstr("because Muster had given it up"));
  EXPECT_EQ(world.Seen().reason.message(), "");
}

TEST(KubernetesVerdictTest, ACodeThatTheKubeletMadeUpIsNotToldAsTheContainers) {
  World world;
  world.Pod(R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {
      "exitCode": 137, "reason": "ContainerStatusUnknown", "message": "could not be located"}}}]})");
  const v1::ReadinessIssue issue = world.Seen().replicas.at(0).issue();
  EXPECT_THAT(issue.message(), Not(HasSubstr("137")));
  EXPECT_THAT(issue.message(), HasSubstr("had not started"));
}

std::string Waiting(const std::string& reason, const std::string& message) {
  const Json waiting = {{"reason", reason}, {"message", message}};
  return Json({{"phase", "Pending"},
               {"containerStatuses", {{{"name", "main"}, {"state", {{"waiting", waiting}}}}}}})
      .dump();
}

TEST(KubernetesVerdictTest, WhileAnImageCannotBeHadTheReasonSaysUntilWhenAndStaysTheSame) {
  const std::string why = "failed to pull: registry.test/no:1: not found";
  const v1::StateReason tried = World().Pod(Waiting("ErrImagePull", why)).Seen().reason;
  EXPECT_EQ(tried.code(), v1::STATE_REASON_CODE_CANNOT_START);
  EXPECT_EQ(tried.message(), "ErrImagePull: " + why + "; Muster gives the run up at 08:04:00 UTC");
  EXPECT_THAT(tried.remedy(),
              StartsWith("Check the image's name, and that the namespace has a pull secret for its "
                         "registry."));
  EXPECT_EQ(World()
                .Pod(Waiting("ImagePullBackOff",
                             "Back-off pulling image \"registry.test/no:1\": ErrImagePull: " + why))
                .Seen()
                .reason.DebugString(),
            tried.DebugString());
}

TEST(KubernetesVerdictTest, ARegistryThatIsAwayOrLimitsIsTheClustersDoingAndAWrongImageTheJobs) {
  const auto is_retriable = [](const std::string& words, const std::string& reason) {
    World world = World().Pod(Waiting(reason, words));
    world.facts().now += absl::Minutes(10);
    const agents::Observation seen = world.Seen();
    EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_IMAGE) << words;
    return seen.failure->retriable();
  };
  for (const char* words :
       {"toomanyrequests: You have reached your pull rate limit", "pull QPS exceeded",
        "dial tcp 10.0.0.1:443: i/o timeout", "dial tcp 10.0.0.1:443: connect: connection refused",
        "unexpected status from HEAD request: 503 Service Unavailable"})
    EXPECT_TRUE(is_retriable(words, "ErrImagePull")) << words;
  EXPECT_TRUE(is_retriable("", "RegistryUnavailable"));
  for (const char* words : {"registry.test/no:1: not found", "401 Unauthorized",
                            "pull access denied", "dial tcp: lookup registry.tset: no such host"})
    EXPECT_FALSE(is_retriable(words, "ImagePullBackOff")) << words;
}

TEST(KubernetesVerdictTest, OfAJobThatWasNeverSeenNothingIsSaid) {
  World world;
  world.facts().job.reset();
  EXPECT_FALSE(Judge(world.facts(), Patience()).has_value());
}

TEST(KubernetesVerdictTest, AFailureIsNotToldBeforeItsPodsHaveEnded) {
  EXPECT_EQ(World().Job("FailureTarget", "BackoffLimitExceeded").Ended(3).Seen().state,
            v1::RUN_STATE_FINISHING);
}

// Side-cars that the cluster puts into pods are ended as soon as main has ended.
TEST(KubernetesVerdictTest, ASideCarThatIsEndedWithTheProgramIsNotWhatFailed) {
  const agents::Observation seen = FailedWorld()
                                       .Pod(R"({"phase": "Failed",
    "initContainerStatuses": [{"name": "proxy", "state": {"terminated": {"exitCode": 143,
      "startedAt": "2027-01-15T07:59:09Z", "finishedAt": "2027-01-15T07:59:30Z"}}}],
    "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3,
      "startedAt": "2027-01-15T07:59:10Z", "finishedAt": "2027-01-15T07:59:30Z"}}}]})")
                                       .Seen();
  EXPECT_EQ(seen.exit->code(), 3);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
}

}  // namespace
}  // namespace muster::kubernetes
