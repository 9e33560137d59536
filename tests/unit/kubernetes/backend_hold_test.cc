// Holds and releases, and what they must not cross.
#include <future>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/kubernetes/hold_fixture.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(BackendHoldTest, AHoldThatComesBeforeTheJobIsMadeKeepsItOutOfItsQueue) {
  Start({});
  TakeChanges();
  backend_->capabilities().note_hold(kRun, true);
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(AllOf(HasSubstr("/jobs "), HasSubstr(kHeldQueue)),
                                         HasSubstr("/secrets ")));
  EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
  EXPECT_THAT(TakeChanges(), IsEmpty()) << "it is held already";
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason.message(), HasSubstr("held"));
}

TEST_F(BackendHoldTest, AHoldThatComesWhileTheJobIsMadeTakesItOutOfItsQueue) {
  Start({});
  TakeChanges();
  hold_at_ = "/secrets ";
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/secrets ")));
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason.message(),
              Not(HasSubstr("held")))
      << "Kueue may start it still";
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(kHeldQueue)));
  EXPECT_THAT(AwaitReason(Held(), "held: it starts"), HasSubstr("held: it starts"));
}

TEST_F(BackendHoldTest, AHoldThatIsDeniedBecauseItCameTooLateEndsNoRun) {
  Start({});
  TakeChanges();
  hold_at_ = kLaunchAnnotation;
  denies_holds_ = true;
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/secrets "),
                                         HasSubstr(kLaunchAnnotation)));
  const agents::ObserveOutcome outcome = backend_->Observe({Launched()});
  ASSERT_EQ(outcome.observations.size(), 1) << outcome.scheduler;
  EXPECT_EQ(outcome.observations[0].state, v1::RUN_STATE_PENDING);
  EXPECT_THAT(AwaitReason(Held(), "waits: "), HasSubstr("the hold waits: "));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(kHeldQueue))) << "it is not taken away";
}

TEST_F(BackendHoldTest, WhatKueueHasLetGoIsNotHeldUntilItsPodsHaveNodesAndSaysSo) {
  jobs_ = Json::array({HalfLaunched(false)});
  Start({kRun});
  backend_->capabilities().allow_starts();
  EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason.message(),
              HasSubstr("the hold waits: Kueue has let it go"));
  Set([this] { pods_ = Json::array({RunningPod()}); });
  Start({kRun});
  backend_->capabilities().allow_starts();
  EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
  EXPECT_EQ(backend_->Observe({Held()}).observations[0].reason.message(), "") << "it has begun";
}

TEST_F(BackendHoldTest, TheLaunchOfWhatKueueHasStartedIsCompletedInSpiteOfALateHold) {
  jobs_ = Json::array({HalfLaunched(false)});
  pods_ = Json::array({RunningPod()});
  Start({kRun});
  backend_->capabilities().note_hold(kRun, true);
  TakeChanges();
  const agents::ObserveOutcome outcome = backend_->Observe({Launched()});
  ASSERT_EQ(outcome.observations.size(), 1) << outcome.scheduler;
  EXPECT_EQ(outcome.observations[0].state, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(outcome.observations[0].reason.message(), "");
  EXPECT_THAT(AwaitChange("PATCH "),
              ElementsAre(AllOf(HasSubstr(kLaunchComplete), Not(HasSubstr("suspend")),
                                Not(HasSubstr(kQueueLabel)))));
}

// ---- holds and releases that crossed each other, or failed

TEST_F(BackendHoldTest, AJobThatIsHeldThoughNobodyWantsThatIsLetGoOnceTheBrokerHasSpoken) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = true;
  jobs_[0]["metadata"]["annotations"] = {{kHeldAnnotation, "true"}};
  EXPECT_THAT(ChangesAtALook(Launched(), /*has_broker_spoken=*/false), IsEmpty());
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty()) << "as it is wished";
  EXPECT_THAT(ChangesAtALook(Launched()),
              ElementsAre(AllOf(HasSubstr(kLaunchAnnotation), HasSubstr(R"("suspend":false)"))));
  Set([this] { jobs_[0]["spec"]["suspend"] = true; });
  EXPECT_THAT(ChangesAtALook(Launched()), IsEmpty()) << "others have suspended it";
}

