// Launches that were cut short, that Kueue overtakes, or that are repeated.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/kubernetes/hold_fixture.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kIsThere[] = R"({"kind": "Status", "reason": "AlreadyExists"})";

class BackendRelaunchTest : public BackendHoldTest {
 protected:
  // Makes a launch whose Secret goes out over a kept connection, which breaks then; what is sent
  // anew, and once more, is answered so.
  agents::LaunchOutcome LaunchWhileAKeptConnectionBreaks(
      const std::vector<ScriptedReply>& answers) {
    size_t posts = 0;
    const Meanwhile meanwhile(
        this, [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
          if (request.method != "POST" || !request.target.ends_with("/secrets"))
            return std::nullopt;
          if (++posts == 1) return ScriptedReply{.hangs_up = true};  // made, and nobody heard so
          return answers[std::min(posts - 2, answers.size() - 1)];
        });
    Start({});
    AwaitWatches();
    agents::LaunchOutcome outcome;
    // Another thread's call may have taken the kept one, and one that was new breaks for good.
    for (int tries = 0; tries < 50; ++tries) {
      Set([&] { posts = 0; });
      outcome = LaunchOne(*backend_, *assignment_);
      if (outcome.kind != agents::LaunchOutcome::Kind::kUnclear) break;
    }
    Set([&] { EXPECT_EQ(posts, answers.size() + 1); });
    return outcome;
  }
};

// ---- launches that were cut short

TEST_F(BackendRelaunchTest, WhatHasBegunBeforeItsLaunchWasThroughIsFound) {
  jobs_ = Json::array({HalfLaunched(false)});
  Start({});
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agents::LookupOutcome::Kind::kAbsent)
      << "its Secret may be missing: the next launch makes it";
  Set([this] { pods_ = Json::array({RunningPod()}); });
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agents::LookupOutcome::Kind::kFound);
  Set([this] {
    pods_ = Json::array();
    jobs_[0]["status"] = EndedJob(kRun)["status"];
  });
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agents::LookupOutcome::Kind::kFound);
}

TEST_F(BackendRelaunchTest, ARunThatWasNeverMadeIsAbsentAlsoIfAnotherNamespaceIsMissing) {
  config_.namespaces = {"lab", "gone"};
  bool is_there = false;
  const Meanwhile meanwhile(
      this, [&is_there](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
        if (request.target.find("/namespaces/gone/") != std::string::npos)
          return ScriptedReply{.status = 403, .body = kForbidden};
        if (request.target.ends_with("/namespaces/gone"))
          return ScriptedReply{.status = is_there ? 200 : 404, .body = "{}"};
        return std::nullopt;
      });
  Start({});
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agents::LookupOutcome::Kind::kAbsent);
  Set([&is_there] { is_there = true; });
  EXPECT_EQ(backend_->Lookup(Handle(kRun)).kind, agents::LookupOutcome::Kind::kCouldNotAsk)
      << "it may be where the agent may not look";
}

TEST_F(BackendRelaunchTest, TheSecretIsMadeLastForPodsWaitForThatAlone) {
  assignment_->mutable_spec()->set_nodes(2);
  Start({});
  TakeChanges();
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/services "),
                                         HasSubstr("/secrets "), HasSubstr("PATCH ")));
}

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
  EXPECT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/services "),
                                         HasSubstr("/secrets "), HasSubstr(kLaunchComplete)));
}

TEST_F(BackendRelaunchTest, WhatWasThereBeforeTheJobIsAnothersAndStaysAndTheRunSaysWhoseItIsNot) {
  assignment_->mutable_spec()->set_nodes(2);
  for (const char* kind : {"Service", "Secret"}) {
    const std::string collection = kind == std::string("Secret") ? "/secrets" : "/services";
    const Meanwhile meanwhile(
        this, [&collection](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
          if (request.method != "POST" || !request.target.ends_with(collection))
            return std::nullopt;
          return ScriptedReply{.status = 409, .body = kIsThere};
        });
    Start({});
    TakeChanges();
    const agents::LaunchOutcome outcome = LaunchOne(*backend_, *assignment_);
    EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
    EXPECT_THAT(outcome.failure.message(),
                HasSubstr(std::string("create ") + kind + " lab/k7m2-1-1: a " + kind +
                          " of that name is there, and is not this run's"));
    EXPECT_THAT(outcome.failure.remedy(), HasSubstr(std::string(kind) + " lab/k7m2-1-1"));
    const std::vector<std::string> changes = TakeChanges();
    EXPECT_EQ(changes.back().substr(0, changes.back().find(' ', 7)),
              "DELETE /apis/batch/v1/namespaces/lab/jobs/k7m2-1-1");
    EXPECT_EQ(std::ranges::count_if(changes, [](auto& one) { return one.starts_with("DELETE"); }),
              1);
  }
}

TEST_F(BackendRelaunchTest, WhatAKeptConnectionMadeBeforeItBrokeIsTheRunsOwn) {
  const ScriptedReply is_there{.status = 409, .body = kIsThere};
  const agents::LaunchOutcome outcome = LaunchWhileAKeptConnectionBreaks({is_there});
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.failure.message();
}

TEST_F(BackendRelaunchTest, WhatAKeptConnectionMadeIsTheRunsOwnAlsoIfTheServerSentItAwayThen) {
  const ScriptedReply is_there{.status = 409, .body = kIsThere};
  for (const int away : {401, 429}) {
    const agents::LaunchOutcome outcome =
        LaunchWhileAKeptConnectionBreaks({{.status = away}, is_there});
    EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched)
        << away << ": " << outcome.failure.message();
  }
}

TEST_F(BackendRelaunchTest, ARightThatIsMissingIsToldOfTheRunAndNotOfTheServer) {
  forbids_patches_ = true;
  Start({});
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  const agents::ObserveOutcome seen = backend_->Observe({Launched()});
  EXPECT_TRUE(seen.scheduler.ok()) << seen.scheduler;
  EXPECT_THAT(seen.observations[0].reason.message(), HasSubstr("cannot patch resource"));
}

TEST_F(BackendRelaunchTest, ARunWhosePatchWasCutOffSaysSoAndIsLetGoLater) {
  const auto keeps = answer_first_;
  answer_first_ = [keeps](const ScriptedRequest& request) {
    return request.method == "PATCH" ? ScriptedReply{.hangs_up = true} : keeps(request);
  };
  Start({});
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(backend_->Observe({Launched()}).observations[0].reason.message(),
              HasSubstr("its Job could not be let go yet"));
}

// ---- launches that are repeated

TEST_F(BackendRelaunchTest, ALaunchThatIsRepeatedForARunThatIsHeldByNowTakesItsJobOutOfItsQueue) {
  bool is_suspended = true;
  const Meanwhile meanwhile(this,
                            [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
                              if (request.method != "POST" || !request.target.ends_with("/jobs"))
                                return std::nullopt;
                              jobs_ = Json::array({HalfLaunched(is_suspended)});
                              return ScriptedReply{.status = 409, .body = kIsThere};
                            });
  assignment_->set_held(true);
  Start({});
  TakeChanges();
  ASSERT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(),
              ElementsAre(HasSubstr("/jobs "), HasSubstr(kHeldQueue), HasSubstr("/secrets ")));
  Set([this] { denies_holds_ = true; });
  EXPECT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kUnclear)
      << "Kueue has let it go in this moment: the next launch finds that";
  Set([&] { is_suspended = false; });
  TakeChanges();
  EXPECT_EQ(LaunchOne(*backend_, *assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("/jobs "), HasSubstr("/secrets ")));
}

}  // namespace
}  // namespace muster::kubernetes
