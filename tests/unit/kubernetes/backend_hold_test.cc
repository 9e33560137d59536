// Holds that come while a run is launched, and launches that Kueue overtakes.
#include <algorithm>
#include <future>
#include <iterator>
#include <string>

#include "absl/time/clock.h"
#include "agents/kubernetes/objects/kueue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kRun[] = "k7m2-1-1";
// Another one, whose hold is the last of what a look sets going.
constexpr char kLastRun[] = "k7m2-9-1";
constexpr char kDenied[] =
    R"({"kind": "Status", "reason": "Forbidden", "message":
        "admission webhook \"vjob.kb.io\" denied the request: field is immutable"})";
constexpr char kForbidden[] =
    R"({"kind": "Status", "reason": "Forbidden", "message":
        "jobs.batch \"k7m2-1-1\" is forbidden: User \"x\" cannot patch resource \"jobs\""})";

class BackendHoldTest : public ScriptedClusterTest {
 protected:
  BackendHoldTest() {
    assignment_ = std::make_shared<v1::Assignment>();
    assignment_->set_run_key(kRun);
    assignment_->set_user("ann");
    assignment_->mutable_spec()->set_nodes(1);
    assignment_->mutable_spec()->set_image("any");
    assignment_->mutable_spec()->mutable_command()->set_script("true");
    assignment_->mutable_spec()->mutable_kubernetes()->set_queue("team");
    answer_first_ = [this](const ScriptedRequest& request) { return Answer(request); };
  }

