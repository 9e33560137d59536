// A cluster of a few Jobs that a test scripts, and a backend for it.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_SCRIPTED_CLUSTER_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_SCRIPTED_CLUSTER_H_

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agents/kubernetes/backend.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {

class ScriptedClusterTest : public testing::Test {
 protected:
  using Answerer = std::function<std::optional<ScriptedReply>(const ScriptedRequest&)>;

  // Answers requests with the help of a test's locals: it is asked even before answer_first_ as
  // long as this lives, and nobody asks any more when they go. Ends the backend, too.
  class [[nodiscard]] Meanwhile {
   public:
    Meanwhile(ScriptedClusterTest* test, Answerer answer) : test_(test) {
      test_->Set([&] { test_->answer_meanwhile_ = std::move(answer); });
    }
    ~Meanwhile() {
      test_->Set([this] { test_->answer_meanwhile_ = nullptr; });
      test_->backend_.reset();
    }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

   private:
    ScriptedClusterTest* const test_;
  };

  // Stops before the members go of the fixture that answers.
  void TearDown() override {
    Set([this] { answer_first_ = nullptr; });
    backend_.reset();
  }

  static agents::RunHandle Handle(const std::string& run_key) {
    agents::RunHandle run;
    run.run_key = run_key;
    return run;
  }
  static Json MakeJob(const std::string& run_key) {
    return {{"metadata",
             {{"name", run_key},
              {"namespace", "lab"},
              {"uid", "u-" + run_key},
              {"resourceVersion", "5"},
              {"creationTimestamp", "2026-01-01T00:00:00Z"},
              {"labels", {{kRunLabel, run_key}}},
              {"annotations", {{kLaunchAnnotation, kLaunchComplete}}}}},
            {"spec", {{"ttlSecondsAfterFinished", 604800}, {"completions", 1}}}};
  }
  static Json EndedJob(const std::string& run_key) {
    Json job = MakeJob(run_key);
    job["metadata"]["annotations"][kTimeToLiveAnnotation] = "60";
    job["status"]["conditions"] = {
        {{"type", "Complete"}, {"status", "True"}, {"lastTransitionTime", "2026-01-01T00:01:00Z"}}};
    return job;
  }

  // Starts an agent with these runs in its journal; the one before it was killed.
  void Start(const std::vector<std::string>& run_keys) {
    std::vector<agents::RunHandle> runs;
    for (const std::string& run_key : run_keys) runs.push_back(Handle(run_key));
    StartWith(runs);
  }
  void StartWith(const std::vector<agents::RunHandle>& runs) {
    Endpoint endpoint;
    endpoint.server = server_.url();
    endpoint.name_space = "lab";
    backend_.reset();
    backend_.emplace(config_, endpoint, directory_ / "state");
    ASSERT_TRUE(backend_->Probe().ok());
    ASSERT_TRUE(backend_->Adopt(runs).ok());
  }
  agents::ObserveOutcome Observe(const std::string& run_key) {
    return backend_->Observe({Handle(run_key)});
  }

  // Runs a change, or a look, of the test under the lock once there is a backend: the server has
  // threads.
  template <typename Change>
  void Set(const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
  }
  // Returns "PATCH PATH BODY" and so on of what is no GET, since the last call.
  std::vector<std::string> TakeChanges() {
    const std::lock_guard lock(mutex_);
    return std::exchange(changes_, {});
  }
  std::vector<std::string> AwaitChange(const std::string& words) { return AwaitChanges({words}); }
  // Returns the changes until there has been one with each of these words.
  std::vector<std::string> AwaitChanges(const std::vector<std::string>& words) {
    std::vector<std::string> changes;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    const auto has_come = [&](const std::string& word) {
      return std::ranges::any_of(changes, [&](const std::string& change) {
        return change.find(word) != std::string::npos;
      });
    };
    while (!std::ranges::all_of(words, has_come) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      std::ranges::move(TakeChanges(), std::back_inserter(changes));
    }
    return changes;
  }

  // Answers before all else, if it has something to say. It holds copies and the fixture, and
  // nothing of a test's body: that goes before the server does.
  Answerer answer_first_;
  KubernetesConfig config_;
  std::string identity_ = "cluster-1";
  std::string date_;  // the server's time, as in the header Date; empty: it does not tell
  Json jobs_ = Json::array();
  Json pods_ = Json::array();
  Json groups_ = Json::array();   // of /apis
  Json queues_ = Json::array();   // of Kueue
  bool refuses_changes_ = false;  // with 503
  bool refuses_lists_ = false;    // with 403
  bool refuses_jobs_ = false;     // likewise: questions about one

 private:
  ScriptedReply Answer(const ScriptedRequest& request) {
    const std::lock_guard lock(mutex_);
    // A question for a right is a POST, and changes nothing.
    if (request.method != "GET" && !request.target.ends_with("/selfsubjectaccessreviews"))
      changes_.push_back(request.method + " " + request.target + " " + request.body);
    for (const Answerer* answer : {&answer_meanwhile_, &answer_first_}) {
      if (!*answer) continue;
      if (std::optional<ScriptedReply> reply = (*answer)(request)) return *std::move(reply);
    }
    if (request.method != "GET") {
      return refuses_changes_ ? ScriptedReply{.status = 503} : ScriptedReply{.body = "{}"};
    }
    if (request.target.find("watch=1") != std::string::npos) return {.stays_open = true};
    if (refuses_lists_ && request.target.find("labelSelector") != std::string::npos)
      return {.status = 403};
    if (request.target.find("/jobs/") != std::string::npos) {
      if (refuses_jobs_) return {.status = 403};
      for (const Json& job : jobs_) {
        if (request.target.ends_with("/" + TextAt(job, "metadata/name")))
          return {.body = job.dump()};
      }
      return {.status = 404, .body = R"({"kind":"Status","reason":"NotFound"})"};
    }
    Json answer = {{"gitVersion", "v1.36.0"},
                   {"metadata", {{"uid", identity_}, {"resourceVersion", "7"}}},
                   {"groups", groups_},
                   {"items", Json::array()}};
    if (request.target.find("/localqueues?") != std::string::npos) answer["items"] = queues_;
    if (request.target.find("/jobs?") != std::string::npos) answer["items"] = jobs_;
    if (request.target.find("/pods?") != std::string::npos) answer["items"] = pods_;
    return {.body = answer.dump()};
  }

  std::mutex mutex_;
  Answerer answer_meanwhile_;
  std::vector<std::string> changes_;
  hosts::TempDir directory_;
  ScriptedServer server_{[this](const ScriptedRequest& request) {
    ScriptedReply reply = Answer(request);
    const std::lock_guard lock(mutex_);
    if (!date_.empty()) reply.headers.push_back("Date: " + date_);
    return reply;
  }};

 protected:
  std::optional<KubernetesBackend> backend_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_SCRIPTED_CLUSTER_H_
