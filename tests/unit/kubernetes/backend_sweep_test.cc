// What the backend does about Jobs that no run wants any more.
#include <mutex>
#include <string>
#include <vector>

#include "agents/kubernetes/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A cluster that has the Jobs of the test.
class BackendSweepTest : public testing::Test {
 protected:
  // `annotations` and `conditions` as JSON.
  void Has(const std::string& run_key, const std::string& annotations,
           const std::string& conditions) {
    jobs_ += (jobs_.empty() ? "" : ",") +
             (R"({"metadata":{"name":")" + run_key + R"(","namespace":"lab","uid":"u-)" + run_key) +
             R"(","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"muster.dev/run-key":")" +
             run_key + R"("},"annotations":{)" + annotations +
             R"(}},"spec":{"ttlSecondsAfterFinished":604800},"status":{"conditions":[)" +
             conditions + "]}}";
  }
  void HasEnded(const std::string& run_key) {
    Has(run_key, R"("muster.dev/launch":"complete","muster.dev/time-to-live":"60")",
        R"({"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T00:01:00Z"})");
  }

  ScriptedReply Answer(const ScriptedRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.method != "GET") {
      changes_.push_back(request.method + " " + request.target + " " + request.body);
      return is_in_trouble_ ? ScriptedReply{.status = 503} : ScriptedReply{.body = "{}"};
    }
    if (request.target.find("watch=1") != std::string::npos) return {.stays_open = true};
    const bool are_jobs = request.target.find("/jobs?") != std::string::npos;
    return {.body = R"({"gitVersion":"v1.36.0","metadata":{"uid":"u","resourceVersion":"7"},)"
                    R"("items":[)" +
                    (are_jobs ? jobs_ : "") + "]}"};
  }

  static agent::RunHandle Handle(const std::string& run_key) {
    agent::RunHandle run;
    run.run_key = run_key;
    return run;
  }
  // With these runs in its journal.
  void Start(const std::vector<std::string>& run_keys) {
    std::vector<agent::RunHandle> runs;
    for (const std::string& run_key : run_keys) runs.push_back(Handle(run_key));
    Endpoint endpoint;
    endpoint.server = server_.url();
    endpoint.name_space = "lab";
    backend_.emplace(KubernetesConfig(), endpoint, directory_ / "state");
    backend_->SetInstance("k7m2");
    ASSERT_TRUE(backend_->Adopt(runs).ok());
  }
  std::vector<std::string> Warnings() {
    const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    if (!inventory.ok()) return {};
    return {inventory->warnings().begin(), inventory->warnings().end()};
  }
  std::vector<std::string> TakeChanges() {
    const std::lock_guard lock(mutex_);
    return std::exchange(changes_, {});
  }
  void SetTrouble(bool is_in_trouble) {
    const std::lock_guard lock(mutex_);
    is_in_trouble_ = is_in_trouble;
  }

  std::mutex mutex_;
  std::string jobs_;
  bool is_in_trouble_ = false;
  std::vector<std::string> changes_;
  hosts::TempDir directory_;
  ScriptedServer server_{[this](const ScriptedRequest& request) { return Answer(request); }};
  std::optional<KubernetesBackend> backend_;
};

TEST_F(BackendSweepTest, ACleanUpThatFailsIsDoneWithALaterInventory) {
  HasEnded("k7m2-1-1");
  Start({"k7m2-1-1"});
  SetTrouble(true);
  backend_->Forget(Handle("k7m2-1-1"));
  Warnings();
  EXPECT_EQ(TakeChanges().size(), 2) << "tried at once, and once again";
  SetTrouble(false);
  Warnings();
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(R"("ttlSecondsAfterFinished":60)")));
}

TEST_F(BackendSweepTest, WhatEndedLongAgoAndNobodyWantsGoesSoonOfThisInstanceAlone) {
  HasEnded("k7m2-1-1");
  HasEnded("other-2-1");
  HasEnded("k7m2-3-1");
  Start({"k7m2-3-1"});
  EXPECT_THAT(Warnings(), Not(Contains(HasSubstr("no run of theirs"))));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("PATCH /apis/batch/v1/namespaces/lab/jobs/"
                                                   "k7m2-1-1 ")));
}

TEST_F(BackendSweepTest, AJobThatMayRunAndNobodyWantsIsToldOfAndLeftAlone) {
  Has("k7m2-1-1", R"("muster.dev/launch":"complete")", "");
  Start({});
  EXPECT_THAT(Warnings(), Contains(HasSubstr("knows no run of theirs: lab/k7m2-1-1; they are left "
                                             "alone")));
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

TEST_F(BackendSweepTest, HalfALaunchThatNobodyComesBackToIsDeleted) {
  Has("k7m2-1-1", "", "");
  Start({});
  EXPECT_THAT(Warnings(), Not(Contains(HasSubstr("no run of theirs"))));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("DELETE /apis/batch/v1/namespaces/lab/jobs/"
                                                   "k7m2-1-1 ")));
}

}  // namespace
}  // namespace muster::kubernetes
