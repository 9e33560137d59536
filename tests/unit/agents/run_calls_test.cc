// Tests which calls go to the backend together, and that each run gets its own answer.
#include "agents/core/run_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "contract/errors.h"
#include "tests/unit/agents/fake_backend.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

class RunCallsTest : public testing::Test {
 protected:
  using Answers = std::map<std::string, absl::Status>;

  static RunHandle Run(const std::string& key) {
    RunHandle run;
    run.run_key = key;
    return run;
  }
  static RunHandle Fresh(const std::string& key, bool has_files) {
    RunHandle run = Run(key);
    agent::v1::Assignment assignment;
    assignment.set_run_key(key);
    if (has_files) assignment.mutable_spec()->add_uploads();
    run.assignment = std::make_shared<const agent::v1::Assignment>(assignment);
    return run;
  }
  std::unique_ptr<RunCalls> MakeCalls(int file_threads = 0) {
    const auto fetch = [](const std::string& run_key) {
      EXPECT_EQ(run_key, "needy");
      return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_SECRET",
                             "there is no secret hf");
    };
    return std::make_unique<RunCalls>(
        4, file_threads, &backend_, fetch, [this](const Input& input) {
          answers_.With([&](Answers& answers) {
            if (const auto* launched = std::get_if<Launched>(&input)) {
              if (launched->outcome.kind == LaunchOutcome::Kind::kRefused)
                answers[launched->run_key + " refused"] = absl::OkStatus();
            }
            if (const auto* canceled = std::get_if<CancelAsked>(&input))
              answers[canceled->run_key] = canceled->status;
            if (const auto* forgotten = std::get_if<Forgotten>(&input))
              answers[forgotten->run_key + " forgotten"] = absl::OkStatus();
            if (const auto* read = std::get_if<UsageRead>(&input))
              answers["usage"] = read->usage.status();
            if (const auto* held = std::get_if<HoldAsked>(&input))
              answers[held->run_key + (held->held ? " held" : " released")] = held->status;
          });
        });
  }
  Answers AnswersOf(size_t runs) {
    EXPECT_TRUE(answers_.Eventually([&](Answers& answers) { return answers.size() == runs; }));
    return answers_.With([](Answers& answers) { return answers; });
  }
  std::vector<size_t> CancelBatches() {
    return cluster_.With([](ClusterState& state) { return state.cancel_batches; });
  }

  Shared<ClusterState> cluster_;
  Shared<Answers> answers_;
  FakeBackend backend_{&cluster_, ""};
};

TEST_F(RunCallsTest, EachRunThatIsForgottenIsToldAfterwards) {
  const std::unique_ptr<RunCalls> calls = MakeCalls();
  calls->Forget(Run("a"));
  calls->Forget(Run("b"));
  calls->Start();
  const absl::Status ok;
  EXPECT_THAT(AnswersOf(2), ElementsAre(Pair("a forgotten", ok), Pair("b forgotten", ok)));
}

TEST_F(RunCallsTest, LaunchesWithFilesHaveThreadsOfTheirOwn) {
  cluster_.With([](ClusterState& state) { state.launches_hang = true; });
  const std::unique_ptr<RunCalls> calls = MakeCalls(/*file_threads=*/2);
  for (const char* key : {"file 1", "file 2", "file 3"}) calls->Launch(Fresh(key, true));
  calls->Launch(Fresh("other", false));
  calls->Start();
  const auto three = [](ClusterState& state) { return state.launched.size() == 3; };
  ASSERT_TRUE(cluster_.Eventually(three));
  EXPECT_THAT(cluster_.With([](ClusterState& state) { return state.launched; }),
              UnorderedElementsAre("file 1", "file 2", "other"));
  cluster_.With([](ClusterState& state) { state.launches_hang = false; });
  EXPECT_TRUE(
      cluster_.Eventually([](ClusterState& state) { return state.launched.back() == "file 3"; }));
}

TEST_F(RunCallsTest, ARunWhoseSecretIsGoneIsRefusedAndTheOthersAreLaunched) {
  const std::unique_ptr<RunCalls> calls = MakeCalls();
  RunHandle needy = Run("needy");
  agent::v1::Assignment assignment;
  assignment.set_run_key("needy");
  assignment.mutable_spec()->add_secrets()->set_name("hf");
  needy.assignment = std::make_shared<const agent::v1::Assignment>(assignment);
  calls->Launch(needy);
  calls->Launch(Fresh("other", false));
  calls->Start();
  EXPECT_THAT(AnswersOf(1), ElementsAre(Pair("needy refused", absl::OkStatus())));
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.launched.size() == 1; }));
  EXPECT_THAT(cluster_.With([](ClusterState& state) { return state.launched; }),
              ElementsAre("other"));
}