  // A Job in the queue "team" whose launch is not through.
  Json HalfLaunched(bool is_suspended) {
    Json job = MakeJob(kRun);
    job["metadata"]["annotations"] = Json::object();
    job["metadata"]["labels"][kQueueLabel] = "team";
    job["spec"]["suspend"] = is_suspended;
    return job;
  }
  static Json PodOf(const char* node, Json container_state) {
    return {{"metadata",
             {{"name", std::string(kRun) + "-0"},
              {"namespace", "lab"},
              {"uid", "p"},
              {"labels", {{kRunLabel, kRun}}},
              {"ownerReferences", {{{"kind", "Job"}, {"uid", "u-" + std::string(kRun)}}}}}},
            {"spec", {{"nodeName", node}}},
            {"status",
             {{"phase", "Running"},
              {"containerStatuses", {{{"name", "main"}, {"state", std::move(container_state)}}}}}}};
  }
  static Json RunningPod() {
    return PodOf("node-1", {{"running", {{"startedAt", "2026-01-01T00:00:30Z"}}}});
  }
  static Json UnschedulablePod() {
    Json pod = PodOf("", Json::object());
    pod["status"] = {
        {"phase", "Pending"},
        {"conditions",
         {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}};
    return pod;
  }
  agent::RunHandle Launched(v1::RunState state = v1::RUN_STATE_PENDING) const {
    agent::RunHandle run = Handle(kRun);
    run.external_id = "lab/" + std::string(kRun);
    run.assignment = assignment_;
    run.state = state;
    return run;
  }

  std::shared_ptr<v1::Assignment> assignment_;
  bool denies_holds_ = false;
  bool forbids_patches_ = false;
  std::string hold_at_;  // a hold comes while the server has a change with these words

  agent::RunHandle Held() const {
    agent::RunHandle run = Launched();
    run.held = true;
    return run;
  }
  // Of an agent that is started for it, with all that the look at the run has set going.
  std::vector<std::string> ChangesAtALook(const agent::RunHandle& run,
                                          bool has_broker_spoken = true) {
    Json last = HalfLaunched(true);
    last["metadata"]["name"] = last["metadata"]["labels"][kRunLabel] = kLastRun;
    jobs_.push_back(last);
    Start({kRun, kLastRun});
    if (has_broker_spoken) backend_->AllowStarts();
    TakeChanges();
    agent::RunHandle last_run = Held();
    last_run.run_key = kLastRun;
    last_run.external_id = "lab/" + std::string(kLastRun);
    EXPECT_EQ(backend_->Observe({run, last_run}).observations.size(), 2);
    std::vector<std::string> changes;
    // What is asked of the last has begun after all else.
    if (has_broker_spoken) changes = AwaitChange(kLastRun);
    backend_.reset();  // all is done that was begun
    std::ranges::move(TakeChanges(), std::back_inserter(changes));
    std::erase_if(changes, [](const std::string& change) {
      return change.find(kLastRun) != std::string::npos;
    });
    jobs_.erase(jobs_.size() - 1);
    return changes;
  }
  // The changes up to one with these words.
  std::vector<std::string> AwaitChange(const std::string& words) {
    std::vector<std::string> changes;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    const auto is_it = [&](const std::string& change) {
      return change.find(words) != std::string::npos;
    };
    while (std::ranges::none_of(changes, is_it) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      std::ranges::move(TakeChanges(), std::back_inserter(changes));
    }
    return changes;
  }
  // The reason at the first look at which it has such words, or at the last of 20 s.
  std::string AwaitReason(const agent::RunHandle& run, const std::string& words) {
    std::string reason;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (reason.find(words) == std::string::npos && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      for (const agent::Observation& seen : backend_->Observe({run}).observations)
        reason = seen.reason;
    }
    return reason;
  }

 private:
  // Of a server that keeps what it is given; which nodes there are may not be seen.
  std::optional<ScriptedReply> Answer(const ScriptedRequest& request) {
    if (request.target.starts_with("/api/v1/nodes")) return ScriptedReply{.status = 403};
    const std::string words = request.method + " " + request.target + " " + request.body;
    if (!hold_at_.empty() && words.find(hold_at_) != std::string::npos)
      backend_->NoteHold(kRun, true);
    if (request.method == "POST" && request.target.ends_with("/jobs")) {
      Json job = Json::parse(request.body);
      job["metadata"]["uid"] = "u-" + std::string(kRun);
      jobs_ = Json::array({job});
      return ScriptedReply{.status = 201, .body = job.dump()};
    }
    if (request.method != "PATCH") return std::nullopt;
    if (request.target.find(kLastRun) != std::string::npos)
      return ScriptedReply{.body = jobs_.back().dump()};
    if (forbids_patches_) return ScriptedReply{.status = 403, .body = kForbidden};
    if (denies_holds_ && request.body.find(kHeldQueue) != std::string::npos)
      return ScriptedReply{.status = 403, .body = kDenied};
    jobs_[0].merge_patch(Json::parse(request.body));
    return ScriptedReply{.body = jobs_[0].dump()};
  }
};

TEST_F(BackendHoldTest, AHoldThatComesBeforeTheJobIsMadeKeepsItOutOfItsQueue) {
  Start({});
  TakeChanges();
  backend_->NoteHold(kRun, true);
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(AllOf(HasSubstr("/jobs "), HasSubstr(kHeldQueue)),
                                         HasSubstr("/secrets ")));
  EXPECT_TRUE(backend_->SetHeld(Launched(), true).ok());
  EXPECT_THAT(TakeChanges(), IsEmpty()) << "it is held already";
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason, HasSubstr("held"));
}

TEST_F(BackendHoldTest, AHoldThatComesWhileTheJobIsMadeTakesItOutOfItsQueue) {
  Start({});
  TakeChanges();
  hold_at_ = "/secrets ";
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/secrets ")));
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason, Not(HasSubstr("held")))
      << "Kueue may start it still";
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(kHeldQueue)));
  EXPECT_THAT(AwaitReason(Held(), "held: it starts"), HasSubstr("held: it starts"));
}

TEST_F(BackendHoldTest, AHoldThatIsDeniedBecauseItCameTooLateEndsNoRun) {
  Start({});
  TakeChanges();
  hold_at_ = kLaunchAnnotation;
  denies_holds_ = true;
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/secrets "),
                                         HasSubstr(kLaunchAnnotation)));
  const agent::ObserveOutcome outcome = backend_->Observe({Launched()});
  ASSERT_EQ(outcome.observations.size(), 1) << outcome.scheduler;
  EXPECT_EQ(outcome.observations[0].state, v1::RUN_STATE_PENDING);
  EXPECT_THAT(AwaitReason(Held(), "waits: "), HasSubstr("the hold waits: "));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(kHeldQueue))) << "it is not taken away";
}

