// Signals that the broker asks the agent to send.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agents/core/questions.h"
#include "tests/unit/agents/fake_backend.h"

namespace muster::agents {
namespace {

// A backend that sends signals, if it does.
class SignalingBackend : public FakeBackend {
 public:
  using FakeBackend::FakeBackend;
  Capabilities capabilities() override {
    Capabilities own = FakeBackend::capabilities();
    if (sends) {
      own.send_signal = [this](const RunHandle& run, const RunSignal& signal) {
        seen = run.run_key + " " + std::to_string(signal.number) + " " +
               v1::SignalTarget_Name(signal.target);
        return answer;
      };
    }
    return own;
  }
  bool sends = true;
  absl::Status answer;
  std::string seen;
};

class SignalQuestionTest : public testing::Test {
 protected:
  agent::v1::AgentAnswer Ask(std::optional<RunHandle> run) {
    agent::v1::AgentQuestion question;
    question.set_id(7);
    question.mutable_signal()->set_run_key("k7m2-1-1");
    question.mutable_signal()->set_signal(10);
    question.mutable_signal()->set_target(v1::SIGNAL_TARGET_BATCH);
    Shared<std::optional<agent::v1::AgentAnswer>> answered;
    Questions questions(&backend_);
    questions.Ask(
        question,
        [&](agent::v1::AgentAnswer answer) {
          answered.With([&](auto& place) { place = std::move(answer); });
        },
        std::move(run));
    EXPECT_TRUE(answered.Eventually([](auto& place) { return place.has_value(); }));
    return answered.With([](auto& place) { return place.value_or(agent::v1::AgentAnswer()); });
  }
  static RunHandle Held() {
    RunHandle run;
    run.run_key = "k7m2-1-1";
    return run;
  }

  Shared<ClusterState> cluster_;
  SignalingBackend backend_{&cluster_, ""};
};

TEST_F(SignalQuestionTest, TheBackendGetsRunNumberAndTarget) {
  const agent::v1::AgentAnswer answer = Ask(Held());
  EXPECT_EQ(answer.id(), 7u);
  EXPECT_TRUE(answer.has_signal());
  EXPECT_FALSE(answer.has_error());
  EXPECT_EQ(backend_.seen, "k7m2-1-1 10 SIGNAL_TARGET_BATCH");
}

TEST_F(SignalQuestionTest, ARunThatTheAgentDoesNotHoldIsNotFound) {
  EXPECT_EQ(Ask(std::nullopt).error().code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(backend_.seen, "");
}

TEST_F(SignalQuestionTest, TheBackendsErrorIsTheAnswer) {
  backend_.answer = absl::FailedPreconditionError("it has ended");
  const agent::v1::AgentAnswer answer = Ask(Held());
  EXPECT_EQ(answer.error().code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(answer.error().message(), "it has ended");
}

TEST_F(SignalQuestionTest, ABackendThatSendsNoneSaysSo) {
  backend_.sends = false;
  EXPECT_EQ(Ask(Held()).error().code(), static_cast<int>(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace muster::agents
