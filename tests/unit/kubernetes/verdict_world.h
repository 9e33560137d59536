// A run's objects as the API server has them, to be judged.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_VERDICT_WORLD_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_VERDICT_WORLD_H_

#include <string>

#include "agents/kubernetes/verdict/verdict.h"
#include "gtest/gtest.h"

namespace muster::kubernetes::verdict_world {

inline const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
// The start script's record, with the uid of World's Job.
inline constexpr char kSetupFailed[] = "muster-end/1 seal=j phase=setup problem=failed";

// Objects as the API server of 1.36 writes them, shortened.
class World {
 public:
  World() {
    facts_.run_key = "k7m2-42-1";
    facts_.now = kNow;
    facts_.job = ParseJob(Json::parse(R"({
      "metadata": {"namespace": "lab", "name": "k7m2-42-1", "uid": "j", "resourceVersion": "7",
                   "labels": {"muster.dev/run-key": "k7m2-42-1"}},
      "status": {"startTime": "2027-01-15T07:59:00Z"}})"));
  }
  World& Job(const std::string& type, const std::string& reason = "",
             const std::string& message = "") {
    facts_.job->conditions.push_back({type, true, reason, message, kNow});
    return *this;
  }
  // `status` is the pod's; a node is given if it has one.
  World& Pod(const std::string& status, const std::string& node = "node-1", int index = 0) {
    Json pod = {
        {"metadata",
         {{"name", "k7m2-42-1-" + std::to_string(index)},
          {"uid", "p" + std::to_string(index)},
          {"resourceVersion", "9"},
          {"creationTimestamp", "2027-01-15T07:59:00Z"},
          {"ownerReferences", Json::array({{{"kind", "Job"}, {"uid", "j"}}})},
          {"annotations", {{"batch.kubernetes.io/job-completion-index", std::to_string(index)}}}}},
        {"spec", Json::object()},
        {"status", Json::parse(status)}};
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    facts_.pods.push_back(ParsePod(pod));
    facts_.pods.back().waiting_since = facts_.pods.back().created;
    return *this;
  }
  World& Ended(int code, const std::string& reason = "Error", int index = 0,
               const std::string& second = "30", const std::string& message = "") {
    return Pod(
        R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {
        "exitCode": )" +
            std::to_string(code) + R"(, "reason": ")" + reason + R"(", "message": ")" + message +
            R"(", "startedAt": "2027-01-15T07:59:10Z", "finishedAt": "2027-01-15T07:59:)" + second +
            R"(Z"}}}]})",
        "node-1", index);
  }
  World& Event(const std::string& reason, const std::string& message) {
    facts_.events.push_back({"e", "k7m2-42-1-0", "p0", true, reason, message, kNow, kNow});
    return *this;
  }
  RunFacts& facts() { return facts_; }
  agents::Observation Seen() const {
    const auto seen = Judge(facts_, Patience());
    EXPECT_TRUE(seen.has_value());
    return seen.value_or(agents::Observation());
  }

 private:
  RunFacts facts_;
};

inline World FailedWorld() {
  return World().Job("Failed", "BackoffLimitExceeded",
                     "Job has reached the specified backoff limit");
}

}  // namespace muster::kubernetes::verdict_world

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_VERDICT_WORLD_H_
