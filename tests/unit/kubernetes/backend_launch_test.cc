// Launches that the server, as it is now, does not take, and that are tried again; which runs are
// let go, when, and by whom.
#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Kind = agents::LaunchOutcome::Kind;
using Found = agents::LookupOutcome::Kind;

constexpr char kRun[] = "k7m2-1-1";

class BackendLaunchTest : public ScriptedClusterTest {
 protected:
  BackendLaunchTest() {
    assignment_.set_run_key(kRun);
    assignment_.set_user("ann");
    assignment_.mutable_spec()->set_nodes(1);
    assignment_.mutable_spec()->set_image("any");
    assignment_.mutable_spec()->mutable_command()->set_script("true");
  }

  // A server that keeps what it is given, and refuses what is made in a collection that ends so.
  void Serve() {
    Set([this] { answer_first_ = Answers(); });
  }
  Answerer Answers() {
    return [this](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
      if (request.method != "POST") return std::nullopt;
      if (request.target.ends_with("/selfsubjectaccessreviews")) {
        const Json attributes = Json::parse(request.body)["spec"]["resourceAttributes"];
        EXPECT_EQ(TextAt(attributes, "verb") + " " + TextAt(attributes, "resource"),
                  "create " + refused_);
        EXPECT_EQ(TextAt(attributes, "namespace"), "lab");
        return ScriptedReply{.status = 201,
                             .body = Json{{"status", {{"allowed", !refuses_}}}}.dump()};
      }
      if (refuses_ && request.target.ends_with("/" + refused_)) {
        return ScriptedReply{
            .status = 403,
            .body = Json{{"kind", "Status"}, {"reason", "Forbidden"}, {"message", words_}}.dump()};
      }
      if (!request.target.ends_with("/jobs")) return std::nullopt;
      Json job = Json::parse(request.body);
      job["metadata"]["uid"] = "u-" + std::string(kRun);
      jobs_ = Json::array({job});
      return ScriptedReply{.status = 201, .body = job.dump()};
    };
  }
  std::string StateOfPool() {
    const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    return inventory.ok() ? inventory->pools(0).state() : "";
  }
  Found LookUp(bool is_canceled = false) {
    agents::RunHandle run = Handle(kRun);
    run.cancel_requested = is_canceled;
    return backend_->Lookup(run).kind;
  }

  agent::v1::Assignment assignment_;
  bool refuses_ = true;
  std::string refused_ = "jobs";
  std::string words_ =
      R"(jobs.batch is forbidden: User "muster" cannot create resource "jobs" in API group "batch")";
};

TEST_F(BackendLaunchTest, ARunThatMayNotBeMadeWaitsForTheRightAndItsPoolTakesNoOtherMeanwhile) {
  Serve();
  Start({});
  EXPECT_EQ(StateOfPool(), "");
  EXPECT_FALSE(backend_->TakeInventoryNews());
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment_);
  EXPECT_EQ(outcome.kind, Kind::kDeferred) << "it is not ended, and no other run is used up";
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("cannot create resource"));
  EXPECT_TRUE(backend_->TakeInventoryNews()) << "the broker is told at once";
  EXPECT_EQ(StateOfPool(), "forbidden");
  EXPECT_EQ(LookUp(), Found::kCouldNotAsk) << "or it would be launched again, in vain";
  TakeChanges();
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, Kind::kDeferred);
  EXPECT_THAT(TakeChanges(), IsEmpty()) << "the server has said so a moment ago";
  EXPECT_FALSE(backend_->TakeInventoryNews()) << "that is known";
  Set([this] { refuses_ = false; });
  EXPECT_EQ(StateOfPool(), "");
  EXPECT_EQ(LookUp(), Found::kAbsent);
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, Kind::kLaunched);
}

