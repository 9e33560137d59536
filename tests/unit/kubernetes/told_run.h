// A run whose Job, pods and Events are told by a store, as watches would tell them.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_TOLD_RUN_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_TOLD_RUN_H_

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "agents/kubernetes/run_store.h"
#include "agents/kubernetes/verdict/verdict.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {

inline constexpr char kRun[] = "k7m2-42-1";

inline absl::Time At(const char* clock) {
  absl::Time time;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-11-21T" + std::string(clock) + "Z", &time,
                              nullptr));
  return time;
}

class ToldRunTest : public testing::Test {
 protected:
  ToldRunTest() { store_.Want(kRun); }

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
  // Has both conditions with which a Job ends that has failed.
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
  agents::Observation See(const Json& job, const char* clock = "15:02:40",
                          v1::RunState last = v1::RUN_STATE_UNSPECIFIED) {
    store_.jobs()->OnChange(TrimObject(job));
    return SeeNow(clock, last);
  }
  agents::Observation SeeNow(const char* clock = "15:02:40",
                             v1::RunState last = v1::RUN_STATE_UNSPECIFIED) {
    RunFacts facts = store_.Facts(kRun);
    facts.now = At(clock);
    facts.last_state = last;
    facts.unbound_claims = unbound_claims_;
    return Judge(facts, Patience()).value_or(agents::Observation());
  }

  std::vector<UnboundClaim> unbound_claims_;
  RunStore store_{[](const PodObject&) {}, absl::Now};
};

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_TOLD_RUN_H_