TEST_F(BackendHoldTest, WhatKueueHasLetGoIsNotHeldUntilItsPodsHaveNodesAndSaysSo) {
  jobs_ = Json::array({HalfLaunched(false)});
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_TRUE(backend_->SetHeld(Launched(), true).ok());
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason,
              HasSubstr("the hold waits: Kueue has let it go"));
  pods_ = Json::array({RunningPod()});
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_TRUE(backend_->SetHeld(Launched(), true).ok());
  EXPECT_EQ(backend_->Observe({Held()}).observations[0].reason, "") << "it has begun";
}

TEST_F(BackendHoldTest, TheLaunchOfWhatKueueHasStartedIsCompletedInSpiteOfALateHold) {
  jobs_ = Json::array({HalfLaunched(false)});
  pods_ = Json::array({RunningPod()});
  Start({kRun});
  backend_->NoteHold(kRun, true);
  TakeChanges();
  const agent::ObserveOutcome outcome = backend_->Observe({Launched()});
  ASSERT_EQ(outcome.observations.size(), 1) << outcome.scheduler;
  EXPECT_EQ(outcome.observations[0].state, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(outcome.observations[0].reason, "");
  EXPECT_THAT(TakeChanges(),
              ElementsAre(AllOf(HasSubstr(kLaunchComplete), Not(HasSubstr("suspend")),
                                Not(HasSubstr(kQueueLabel)))));
}

// ---- holds and releases that crossed each other, or failed

TEST_F(BackendHoldTest, AJobThatIsHeldThoughNobodyWantsThatIsLetGoOnceTheBrokerHasSpoken) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = true;
  jobs_[0]["metadata"]["annotations"][kHeldAnnotation] = "true";
  EXPECT_THAT(ChangesAtALook(Launched(), /*has_broker_spoken=*/false), IsEmpty());
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty()) << "as it is wished";
  EXPECT_THAT(ChangesAtALook(Launched()), ElementsAre(HasSubstr(R"("suspend":false)")));
  jobs_[0]["spec"]["suspend"] = true;
  EXPECT_THAT(ChangesAtALook(Launched()), IsEmpty()) << "others have suspended it";
}

TEST_F(BackendHoldTest, AJobThatMayStartThoughItIsToBeHeldIsHeldUnlessItHasANode) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = false;
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty()) << "its pods are being made";
  pods_ = Json::array({UnschedulablePod()});
  EXPECT_THAT(ChangesAtALook(Held(), /*has_broker_spoken=*/false), IsEmpty());
  EXPECT_THAT(ChangesAtALook(Held()), ElementsAre(HasSubstr(R"("suspend":true)")));
  jobs_[0]["spec"]["suspend"] = false;
  pods_ = Json::array({RunningPod()});
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty());
}

TEST_F(BackendHoldTest, AJobInAQueueIsAsHeldAsItIsWished) {
  jobs_ = Json::array({HalfLaunched(true)});
  EXPECT_THAT(ChangesAtALook(Held()), ElementsAre(HasSubstr(kHeldQueue)));
  jobs_[0]["metadata"]["annotations"][kLaunchAnnotation] = kLaunchComplete;
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty());
  EXPECT_THAT(ChangesAtALook(Launched()), ElementsAre(HasSubstr(R"("team")")));
  EXPECT_THAT(ChangesAtALook(Held()), ElementsAre(HasSubstr(kHeldQueue)));
}

TEST_F(BackendHoldTest, TheLatestWishCountsForMoreThanWhatALookSaysOfHolds) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = false;
  pods_ = Json::array({UnschedulablePod()});
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_TRUE(backend_->SetHeld(Launched(), true).ok());
  TakeChanges();
  (void)backend_->Observe({Launched()});
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(R"("suspend":true)")));
  pods_ = Json::array();
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_TRUE(backend_->SetHeld(Launched(), false).ok());
  TakeChanges();
  (void)backend_->Observe({Held()});
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(R"("suspend":false)")));
}

TEST_F(BackendHoldTest, WhatIsBeingLetGoIsNotCalledHeld) {
  assignment_->mutable_spec()->clear_kubernetes();
  std::string reason;
  const auto keeps = answer_first_;
  answer_first_ = [&](const ScriptedRequest& request) {
    if (request.method == "PATCH" && reason.empty()) {
      backend_->NoteHold(kRun, true);
      reason = backend_->Observe({Held()}).observations[0].reason;
    }
    return keeps(request);
  };
  Start({});
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_EQ(reason, "waits for its turn to start");
}