TEST_F(BackendLaunchTest, ARunWhoseNamespaceIsNotThereWaitsForItAndSaysSo) {
  for (const bool is_admin : {false, true}) {
    if (is_admin) Set([this] { words_ = R"(namespaces "lab" not found)"; });
    const Meanwhile meanwhile(
        this,
        [this, is_admin,
         serve = Answers()](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
          const bool is_namespace = request.target.ends_with("/api/v1/namespaces/lab");
          if (is_namespace && refuses_) {
            constexpr char kGone[] =
                R"({"kind": "Status", "reason": "NotFound", "message": "namespaces \"lab\" not found"})";
            return ScriptedReply{.status = 404, .body = kGone};
          }
          std::optional<ScriptedReply> reply = serve(request);
          // An account that may do everything may do so in a namespace that is not there.
          if (is_admin && reply.has_value() && request.target.ends_with("reviews"))
            reply->body = R"({"status": {"allowed": true}})";
          if (is_admin && reply.has_value() && reply->status == 403) reply->status = 404;
          return reply;
        });
    Set([this] { refuses_ = true; });
    Start({});
    const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment_);
    EXPECT_EQ(outcome.kind, Kind::kDeferred) << "no run is used up";
    EXPECT_THAT(outcome.evidence.detail(),
                HasSubstr("namespace lab is missing: get namespace lab: the API server answered"));
    EXPECT_THAT(outcome.evidence.detail(),
                HasSubstr("it waits for the namespace: make it (kubectl create namespace lab)"));
    EXPECT_TRUE(backend_->TakeInventoryNews());
    EXPECT_EQ(StateOfPool(), "missing");
    const agents::LookupOutcome looked = backend_->Lookup(Handle(kRun));
    EXPECT_EQ(looked.kind, Found::kCouldNotAsk);
    EXPECT_THAT(looked.evidence.detail(), HasSubstr("namespace lab is missing"));
    Set([this] { refuses_ = false; });
    EXPECT_EQ(StateOfPool(), "");
    EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, Kind::kLaunched);
  }
}

TEST_F(BackendLaunchTest, ARunThatMayNotBeMadeIsSurelyNotThereAndCanBeForgotten) {
  Serve();
  refuses_lists_ = refuses_jobs_ = true;
  Start({});
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, Kind::kDeferred);
  EXPECT_TRUE(ForgetOne(*backend_, Handle(kRun)).ok());
}

TEST_F(BackendLaunchTest, OfARunWhoseJobIsThereAndWhoseSecretMayNotBeMadeTheServerIsAsked) {
  refused_ = "secrets";
  words_ = R"(secrets is forbidden: User "muster" cannot create resource "secrets")";
  Serve();
  Start({});
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, Kind::kUnclear);
  EXPECT_EQ(StateOfPool(), "forbidden");
  EXPECT_EQ(LookUp(), Found::kCouldNotAsk);
  Set([this] { refuses_jobs_ = true; });
  EXPECT_EQ(LookUp(/*is_canceled=*/true), Found::kCouldNotAsk);
}

TEST_F(BackendLaunchTest, WhatAQuotaOrAWebhookRefusesSaysNothingOfTheNamespace) {
  for (const char* words :
       {R"(jobs.batch "k" is forbidden: exceeded quota: small)",
        R"(admission webhook "x" denied the request: jobs.batch is forbidden: User "y" cannot)"}) {
    Set([&] { words_ = words; });
    Serve();
    Start({});
    LaunchOne(*backend_, assignment_);
    EXPECT_FALSE(backend_->TakeInventoryNews()) << words;
    EXPECT_EQ(StateOfPool(), "") << words;
  }
}

TEST_F(BackendLaunchTest, AQueueWithoutKueueIsNotRefusedBeforeASecondLookAndTheRunIsTriedAgain) {
  groups_ = {{{"name", "batch"}}};
  Start({});
  assignment_.mutable_spec()->mutable_kubernetes()->set_queue("team");
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment_);
  EXPECT_EQ(outcome.kind, Kind::kDeferred) << "so that it is launched again";
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("this cluster has no Kueue"));
  EXPECT_THAT(TakeChanges(), IsEmpty());
  EXPECT_TRUE(absl::IsUnavailable(backend_->Plan(assignment_.spec(), "").status()));
}

// ---- letting go

// Tests on one node, which has room for one pod.
class BackendStartTest : public BackendLaunchTest {
 protected:
  BackendStartTest() {
    answer_first_ = [this](const ScriptedRequest& request) { return Answer(request); };
  }