TEST_F(BackendHoldTest, AJobThatMayStartThoughItIsToBeHeldIsHeldUnlessItHasANode) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = false;
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty()) << "its pods are being made";
  Set([this] { pods_ = Json::array({UnschedulablePod()}); });
  EXPECT_THAT(ChangesAtALook(Held(), /*has_broker_spoken=*/false), IsEmpty());
  EXPECT_THAT(ChangesAtALook(Held()), ElementsAre(HasSubstr(R"("suspend":true)")));
  Set([this] {
    jobs_ = Json::array({MakeJob(kRun)});
    pods_ = Json::array({RunningPod()});
  });
  EXPECT_THAT(ChangesAtALook(Held()), IsEmpty());
}

TEST_F(BackendHoldTest, AJobInAQueueIsAsHeldAsItIsWished) {
  jobs_ = Json::array({HalfLaunched(true)});
  EXPECT_THAT(ChangesAtALook(Held()), ElementsAre(HasSubstr(kHeldQueue)));
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
  backend_->capabilities().allow_starts();
  EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
  TakeChanges();
  (void)backend_->Observe({Launched()});
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(R"("suspend":true)")));
  Set([this] { pods_ = Json::array(); });
  Start({kRun});
  backend_->capabilities().allow_starts();
  EXPECT_TRUE(HoldOne(*backend_, Launched(), false).ok());
  TakeChanges();
  (void)backend_->Observe({Held()});
  EXPECT_THAT(AwaitChange("PATCH "), ElementsAre(HasSubstr(R"("suspend":false)")));
}

TEST_F(BackendHoldTest, WhatAHoldHasTakenBackGoesOnFromMustersQueue) {
  Start({});
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  TakeChanges();
  EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
  EXPECT_THAT(AwaitReason(Held(), "held: "), HasSubstr("held: it starts once it is released"));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(kHeldQueue)));
  EXPECT_TRUE(HoldOne(*backend_, Launched(), false).ok());
  EXPECT_EQ(backend_->Observe({Launched()}).observations.size(), 1);
  EXPECT_THAT(AwaitChange(kLaunchComplete), ElementsAre(HasSubstr(R"("team")")));
}

TEST_F(BackendHoldTest, WhatAHoldHasTakenBackDoesNotGoOnBeforeItsPodsHaveGone) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = true;
  jobs_[0]["metadata"]["annotations"] = {{kHeldAnnotation, "true"}};
  pods_ = Json::array({PodOf("node-1", Json::object())});
  pods_[0]["status"] = {{"phase", "Pending"}};
  pods_[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  EXPECT_THAT(ChangesAtALook(Launched()), IsEmpty());
  Start({kRun});
  backend_->capabilities().allow_starts();
  EXPECT_EQ(backend_->Observe({Launched()}).observations[0].reason.message(),
            "the release waits: its pod k7m2-1-1-0 is still being taken away on node node-1");
  Set([this] { pods_ = Json::array(); });
  EXPECT_THAT(ChangesAtALook(Launched()), ElementsAre(HasSubstr(R"("suspend":false)")));
}

TEST_F(BackendHoldTest, WhatIsBeingLetGoIsNotCalledHeld) {
  assignment_->mutable_spec()->clear_kubernetes();
  std::string reason;
  const Meanwhile meanwhile(
      this, [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
        if (request.method == "PATCH" && reason.empty()) {
          backend_->capabilities().note_hold(kRun, true);
          reason = backend_->Observe({Held()}).observations[0].reason.message();
        }
        return std::nullopt;
      });
  Start({});
  AwaitWatches();  // they would wait for the answer to the patch
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  Set([&] { EXPECT_EQ(reason, "waits for its turn to start"); });
}

