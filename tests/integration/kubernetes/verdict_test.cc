// Tests Judge on real Jobs. They are all made at first and run beside each other, since each of
// them takes its seconds.
#include "agents/kubernetes/verdict/verdict.h"

#include <map>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/manifest/pod_template.h"
#include "agents/kubernetes/run_store.h"
#include "contract/states.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

using agents::Observation;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr Patience kShort = {.start_grace = absl::Seconds(3)};
constexpr char kTrap[] = "trap 'exit 143' TERM; sleep 1000 & wait";

// A Job as the backend makes it, except for what it runs: Kubernetes would rewrite "$$" in a
// script.
Json MakeJob(const std::string& run_key, const std::string& script, int nodes = 1) {
  const Json labels = {{kManagedByLabel, kManagedByMuster}, {kRunLabel, run_key}};
  Json job = Json::parse(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {
    "suspend": true, "backoffLimit": 0, "podReplacementPolicy": "Failed",
    "ttlSecondsAfterFinished": 604800,
    "podFailurePolicy": {"rules": [
      {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
      {"action": "FailJob",
       "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [0]}}]},
    "template": {"metadata": {}, "spec": {
      "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
      "automountServiceAccountToken": false,
      "containers": [{"name": "main", "image": "debian:12", "resources": {
        "requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}}]}}}})");
  job["metadata"] = {{"name", run_key}, {"labels", labels}};
  Json& spec = job["spec"];
  spec["completions"] = spec["parallelism"] = nodes;
  spec["completionMode"] = nodes > 1 ? "Indexed" : "NonIndexed";
  spec["template"]["metadata"]["labels"] = labels;
  spec["template"]["spec"]["containers"][0]["command"] = {"/bin/sh", "-c", script};
  return job;
}

Json& PodOf(Json& job) { return job["spec"]["template"]["spec"]; }
Json& MainOf(Json& job) { return PodOf(job)["containers"][0]; }

// Runs of one namespace, as the backend sees them.
class Runs {
 public:
  explicit Runs(TestCluster& cluster)
      : cluster_(cluster),
        name_space_(cluster.MakeNamespace()),
        jobs_({"/apis/batch/v1/namespaces/" + name_space_ + "/jobs", "", ""}, &cluster.api(),
              store_.jobs()),
        pods_({"/api/v1/namespaces/" + name_space_ + "/pods", "", ""}, &cluster.api(),
              store_.pods()),
        events_({"/api/v1/namespaces/" + name_space_ + "/events", "", ""}, &cluster.api(),
                store_.events()) {}

  std::string JobPath(const std::string& run_key) const {
    return "/apis/batch/v1/namespaces/" + name_space_ + "/jobs/" + run_key;
  }
  std::string CorePath(const std::string& kind) const {
    return "/api/v1/namespaces/" + name_space_ + "/" + kind;
  }

  void Submit(const Json& job) {
    const std::string key = TextAt(job, "metadata/name");
    store_.Want(key);
    cluster_.MustDo("POST", JobPath(""), job);
    cluster_.MustDo("PATCH", JobPath(key), {{"spec", {{"suspend", false}}}});
    // The backend asks where its watch of Jobs is behind that of pods; Judge alone does not.
    WaitFor("the watch to tell that the Job was let go", [&] {
      const std::optional<JobObject> known = store_.FindJob(key);
      return known.has_value() && !known->is_suspended;
    });
  }
  void Delete(const std::string& run_key, const char* policy) {
    cluster_.MustDo("DELETE", JobPath(run_key), {{"propagationPolicy", policy}});
  }

  Observation See(const std::string& run_key, absl::Duration later = absl::ZeroDuration()) {
    RunFacts facts = store_.Facts(run_key);
    facts.now = absl::Now() + later;
    v1::RunState& last = states_.try_emplace(run_key, v1::RUN_STATE_PENDING).first->second;
    facts.last_state = last;
    Observation seen = Judge(facts, kShort).value_or(Observation());
    if (seen.state == v1::RUN_STATE_UNSPECIFIED || seen.state == last) return seen;
    EXPECT_TRUE(contract::IsLegal(last, seen.state))
        << run_key << ": " << contract::Name(last) << " to " << contract::Name(seen.state);
    last = seen.state;
    return seen;
  }
  Observation Await(const std::string& run_key, v1::RunState state) {
    Observation seen;
    WaitFor(run_key + " to be " + std::string(contract::Name(state)), [&] {
      seen = See(run_key);
      return seen.state == state;
    });
    return seen;
  }
  // Awaits the reason of a run that waits.
  Observation AwaitReason(const std::string& run_key, const std::string& words) {
    Observation seen;
    WaitFor(run_key + " to say: " + words, [&] {
      seen = See(run_key);
      return seen.reason.message().find(words) != std::string::npos;
    });
    return seen;
  }

  RunStore& store() { return store_; }

 private:
  TestCluster& cluster_;
  const std::string name_space_;
  std::map<std::string, v1::RunState> states_;
  RunStore store_{[](const PodObject&) {}, absl::Now};
  ObjectWatch jobs_, pods_, events_;
};

// The numbers of the runs' jobs.
std::string Key(int number) { return "k7m2-" + std::to_string(number) + "-1"; }
enum Number : int {
  kSuccess = 1,
  kExit3,
  kSignal9,
  kMemory,
  kNoImage,
  kPrivateImage,
  kNeverFits,
  kNoClaim,
  kNoSecret,
  kNoKey,
  kNoVariable,
  kOverdue,
  kOneOfThree,
  kNotStarted,
  kSetup,
  kForged,
  kInit,
  kCode126,
  kCode127,
  kCode143,
  kDeletedPod,
  kDeletedJob,
  kRefused,
};

class KubernetesVerdictTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    runs_ = new Runs(SharedCluster());
    SharedCluster().MustDo("POST", runs_->CorePath("secrets"),
                           {{"metadata", {{"name", "some"}}}, {"stringData", {{"a", "b"}}}});
    SubmitEnding();
    SubmitStuck();
  }
  static void TearDownTestSuite() { delete std::exchange(runs_, nullptr); }

  static void Submit(int number, const std::string& script, int nodes = 1) {
    runs_->Submit(MakeJob(Key(number), script, nodes));
  }
  static void SubmitEnding() {
    Submit(kSuccess, "exit 0");
    Submit(kExit3, "exit 3");
    Submit(kSignal9, "sleep 100 & kill -9 $!; wait $!; exit $?");
    Submit(kMemory, "exec python3 -c 'import os; x = os.urandom(300 << 20)'");
    Json overdue = MakeJob(Key(kOverdue), kTrap, 2);
    PodOf(overdue)["activeDeadlineSeconds"] = 2;
    runs_->Submit(overdue);
    Submit(kOneOfThree, std::string("[ $JOB_COMPLETION_INDEX = 1 ] && sleep 1 && exit 5; ") + kTrap,
           3);
    const std::string last_words = "> /dev/termination-log; exit 127";
    const auto record = [&](const std::string& seal, const std::string& words) {
      return "printf 'muster-end/1 seal=%s " + words + "\\n' \"" + seal + "\" " + last_words;
    };
    SubmitSealed(kNotStarted, record("$MUSTER_END_SEAL", "phase=command problem=start"));
    SubmitSealed(kSetup, record("$MUSTER_END_SEAL", "phase=setup problem=failed"));
    SubmitSealed(kForged, record(Key(kForged), "phase=setup problem=failed"));
    Json init = MakeJob(Key(kInit), "exit 0");
    PodOf(init)["initContainers"] = Json::array({MainOf(init)});
    PodOf(init)["initContainers"][0]["name"] = "prepare";
    PodOf(init)["initContainers"][0]["command"][2] = "exit 9";
    runs_->Submit(init);
    Submit(kCode126, "exit 126");
    Submit(kCode127, "exit 127");
    Submit(kCode143, "exit 143");
    Submit(kDeletedPod, kTrap, 2);
    Submit(kDeletedJob, kTrap);
  }
  // The container's script knows the seal of its records, as in the backend.
  static void SubmitSealed(int number, const std::string& script) {
    Json job = MakeJob(Key(number), script);
    MainOf(job)["env"] = Json::array({MakeSealVariable()});
    runs_->Submit(job);
  }
  static void SubmitStuck() {
    Json image = MakeJob(Key(kNoImage), "exit 0");
    MainOf(image)["image"] = "registry.example/missing:1";
    runs_->Submit(image);
    image = MakeJob(Key(kPrivateImage), "exit 0");
    MainOf(image)["image"] = "registry.example/private:1";
    runs_->Submit(image);
    Json never = MakeJob(Key(kNeverFits), "exit 0");
    PodOf(never)["nodeSelector"] = {{"no", "such"}};
    runs_->Submit(never);
    SubmitWithVolume(kNoClaim, {{"persistentVolumeClaim", {{"claimName", "missing"}}}});
    SubmitWithVolume(kNoSecret, {{"secret", {{"secretName", "missing"}}}});
    SubmitWithVolume(
        kNoKey,
        {{"secret",
          {{"secretName", "some"}, {"items", {{{"key", "missing"}, {"path", "missing"}}}}}}});
    Json variable = MakeJob(Key(kNoVariable), "exit 0");
    MainOf(variable)["env"] = {
        {{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "some"}, {"key", "missing"}}}}}}};
    runs_->Submit(variable);
    Json refused = MakeJob(Key(kRefused), "exit 0");
    PodOf(refused)["serviceAccountName"] = "missing";
    runs_->Submit(refused);
  }
  static void SubmitWithVolume(int number, Json volume) {
    Json job = MakeJob(Key(number), "exit 0");
    volume["name"] = "data";
    PodOf(job)["volumes"] = Json::array({std::move(volume)});
    MainOf(job)["volumeMounts"] = {{{"name", "data"}, {"mountPath", "/data"}}};
    runs_->Submit(job);
  }
  static Observation Fails(int number) { return runs_->Await(Key(number), v1::RUN_STATE_FAILED); }

  static Runs* runs_;  // of the suite; the main thread's
};
Runs* KubernetesVerdictTest::runs_ = nullptr;

#define EXPECT_CLASS(seen, name)                                       \
  EXPECT_EQ((seen).failure->failure_class(), v1::FAILURE_CLASS_##name) \
      << (seen).failure->DebugString()

TEST_F(KubernetesVerdictTest, ASuccessHasNoFailureAndItsTimes) {
  const Observation seen = runs_->Await(Key(kSuccess), v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.exit->code(), 0);
  EXPECT_FALSE(seen.failure.has_value());
  EXPECT_TRUE(seen.start_time.has_value());
  EXPECT_TRUE(seen.end_time.has_value());
  ASSERT_EQ(seen.replicas.size(), 1);
  EXPECT_EQ(seen.replicas[0].phase(), "Succeeded");
  EXPECT_FALSE(seen.replicas[0].has_issue());
}

TEST_F(KubernetesVerdictTest, AnExitCodeIsTheProgramsAndADeathBySignalIsNone) {
  const Observation exit = Fails(kExit3);
  EXPECT_CLASS(exit, PROGRAM);
  EXPECT_EQ(exit.exit->code(), 3);
  EXPECT_FALSE(exit.failure->retriable());
  const Observation killed = Fails(kSignal9);
  EXPECT_CLASS(killed, PROGRAM);
  EXPECT_EQ(killed.exit->signal(), 9);
  EXPECT_THAT(killed.failure->remedy(), HasSubstr("run out of memory"));
}

TEST_F(KubernetesVerdictTest, MemoryThatRanOutIsNamed) {
  const Observation seen = Fails(kMemory);
  EXPECT_CLASS(seen, OOM);
  EXPECT_EQ(seen.exit->signal(), 9);
}

TEST_F(KubernetesVerdictTest, CodesOfAShellAreToldApartByTheirCause) {
  EXPECT_CLASS(Fails(kCode126), PROGRAM);
  EXPECT_THAT(Fails(kCode127).failure->remedy(), HasSubstr("no command of that name"));
  EXPECT_CLASS(Fails(kCode143), PROGRAM);
  EXPECT_CLASS(Fails(kNotStarted), CONFIG);
  EXPECT_THAT(Fails(kSetup).failure->message(), HasSubstr("The setup script ended with exit code"));
  EXPECT_CLASS(Fails(kForged), PROGRAM);
  const Observation init = Fails(kInit);
  EXPECT_CLASS(init, CONFIG);
  EXPECT_FALSE(init.exit.has_value()) << "the command never ran";
}

TEST_F(KubernetesVerdictTest, ATimeLimitIsOneThoughTheJobSaysAnotherReason) {
  const Observation seen = Fails(kOverdue);
  EXPECT_CLASS(seen, TIMEOUT);
  EXPECT_FALSE(seen.failure->retriable());
  // The race of its controller decides between the two; neither names the time limit.
  EXPECT_THAT(seen.evidence.detail(),
              AnyOf(HasSubstr("exit code 143"), HasSubstr("BackoffLimitExceeded")));
}

TEST_F(KubernetesVerdictTest, OfThreeRanksTheOneThatFailedIsNamedAndTheOthersEnd) {
  const Observation seen = Fails(kOneOfThree);
  EXPECT_CLASS(seen, PROGRAM);
  EXPECT_EQ(seen.exit->code(), 5);
  EXPECT_EQ(seen.exit->rank(), 1);
  ASSERT_EQ(seen.replicas.size(), 3);
  for (const v1::Replica& replica : seen.replicas) EXPECT_EQ(replica.phase(), "Failed");
}

TEST_F(KubernetesVerdictTest, AnImageThatCannotBeHadEndsTheRunWithTheRegistrysWords) {
  const Observation missing = Fails(kNoImage);
  EXPECT_CLASS(missing, IMAGE);
  EXPECT_THAT(missing.failure->message(), HasSubstr("registry.example/missing:1: not found"));
  const Observation refused = Fails(kPrivateImage);
  EXPECT_CLASS(refused, IMAGE);
  EXPECT_THAT(refused.failure->message(), HasSubstr("401 Unauthorized"));
  EXPECT_THAT(refused.failure->remedy(), HasSubstr("pull secret"));
}

TEST_F(KubernetesVerdictTest, WhatTheJobNamesAndIsNotThereEndsTheRun) {
  for (const int number : {kNoClaim, kNoSecret, kNoKey, kNoVariable, kRefused}) {
    const Observation seen = Fails(number);
    EXPECT_CLASS(seen, CONFIG);
    EXPECT_THAT(seen.failure->message(), HasSubstr("missing"));
  }
}

TEST_F(KubernetesVerdictTest, WhatFitsOnNoNodeWaitsAndSaysWhatIsLacking) {
  const Observation seen = runs_->AwaitReason(Key(kNeverFits), "Unschedulable");
  EXPECT_THAT(seen.reason.message(), HasSubstr("didn't match Pod's node affinity/selector"));
  ASSERT_EQ(seen.replicas.size(), 1);
  EXPECT_EQ(seen.replicas[0].issue().reason(), "Unschedulable");
  EXPECT_TRUE(seen.replicas[0].issue().has_since());
  EXPECT_EQ(runs_->See(Key(kNeverFits), absl::Hours(1)).state, v1::RUN_STATE_PENDING);
}

TEST_F(KubernetesVerdictTest, AQuotaThatIsUsedUpIsWhyARunWaits) {
  Runs runs(SharedCluster());
  SharedCluster().MustDo(
      "POST", runs.CorePath("resourcequotas"),
      {{"metadata", {{"name", "small"}}}, {"spec", {{"hard", {{"limits.memory", "32Mi"}}}}}});
  runs.Submit(MakeJob(Key(1), "exit 0"));
  const Observation seen = runs.AwaitReason(Key(1), "exceeded quota: small");
  EXPECT_EQ(seen.state, v1::RUN_STATE_PENDING);
  EXPECT_THAT(seen.reason.message(), HasSubstr("pods \"" + Key(1) + "-...\" is forbidden"))
      << "without the name that every try makes anew";
  EXPECT_EQ(runs.See(Key(1), absl::Hours(1)).state, v1::RUN_STATE_PENDING);
}

TEST_F(KubernetesVerdictTest, APodThatOthersDeleteIsNotTheProgramsFailure) {
  const std::string key = Key(kDeletedPod);
  const Observation running = runs_->Await(key, v1::RUN_STATE_RUNNING);
  SharedCluster().MustDo("DELETE", runs_->CorePath("pods/") + running.replicas[0].name());
  const Observation seen = Fails(kDeletedPod);
  EXPECT_CLASS(seen, INFRA);
  EXPECT_TRUE(seen.failure->retriable());
  EXPECT_THAT(seen.failure->message(),
              AllOf(HasSubstr("by others, not by Muster: its pod was deleted"),
                    HasSubstr(running.replicas[0].name())));
}

TEST_F(KubernetesVerdictTest, AJobThatOthersDeleteIsCanceledOnceItsPodsHaveEnded) {
  const std::string key = Key(kDeletedJob);
  runs_->Await(key, v1::RUN_STATE_RUNNING);
  runs_->Delete(key, "Background");
  const Observation seen = runs_->Await(key, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(seen.evidence.detail(), HasSubstr("not by Muster"));
  const auto pods = runs_->store().Facts(key).pods;
  EXPECT_TRUE(pods.empty() || pods[0].HasEnded());
}

TEST_F(KubernetesVerdictTest, WhatEndedBeforeItWasDeletedKeepsItsOwnEnd) {
  TestCluster& cluster = SharedCluster();
  Runs runs(cluster);
  runs.Submit(MakeJob(Key(1), "sleep 5"));
  runs.Submit(MakeJob(Key(2), "sleep 5; exit 3"));
  runs.Await(Key(1), v1::RUN_STATE_RUNNING);
  runs.Await(Key(2), v1::RUN_STATE_RUNNING);
  // Nobody is left to say how the Jobs ended.
  cluster.Stop("kube-controller-manager");
  const auto ended_a_second_ago = [&](const std::string& key) {
    const std::vector<PodObject> pods = runs.store().Facts(key).pods;
    return pods.size() == 1 && pods[0].HasEnded() &&
           absl::Now() > *pods[0].containers[0].finished + absl::Seconds(2);
  };
  WaitFor("both to have ended",
          [&] { return ended_a_second_ago(Key(1)) && ended_a_second_ago(Key(2)); });
  runs.Delete(Key(1), "Foreground");
  runs.Delete(Key(2), "Foreground");
  cluster.Continue("kube-controller-manager");
  runs.Await(Key(1), v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(runs.Await(Key(2), v1::RUN_STATE_FAILED).exit->code(), 3);
}

TEST_F(KubernetesVerdictTest, APodThatAnotherOnePushesOutIsPreempted) {
  TestCluster& cluster = SharedCluster();
  Runs runs(cluster);
  cluster.MustDo("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                 {{"metadata", {{"name", "verdict-urgent"}}}, {"value", 1000}});
  const auto all_gpus = [](int number, const char* script) {
    Json job = MakeJob(Key(number), script);
    for (const char* part : {"requests", "limits"})
      MainOf(job)["resources"][part]["nvidia.com/gpu"] = "8";
    PodOf(job)["nodeSelector"] = {{"kubernetes.io/hostname", "node-1"}};
    return job;
  };
  runs.Submit(all_gpus(1, kTrap));
  runs.Await(Key(1), v1::RUN_STATE_RUNNING);
  Json urgent = all_gpus(2, "exit 0");
  PodOf(urgent)["priorityClassName"] = "verdict-urgent";
  runs.Submit(urgent);
  const Observation seen = runs.Await(Key(1), v1::RUN_STATE_FAILED);
  EXPECT_CLASS(seen, PREEMPTED);
  EXPECT_THAT(seen.failure->message(), HasSubstr("preempting to accommodate a higher priority"));
  runs.Await(Key(2), v1::RUN_STATE_SUCCEEDED);
}

TEST_F(KubernetesVerdictTest, ARunOnANodeThatDoesNotAnswerHasNotEndedBeforeItsPodHas) {
  TestCluster& cluster = SharedCluster();
  Runs runs(cluster);
  Json job = MakeJob(Key(1), kTrap);
  PodOf(job)["nodeName"] = "node-2";
  runs.Submit(job);
  runs.Await(Key(1), v1::RUN_STATE_RUNNING);
  cluster.Stop("node-2");
  const Observation finishing = runs.Await(Key(1), v1::RUN_STATE_FINISHING);
  EXPECT_THAT(finishing.reason.message(),
              AllOf(HasSubstr("on node-2"), HasSubstr("DeletionByTaintManager"),
                    HasSubstr("kubectl delete node node-2")));
  EXPECT_FALSE(finishing.end_time.has_value());
  EXPECT_EQ(runs.See(Key(1), absl::Hours(1)).state, v1::RUN_STATE_FINISHING);
  cluster.Continue("node-2");
  const Observation seen = runs.Await(Key(1), v1::RUN_STATE_FAILED);
  EXPECT_CLASS(seen, INFRA);
  EXPECT_TRUE(seen.failure->retriable());
  EXPECT_THAT(seen.failure->message(), HasSubstr("on node-2"));
  WaitFor("node-2 to be ready", [&] {
    const Json node = cluster.MustDo("GET", "/api/v1/nodes/node-2");
    for (const Json& condition : At(node, "status/conditions")) {
      if (TextAt(condition, "type") == "Ready") return TextAt(condition, "status") == "True";
    }
    return false;
  });
}

}  // namespace
}  // namespace muster::kubernetes