TEST(BatchLaneTest, WhatDoesNotGoAlongIsTakenByACallOfItsOwnAndNothingIsLeft) {
  Shared<std::vector<std::vector<int>>> calls;
  BatchLane<int> lane(
      1, 100,
      [&](const std::vector<int>& items) { calls.With([&](auto& all) { all.push_back(items); }); },
      [](int first, int next, size_t before) { return first / 10 == next / 10 && before < 2; });
  for (const int item : {11, 12, 13, 21, 22, 14}) lane.Add(item);
  lane.Start();
  EXPECT_TRUE(calls.Eventually([](const auto& all) { return all.size() == 4; }));
  calls.With([](const auto& all) {
    EXPECT_THAT(all, ElementsAre(ElementsAre(11, 12), ElementsAre(13), ElementsAre(21, 22),
                                 ElementsAre(14)));
  });
}

TEST_F(RunCallsTest, CancelsThatComeWhileOneIsUnderWayGoTogetherEachWithItsOwnAnswer) {
  cluster_.With([](ClusterState& state) {
    state.max_end_batch = 3;
    state.cancels_hang = true;
    state.cancels["c"] = absl::UnavailableError("no answer");
  });
  const std::unique_ptr<RunCalls> calls = MakeCalls();
  calls->End(Run("a"));
  calls->Start();
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& s) { return s.cancel_batches.size() == 1; }));
  for (const char* key : {"b", "c", "d", "e"}) {
    calls->End(Run(key));
    calls->Start();
  }
  cluster_.With([](ClusterState& state) { state.cancels_hang = false; });
  const absl::Status ok;
  EXPECT_THAT(AnswersOf(5), ElementsAre(Pair("a", ok), Pair("b", ok),
                                        Pair("c", absl::UnavailableError("no answer")),
                                        Pair("d", ok), Pair("e", ok)));
  EXPECT_THAT(CancelBatches(), ElementsAre(1u, 3u, 1u));
}

TEST_F(RunCallsTest, ABackendThatCancelsOneByOneDoesSoAtTheSameTime) {
  cluster_.With([](ClusterState& state) { state.cancels_hang = true; });
  const std::unique_ptr<RunCalls> calls = MakeCalls();
  for (const char* key : {"a", "b", "c"}) calls->End(Run(key));
  calls->Start();
  EXPECT_TRUE(cluster_.Eventually([](ClusterState& s) { return s.cancel_batches.size() == 3; }));
  cluster_.With([](ClusterState& state) { state.cancels_hang = false; });
  AnswersOf(3);
  EXPECT_THAT(CancelBatches(), ElementsAre(1u, 1u, 1u));
}

TEST_F(RunCallsTest, HoldsAndReleasesAreACallEach) {
  cluster_.With([](ClusterState& state) { state.max_end_batch = 10; });
  const std::unique_ptr<RunCalls> calls = MakeCalls();
  calls->Hold(Run("a"), true);
  calls->Hold(Run("b"), false);
  calls->Hold(Run("c"), true);
  calls->Start();
  const absl::Status ok;
  EXPECT_THAT(AnswersOf(3),
              ElementsAre(Pair("a held", ok), Pair("b released", ok), Pair("c held", ok)));
  EXPECT_THAT(cluster_.With([](ClusterState& state) { return state.hold_batches; }),
              ElementsAre(2u, 1u));
}

TEST_F(RunCallsTest, UsageIsAskedForBesideACallThatHangs) {
  cluster_.With([](ClusterState& state) {
    state.usage = absl::StatusOr<UsageByRun>(absl::UnavailableError("slurmdbd is away"));
    state.launches_hang = true;
  });
  const auto calls = MakeCalls();
  calls->Launch(Fresh("a", /*has_files=*/false));
  calls->Start();
  calls->ReadUsage({Run("b")});
  EXPECT_EQ(AnswersOf(1)["usage"].message(), "slurmdbd is away");
  cluster_.With([](ClusterState& state) { state.launches_hang = false; });
}

}  // namespace
}  // namespace muster::agents