TEST_F(BackendHoldTest, AHoldWaitsForTheAnswerThatLetsItsRunGo) {
  jobs_ = Json::array({HalfLaunched(true)});
  bool is_let_go = false;
  const Meanwhile meanwhile(this,
                            [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
                              if (request.method != "PATCH" || std::exchange(is_let_go, true))
                                return std::nullopt;
                              EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
                              (void)backend_->Observe({Held()});
                              jobs_[0]["metadata"]["resourceVersion"] = "6";
                              return std::nullopt;
                            });
  Start({kRun});
  backend_->capabilities().allow_starts();
  std::string hold;
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (hold.empty() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(2));
    (void)backend_->Observe({Launched()});
    for (const std::string& change : TakeChanges()) {
      if (change.find(kHeldQueue) != std::string::npos) hold = change;
    }
  }
  EXPECT_THAT(hold, HasSubstr(R"("resourceVersion":"6")")) << "of the Job that was let go";
}

TEST_F(BackendHoldTest, AHoldThatFailsIsTriedAgainAfterAPauseAndSaysSoMeanwhile) {
  jobs_ = Json::array({HalfLaunched(true)});
  forbids_patches_ = true;
  Start({kRun});
  backend_->capabilities().allow_starts();
  EXPECT_THAT(AwaitReason(Held(), "waits: "),
              AllOf(HasSubstr("; the hold waits: "), HasSubstr("cannot patch resource")));
  EXPECT_EQ(TakeChanges().size(), 1);
  const absl::Time refused = absl::Now();
  while (!AwaitReason(Held(), "waits: ").empty() && TakeChanges().empty()) {
    ASSERT_LT(absl::Now() - refused, absl::Seconds(60)) << "it is tried again";
  }
  EXPECT_GE(absl::Now() - refused, absl::Seconds(9)) << "after a pause";
}