  static std::string KeyOf(int job) { return "k7m2-" + std::to_string(job) + "-1"; }
  agents::RunHandle RunOf(int job) const {
    agents::RunHandle run = Handle(KeyOf(job));
    const auto assignment = std::make_shared<agent::v1::Assignment>(assignment_);
    assignment->set_run_key(run.run_key);
    run.assignment = assignment;
    run.external_id = "lab/" + run.run_key;
    run.state = v1::RUN_STATE_PENDING;
    return run;
  }
  void Launch(int job) {
    EXPECT_EQ(LaunchOne(*backend_, *RunOf(job).assignment).kind, Kind::kLaunched);
  }
  // The launch finds it held, and it is released.
  void LaunchUnreleased(int job) {
    backend_->capabilities().note_hold(KeyOf(job), true);
    Launch(job);
    backend_->capabilities().note_hold(KeyOf(job), false);
  }
  // Returns the runs whose Jobs were to be patched since the last call.
  std::vector<std::string> TakePatched() {
    std::vector<std::string> run_keys;
    for (const std::string& change : TakeChanges()) {
      const std::string target = change.substr(0, change.find(' ', sizeof("PATCH ")));
      if (target.starts_with("PATCH ")) run_keys.push_back(target.substr(target.rfind('/') + 1));
    }
    // A Job that Kueue may have taken leaves its queue first.
    run_keys.erase(std::unique(run_keys.begin(), run_keys.end()), run_keys.end());
    return run_keys;
  }
  // Waits until there is one, and returns the same runs.
  std::vector<std::string> AwaitPatched() {
    std::vector<std::string> patched;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (patched.empty() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(5));
      patched = TakePatched();
    }
    return patched;
  }
  // The same runs, after the backend has ended and finished all that it had begun.
  std::vector<std::string> EndPatched() {
    std::vector<std::string> patched = AwaitPatched();
    backend_.reset();
    for (std::string& more : TakePatched()) {
      // The other patch of the same Job.
      if (patched.empty() || patched.back() != more) patched.push_back(std::move(more));
    }
    return patched;
  }

  int room_ = 1;
  std::function<void()> at_patch_;  // at the next one
  int patch_status_ = 200;
  std::string placed_;  // the watch of the namespace's pods tells that this run's has a node

 private:
  std::optional<ScriptedReply> Answer(const ScriptedRequest& request) {
    const auto is = [&](const char* method, const char* part) {
      return request.method == method && request.target.find(part) != std::string::npos;
    };
    if (is("GET", "/api/v1/nodes?limit")) return Nodes();
    if (is("GET", "/namespaces/lab/pods?watch=1")) return PodNews();
    if (request.target.ends_with("/jobs")) {
      Json job = Json::parse(request.body);
      job["metadata"]["uid"] = "u-" + TextAt(job, "metadata/name");
      jobs_.push_back(job);
      return ScriptedReply{.status = 201, .body = job.dump()};
    }
    if (request.method != "PATCH") return std::nullopt;
    if (at_patch_) std::exchange(at_patch_, nullptr)();
    if (patch_status_ != 200) return ScriptedReply{.status = patch_status_};
    for (Json& job : jobs_) {
      if (!request.target.ends_with("/" + TextAt(job, "metadata/name"))) continue;
      job.merge_patch(Json::parse(request.body));
      return ScriptedReply{.body = job.dump()};
    }
    return std::nullopt;
  }
  ScriptedReply Nodes() const {
    const Json node = {
        {"metadata", {{"name", "node-1"}}},
        {"status",
         {{"allocatable", {{"cpu", "8"}, {"memory", "64Gi"}, {"pods", std::to_string(room_)}}},
          {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    return {.body = Json{{"metadata", {{"resourceVersion", "7"}}}, {"items", {node}}}.dump()};
  }
  // Ends at once, so that the backend asks again.
  ScriptedReply PodNews() const {
    if (placed_.empty()) return {};
    const Json pod = {{"metadata",
                       {{"name", placed_ + "-0"},
                        {"namespace", "lab"},
                        {"uid", "p"},
                        {"resourceVersion", "9"},
                        {"labels", {{kRunLabel, placed_}}},
                        {"ownerReferences", {{{"kind", "Job"}, {"uid", "u-" + placed_}}}}}},
                      {"spec", {{"nodeName", "node-1"}}},
                      {"status", {{"phase", "Pending"}}}};
    return {.body = Json{{"type", "ADDED"}, {"object", pod}}.dump() + "\n"};
  }
};

TEST_F(BackendStartTest, ALaunchLetsItsOwnRunGoAndNoOther) {
  room_ = 2;
  Start({});
  LaunchUnreleased(1);
  Launch(2);
  EXPECT_THAT(TakePatched(), ElementsAre(KeyOf(2)));
  (void)backend_->Observe({RunOf(1), RunOf(2)});
  EXPECT_THAT(AwaitPatched(), ElementsAre(KeyOf(1)));
}

TEST_F(BackendStartTest, OfARunThatAQueueLetGoAgainThePodsOfTheTryBeforeLeaveNoRoomToOthers) {
  Json job = MakeJob(KeyOf(1));
  job["spec"]["suspend"] = false;
  const Json pod = {{"metadata",
                     {{"name", KeyOf(1) + "-0"},
                      {"namespace", "lab"},
                      {"uid", "p"},
                      {"creationTimestamp", "2026-01-01T00:01:00Z"},
                      {"deletionTimestamp", "2026-01-01T00:09:00Z"},
                      {"labels", {{kRunLabel, KeyOf(1)}}}}},
                    {"spec", {{"nodeName", "node-1"}}},
                    {"status", {{"phase", "Failed"}}}};
  for (const bool is_let_go_again : {true, false}) {
    job["status"]["startTime"] = is_let_go_again ? "2026-01-01T00:10:00Z" : "2026-01-01T00:01:00Z";
    jobs_ = Json::array({job});
    pods_ = Json::array({pod});
    Start({KeyOf(1)});
    backend_->capabilities().allow_starts();
    EXPECT_EQ(backend_->Observe({RunOf(1)}).observations.size(), 1);
    TakeChanges();
    Launch(2);
    EXPECT_EQ(TakePatched().empty(), is_let_go_again);
  }
}

TEST_F(BackendStartTest, WhatIsSeenOfRunsIsToldWhileTheServerTakesItsTimeToLetOneGo) {
  std::promise<void> told;
  at_patch_ = [is_told = told.get_future().share()] {
    EXPECT_EQ(is_told.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  };
  Start({});
  LaunchUnreleased(1);
  EXPECT_EQ(backend_->Observe({RunOf(1)}).observations.size(), 1);
  told.set_value();
  EXPECT_THAT(AwaitPatched(), ElementsAre(KeyOf(1)));
}

TEST_F(BackendStartTest, AHoldIsHeededThatComesWhileTheRunBeforeItsOwnIsLetGo) {
  room_ = 2;
  Start({});
  for (const int job : {1, 2}) LaunchUnreleased(job);
  TakeChanges();
  Set([this] { at_patch_ = [this] { backend_->capabilities().note_hold(KeyOf(2), true); }; });
  EXPECT_TRUE(backend_->Observe({RunOf(1)}).scheduler.ok());
  EXPECT_THAT(EndPatched(), ElementsAre(KeyOf(1)));
}

TEST_F(BackendStartTest, WhereTheServerIsInTroubleOneRunIsTriedAndNotAllOneAfterAnother) {
  room_ = 3;
  patch_status_ = 500;
  Start({});
  for (const int job : {1, 2, 3}) LaunchUnreleased(job);
  TakeChanges();
  EXPECT_TRUE(backend_->Observe({RunOf(1)}).scheduler.ok());
  EXPECT_THAT(EndPatched(), ElementsAre(KeyOf(1)));
}

TEST_F(BackendStartTest, TheRoomOfARunWithANodeIsNotGivenAwayThoughItsPodIsNotSeenThereYet) {
  Start({});
  Launch(1);
  EXPECT_THAT(TakePatched(), ElementsAre(KeyOf(1)));
  Set([this] { placed_ = KeyOf(1); });
  const absl::Time end = absl::Now() + absl::Seconds(20);
  agents::Observation seen;
  while (seen.nodes.empty() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
    for (agents::Observation& one : backend_->Observe({RunOf(1)}).observations)
      seen = std::move(one);
  }
  EXPECT_THAT(seen.nodes, ElementsAre("node-1"));
  Launch(2);
  EXPECT_THAT(TakePatched(), IsEmpty());
}

}  // namespace
}  // namespace muster::kubernetes
