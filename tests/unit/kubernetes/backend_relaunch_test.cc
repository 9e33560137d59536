// Launches that were cut short, that Kueue overtakes, or that are repeated.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "tests/unit/kubernetes/hold_fixture.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using BackendRelaunchTest = BackendHoldTest;

// ---- launches that were cut short

TEST_F(BackendRelaunchTest, WhatHasBegunBeforeItsLaunchWasThroughIsFound) {
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

TEST_F(BackendRelaunchTest, ARunThatWasNeverMadeIsAbsentAlsoIfAnotherNamespaceIsMissing) {
  config_.namespaces = {"lab", "gone"};
  bool is_there = false;
  answer_first_ = [&is_there](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.target.find("/namespaces/gone/") != std::string::npos)
      return ScriptedReply{.status = 403, .body = kForbidden};
    if (request.target.ends_with("/namespaces/gone"))
      return ScriptedReply{.status = is_there ? 200 : 404, .body = "{}"};
    return std::nullopt;
  };
  Start({});
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agent::LookupOutcome::Kind::kAbsent);
  Set([&is_there] { is_there = true; });
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agent::LookupOutcome::Kind::kCouldNotAsk)
      << "it may be where the agent may not look";
  backend_.reset();
}

TEST_F(BackendRelaunchTest, TheSecretIsMadeLastForPodsWaitForThatAlone) {
  assignment_->mutable_spec()->set_nodes(2);
  Start({});
  TakeChanges();
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/services "),
                                         HasSubstr("/secrets "), HasSubstr("PATCH ")));
}

constexpr char kIsThere[] = R"({"kind": "Status", "reason": "AlreadyExists"})";

TEST_F(BackendRelaunchTest, ASecondLaunchLeavesWhatTheFirstHasMadeAndGoesOn) {
  assignment_->mutable_spec()->set_nodes(2);
  const auto keeps = answer_first_;
  answer_first_ = [this, keeps](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.method != "POST") return keeps(request);
    if (request.target.ends_with("/jobs")) jobs_ = Json::array({HalfLaunched(true)});
    return ScriptedReply{.status = 409, .body = kIsThere};
  };
  Start({});
  TakeChanges();
  EXPECT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/services "),
                                         HasSubstr("/secrets "), HasSubstr(kLaunchComplete)));
}

TEST_F(BackendRelaunchTest, WhatWasThereBeforeTheJobIsAnothersAndStaysAndTheRunSaysWhoseItIsNot) {
  assignment_->mutable_spec()->set_nodes(2);
  for (const char* kind : {"Service", "Secret"}) {
    const std::string collection = kind == std::string("Secret") ? "/secrets" : "/services";
    const auto keeps = answer_first_;
    answer_first_ = [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
      if (request.method == "POST" && request.target.ends_with(collection))
        return ScriptedReply{.status = 409, .body = kIsThere};
      return keeps(request);
    };
    Start({});
    TakeChanges();
    const agent::LaunchOutcome outcome = backend_->Launch(*assignment_);
    EXPECT_EQ(outcome.kind, agent::LaunchOutcome::Kind::kRefused);
    EXPECT_THAT(outcome.failure.message(),
                HasSubstr(std::string("create ") + kind + " lab/k7m2-1-1: a " + kind +
                          " of that name is there, and is not this run's"));
    EXPECT_THAT(outcome.failure.suggestion(), HasSubstr(std::string(kind) + " lab/k7m2-1-1"));
    const std::vector<std::string> changes = TakeChanges();
    EXPECT_EQ(changes.back().substr(0, changes.back().find(' ', 7)),
              "DELETE /apis/batch/v1/namespaces/lab/jobs/k7m2-1-1");
    EXPECT_EQ(std::ranges::count_if(changes, [](auto& one) { return one.starts_with("DELETE"); }),
              1);
    answer_first_ = keeps;
  }
}

TEST_F(BackendRelaunchTest, WhatAKeptConnectionMadeBeforeItBrokeIsTheRunsOwn) {
  bool has_broken = false;
  const auto keeps = answer_first_;
  answer_first_ = [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.method != "POST" || !request.target.ends_with("/secrets")) return keeps(request);
    if (std::exchange(has_broken, true)) return ScriptedReply{.status = 409, .body = kIsThere};
    return ScriptedReply{.hangs_up = true};  // made, and nobody heard so
  };
  Start({});
  AwaitWatches();
  EXPECT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_TRUE(has_broken);
}

TEST_F(BackendRelaunchTest, ARightThatIsMissingIsToldOfTheRunAndNotOfTheServer) {
  Start({});
  forbids_patches_ = true;
  ASSERT_EQ(backend_->Launch(*assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  const agent::ObserveOutcome seen = backend_->Observe({Launched()});
  EXPECT_TRUE(seen.scheduler.ok()) << seen.scheduler;
  EXPECT_THAT(seen.observations[0].reason, HasSubstr("cannot patch resource"));
}

TEST_F(BackendRelaunchTest, ARunWhosePatchWasCutOffSaysSoAndIsLetGoLater) {
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

TEST_F(BackendRelaunchTest, ALaunchThatIsRepeatedForARunThatIsHeldByNowTakesItsJobOutOfItsQueue) {
  const auto keeps = answer_first_;
  bool is_suspended = true;
  answer_first_ = [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.method != "POST" || !request.target.ends_with("/jobs")) return keeps(request);
    jobs_ = Json::array({HalfLaunched(is_suspended)});
    return ScriptedReply{.status = 409, .body = kIsThere};
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