TEST_F(BackendHoldTest, WhatIsSeenOfRunsIsToldWhileTheServerTakesItsTimeForAHold) {
  jobs_ = Json::array({HalfLaunched(true)});
  std::promise<void> told;
  const auto keeps = answer_first_;
  answer_first_ = [keeps, is_told = told.get_future().share()](const ScriptedRequest& request) {
    if (request.method == "PATCH") {
      EXPECT_EQ(is_told.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    }
    return keeps(request);
  };
  Start({kRun});
  backend_->capabilities().allow_starts();
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
  backend_->capabilities().allow_starts();
  const agents::Observation seen = backend_->Observe({Held()}).observations[0];
  EXPECT_EQ(seen.state, v1::RUN_STATE_PENDING);
  EXPECT_THAT(seen.reason.message(),
              HasSubstr("the hold comes too late: its pod k7m2-1-1-0 has the node"));
}

TEST_F(BackendHoldTest, WhatOthersHaveSuspendedIsNotCalledHeld) {
  assignment_->mutable_spec()->clear_kubernetes();
  jobs_ = Json::array({MakeJob(kRun)});
  jobs_[0]["spec"]["suspend"] = true;
  Start({kRun});
  backend_->capabilities().allow_starts();
  EXPECT_EQ(backend_->Observe({Held()}).observations[0].reason.message(), "suspended by others");
}

TEST_F(BackendHoldTest, AReleaseLetsAJobGoAlsoIfTheServerCarriesOutTheHoldAfterIt) {
  Start({});
  TakeChanges();
  Set([this] { hold_at_ = "/secrets "; });  // the hold comes in the midst of the launch
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  Set([this] { hold_at_.clear(); });
  // The server carries out the change for the hold only after the one that lets the Job go.
  Json late;
  const Meanwhile meanwhile(
      this, [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
        if (request.method == "PATCH" && request.body.find(kHeldQueue) != std::string::npos) {
          late = Json::parse(request.body);
          return ScriptedReply{.hangs_up = true};
        }
        std::optional<ScriptedReply> reply = answer_first_(request);
        if (request.method == "PATCH" && !late.is_null()) {
          jobs_[0].merge_patch(std::exchange(late, nullptr));
          return ScriptedReply{.body = jobs_[0].dump()};  // as the watch would tell
        }
        return reply;
      });
  (void)backend_->Observe({Held()});
  (void)AwaitChange(kHeldQueue);
  (void)AwaitReason(Held(), "the hold waits");
  EXPECT_TRUE(HoldOne(*backend_, Launched(), false).ok());
  // The release lets it go, and looks that find it do so again: nobody else would.
  int times = 0;
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (times < 2 && absl::Now() < end) {
    (void)backend_->Observe({Launched()});
    for (const std::string& change : TakeChanges())
      times += change.find(kLaunchComplete) != change.npos ? 1 : 0;
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_EQ(times, 2);
}

TEST_F(BackendHoldTest, WhatCannotBeNotedAtAJobIsTriedAgainAfterAPauseAndSaysSo) {
  jobs_ = Json::array({HalfLaunched(false)});
  forbids_patches_ = true;
  Start({kRun});
  backend_->capabilities().allow_starts();
  TakeChanges();
  EXPECT_THAT(AwaitReason(Launched(), "could not be noted"), HasSubstr("cannot patch"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(HoldOne(*backend_, Launched(), false).ok());  // there are news of it
    (void)backend_->Observe({Launched()});
  }
  EXPECT_EQ(TakeChanges().size(), 1) << "not with each look";
}

TEST_F(BackendHoldTest, AHoldThatIsReleasedBeforeItsTurnIsNotCarriedOut) {
  std::vector<agents::RunHandle> runs;
  std::vector<std::string> keys;
  for (int job = 1; job <= kChangeThreads + 2; ++job) {
    const std::string key = "k7m2-" + std::to_string(job) + "-1";
    Json object = HalfLaunched(true);
    object["metadata"]["name"] = object["metadata"]["labels"][kRunLabel] = key;
    object["metadata"]["uid"] = "u-" + key;
    jobs_.push_back(object);
    agents::RunHandle run = Held();
    run.run_key = key;
    run.external_id = "lab/" + key;
    auto assignment = std::make_shared<agent::v1::Assignment>(*assignment_);
    assignment->set_run_key(key);
    run.assignment = assignment;
    runs.push_back(run);
    keys.push_back(key);
  }
  Start(keys);
  backend_->capabilities().allow_starts();
  AwaitWatches();
  std::promise<void> go_on;
  const Meanwhile meanwhile(
      this,
      [is_told = go_on.get_future().share()](
          const ScriptedRequest& request) -> std::optional<ScriptedReply> {
        if (request.method != "PATCH") return std::nullopt;
        is_told.wait_for(std::chrono::seconds(20));  // a webhook that takes its time
        return ScriptedReply{.status = 503};
      });
  TakeChanges();
  for (const agents::RunHandle& run : runs) EXPECT_TRUE(HoldOne(*backend_, run, true).ok());
  EXPECT_EQ(backend_->Observe(runs).observations.size(), runs.size());
  const agents::RunHandle& released = runs[kChangeThreads];
  EXPECT_TRUE(HoldOne(*backend_, released, false).ok());
  go_on.set_value();
  std::vector<std::string> changes = AwaitChange(keys.back());
  backend_.reset();  // all is done that was begun, and the last has begun after it
  std::ranges::move(TakeChanges(), std::back_inserter(changes));
  EXPECT_THAT(changes, Not(Contains(AllOf(HasSubstr(released.run_key), HasSubstr(kHeldQueue)))));
}

TEST_F(BackendHoldTest, AHoldWaitsForNoDeletions) {
  jobs_ = Json::array({HalfLaunched(true)});
  std::vector<std::string> keys = {kRun};
  std::vector<agents::RunHandle> hopeless;
  // The jobs are more than are ended at once, and each takes more than ten seconds.
  for (int job = 2; job <= 1 + 3 * kDeletionThreads; ++job) {
    const std::string key = "k7m2-" + std::to_string(job) + "-1";
    keys.push_back(key);
    hopeless.push_back(Handle(key));
    jobs_.push_back(MakeJob(key));
    Json pod = PodOf("node-1", {{"waiting", {{"reason", "InvalidImageName"}}}});
    pod["metadata"]["name"] = key + "-0";
    pod["metadata"]["uid"] = "p-" + key;
    pod["metadata"]["labels"][kRunLabel] = key;
    pod["metadata"]["ownerReferences"][0]["uid"] = "u-" + key;
    pod["status"]["phase"] = "Pending";
    pods_.push_back(pod);
  }
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.method != "DELETE") return keeps(request);
    return ScriptedReply{.status = 429, .headers = {"Retry-After: 1"}};
  };
  Start(keys);
  backend_->capabilities().allow_starts();
  EXPECT_EQ(backend_->Observe(hopeless).observations.size(), hopeless.size());
  std::vector<std::string> begun;
  for (int i = 0; i < kDeletionThreads; ++i) begun.push_back("/" + hopeless[i].run_key + " ");
  EXPECT_THAT(AwaitChanges(begun), Not(IsEmpty()));
  EXPECT_TRUE(HoldOne(*backend_, Held(), true).ok());
  EXPECT_EQ(backend_->Observe({Held()}).observations.size(), 1);
  EXPECT_THAT(AwaitChange(kHeldQueue), Contains(HasSubstr(kHeldQueue)));
}

TEST_F(BackendHoldTest, ASecondHoldWaitsForTheSchedulersWordAsTheFirstDid) {
  assignment_->mutable_spec()->clear_kubernetes();
  Start({});
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_TRUE(HoldOne(*backend_, Launched(), true).ok());
  EXPECT_THAT(AwaitReason(Held(), "held: "), HasSubstr("held: it starts")) << "nobody says a word";
  EXPECT_TRUE(HoldOne(*backend_, Launched(), false).ok());
  Set([this] {
    hold_at_ = kLaunchComplete;
  });  // the next one comes in the moment in which it is let go
  TakeChanges();
  EXPECT_THAT(AwaitChangeByLooks(Launched()), ElementsAre(HasSubstr(kLaunchComplete)));
  EXPECT_THAT(AwaitReason(Held(), "the hold waits"), HasSubstr("it was let go in that moment"));
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

// ---- what may start although it is not to

TEST_F(BackendHoldTest, ARunIsNotCalledHeldWhoseLastAnswerWasLostUntilTheServerHasSaidHowItIs) {
  assignment_->mutable_spec()->clear_kubernetes();
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) {
    const bool lets_go =
        request.method == "PATCH" && request.body.find(kLaunchAnnotation) != std::string::npos;
    std::optional<ScriptedReply> reply = keeps(request);
    return lets_go ? std::optional(ScriptedReply{.hangs_up = true}) : reply;
  };
  Start({});
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  Set([this] {
    ASSERT_FALSE(jobs_[0]["spec"]["suspend"].get<bool>()) << "the server has done it";
  });
  backend_->capabilities().note_hold(kRun, true);
  EXPECT_THAT(backend_->Observe({Held()}).observations[0].reason.message(),
              Not(HasSubstr("held: ")));
}

TEST_F(BackendHoldTest, ARunThatIsToBeCanceledIsNotLetGoThoughItsDeletionFails) {
  assignment_->mutable_spec()->clear_kubernetes();
  assignment_->set_held(true);
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) {
    if (request.method == "DELETE") return std::optional(ScriptedReply{.status = 503});
    return keeps(request);
  };
  Start({});
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  agents::RunHandle run = Launched();
  run.cancel_requested = true;
  EXPECT_FALSE(EndOne(*backend_, run).ok());
  EXPECT_THAT(AwaitChange("DELETE "), Not(IsEmpty()));
  Set([this] {
    for (const Json& job : jobs_) EXPECT_TRUE(job["spec"]["suspend"].get<bool>());
  });
  EXPECT_THAT(backend_->Observe({run}).observations[0].reason.message(), Not(HasSubstr("its turn")))
      << "it is in no queue";
}

TEST_F(BackendHoldTest, WhatKueueHasLetGoSaysAtEachLookThatItsHoldWaits) {
  jobs_ = Json::array({HalfLaunched(false)});
  Start({kRun});
  for (const bool is_again : {false, true}) {
    backend_->capabilities().allow_starts();
    EXPECT_THAT(AwaitReason(Held(), "hold"),
                HasSubstr("; the hold waits: Kueue has let it go, and it waits for nodes"))
        << is_again;
  }
}

}  // namespace
}  // namespace muster::kubernetes