TEST_F(BackendHoldTest, AHoldThatFailsIsTriedAgainAfterAPauseAndSaysSoMeanwhile) {
  jobs_ = Json::array({HalfLaunched(true)});
  forbids_patches_ = true;
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_THAT(AwaitReason(Held(), "waits: "),
              AllOf(HasSubstr("; the hold waits: "), HasSubstr("cannot patch resource")));
  EXPECT_EQ(TakeChanges().size(), 1);
  const absl::Time refused = absl::Now();
  while (AwaitReason(Held(), "waits: ") != "" && TakeChanges().empty()) {
    ASSERT_LT(absl::Now() - refused, absl::Seconds(60)) << "it is tried again";
  }
  EXPECT_GE(absl::Now() - refused, absl::Seconds(9)) << "after a pause";
}

TEST_F(BackendHoldTest, WhatIsSeenOfRunsIsToldWhileTheServerTakesItsTimeForAHold) {
  jobs_ = Json::array({HalfLaunched(true)});
  std::promise<void> told;
  const auto keeps = answer_first_;
  answer_first_ = [&, is_told = told.get_future().share()](const ScriptedRequest& request) {
    if (request.method == "PATCH") {
      EXPECT_EQ(is_told.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    }
    return keeps(request);
  };
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_EQ(backend_->Observe({Held()}).observations.size(), 1);
  told.set_value();
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(kHeldQueue)));
}

TEST_F(BackendHoldTest, AGangOfWhichAPodHasANodeSaysThatItsHoldComesTooLate) {
  assignment_->mutable_spec()->clear_kubernetes();
  assignment_->mutable_spec()->set_nodes(2);
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["completions"] = 2;
  Json placed = PodOf("node-1", Json::object());
  placed["status"] = {{"phase", "Pending"}};
  Json other = UnschedulablePod();
  other["metadata"]["name"] = std::string(kRun) + "-1";
  other["metadata"]["uid"] = "p2";
  other["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "1";
  pods_ = Json::array({placed, other});
  Start({kRun});
  backend_->AllowStarts();
  const agent::Observation seen = backend_->Observe({Held()}).observations[0];
  EXPECT_EQ(seen.state, v1::RUN_STATE_PENDING);
  EXPECT_THAT(seen.reason, HasSubstr("the hold comes too late: its pod k7m2-1-1-0 has the node"));
}

TEST_F(BackendHoldTest, WhatOthersHaveSuspendedIsNotCalledHeld) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = true;
  Start({kRun});
  backend_->AllowStarts();
  EXPECT_EQ(backend_->Observe({Held()}).observations[0].reason, "suspended by others");
}

// ---- what may start although it is not to

TEST_F(BackendHoldTest, ARunIsNotCalledHeldWhoseLastAnswerWasLostUntilTheServerHasSaidHowItIs) {
  assignment_->mutable_spec()->clear_kubernetes();
  Start({});
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) {
    const bool lets_go =
        request.method == "PATCH" && request.body.find(kLaunchAnnotation) != std::string::npos;
    std::optional<ScriptedReply> reply = keeps(request);
    return lets_go ? std::optional(ScriptedReply{.hangs_up = true}) : reply;
  };
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  ASSERT_FALSE(jobs_[0]["spec"]["suspend"].get<bool>()) << "the server has done it";
  backend_->NoteHold(kRun, true);
  EXPECT_THAT(backend_->Observe({Held()}).observations[0].reason, Not(HasSubstr("held: ")));
}

TEST_F(BackendHoldTest, ARunThatIsToBeCanceledIsNotLetGoThoughItsDeletionFails) {
  assignment_->mutable_spec()->clear_kubernetes();
  assignment_->set_held(true);
  Start({});
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) {
    if (request.method == "DELETE") return std::optional(ScriptedReply{.status = 503});
    return keeps(request);
  };
  agent::RunHandle run = Launched();
  run.cancel_requested = true;
  EXPECT_FALSE(backend_->Cancel(run).ok());
  EXPECT_THAT(AwaitChange("DELETE "), Not(IsEmpty()));
  for (const Json& job : jobs_) EXPECT_TRUE(job["spec"]["suspend"].get<bool>());
  EXPECT_THAT(backend_->Observe({run}).observations[0].reason, Not(HasSubstr("its turn")))
      << "it is in no queue";
}

TEST_F(BackendHoldTest, WhatKueueHasLetGoSaysAtEachLookThatItsHoldWaits) {
  jobs_ = Json::array({HalfLaunched(false)});
  for (const bool is_again : {false, true}) {
    if (!is_again) Start({kRun});
    backend_->AllowStarts();
    const agent::ObserveOutcome seen = backend_->Observe({Held()});
    ASSERT_EQ(seen.observations.size(), 1) << is_again;
    EXPECT_THAT(seen.observations[0].reason,
                HasSubstr("; the hold waits: Kueue has let it go, and it waits for nodes"));
  }
}

// ---- launches that were cut short

TEST_F(BackendHoldTest, WhatHasBegunBeforeItsLaunchWasThroughIsFound) {
  jobs_ = Json::array({HalfLaunched(false)});
  Start({});
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agent::LookupOutcome::Kind::kAbsent)
      << "its Secret may be missing: the next launch makes it";
  Set([this] { pods_ = Json::array({RunningPod()}); });
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agent::LookupOutcome::Kind::kFound);
  Set([this] {
    pods_ = Json::array();
    jobs_[0]["status"] = EndedJob(kRun)["status"];
  });
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agent::LookupOutcome::Kind::kFound);
}

TEST_F(BackendHoldTest, TheSecretIsMadeLastForPodsWaitForThatAlone) {
  assignment_->mutable_spec()->set_nodes(2);
  Start({});
  TakeChanges();
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/services "),
                                         HasSubstr("/secrets "), HasSubstr("PATCH ")));
}

TEST_F(BackendHoldTest, ASecondLaunchLeavesTheSecretOfWhatKueueHasStarted) {
  for (const bool is_suspended : {false, true}) {
    const auto keeps = answer_first_;
    answer_first_ = [this, keeps,
                     is_suspended](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
      if (request.method == "POST") {
        jobs_ = Json::array({HalfLaunched(is_suspended)});
        return ScriptedReply{.status = 409,
                             .body = R"({"kind": "Status", "reason": "AlreadyExists"})"};
      }
      return keeps(request);
    };
    Start({});
    TakeChanges();
    (void)backend_->Launch(*assignment_);
    const std::vector<std::string> changes = TakeChanges();
    const bool replaced = std::any_of(changes.begin(), changes.end(), [](const auto& change) {
      return change.starts_with("DELETE ");
    });
    EXPECT_EQ(replaced, is_suspended);
    answer_first_ = keeps;
  }
}

TEST_F(BackendHoldTest, ARightThatIsMissingIsToldOfTheRunAndNotOfTheServer) {
  Start({});
  forbids_patches_ = true;
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  const agent::ObserveOutcome seen = backend_->Observe({Launched()});
  EXPECT_TRUE(seen.scheduler.ok()) << seen.scheduler;
  EXPECT_THAT(seen.observations[0].reason, HasSubstr("cannot patch resource"));
}

TEST_F(BackendHoldTest, ARunWhosePatchWasCutOffSaysSoAndIsLetGoLater) {
  Start({});
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) {
    return request.method == "PATCH" ? ScriptedReply{.hangs_up = true} : keeps(request);
  };
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason,
              HasSubstr("its Job could not be let go yet"));
}

// ---- launches that are repeated

TEST_F(BackendHoldTest, ALaunchThatIsRepeatedForARunThatIsHeldByNowTakesItsJobOutOfItsQueue) {
  const auto keeps = answer_first_;
  bool is_suspended = true;
  answer_first_ = [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.method != "POST" || !request.target.ends_with("/jobs")) return keeps(request);
    jobs_ = Json::array({HalfLaunched(is_suspended)});
    return ScriptedReply{.status = 409, .body = R"({"kind": "Status", "reason": "AlreadyExists"})"};
  };
  assignment_->set_held(true);
  Start({});
  TakeChanges();
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(),
              ElementsAre(HasSubstr("/jobs "), HasSubstr(kHeldQueue), HasSubstr("/secrets ")));
  denies_holds_ = true;
  EXPECT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kUnclear)
      << "Kueue has let it go in this moment: the next launch finds that";
  is_suspended = false;
  TakeChanges();
  EXPECT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/secrets ")));
}

}  // namespace
}  // namespace muster::kubernetes
