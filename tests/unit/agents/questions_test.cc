#include "agents/core/questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "agents/core/clean_text.h"
#include "tests/unit/agents/fake_backend.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;

using Answers = std::vector<agent::v1::AgentAnswer>;

class QuestionsTest : public testing::Test {
 protected:
  ~QuestionsTest() override { LetChecksEnd(); }

  void LetChecksEnd() {
    cluster_.With([](ClusterState& state) { state.checks_hang = false; });
  }
  void Ask(agent::v1::AgentQuestion question) {
    questions_.Ask(std::move(question), [this](agent::v1::AgentAnswer answer) {
      answers_.With([&](Answers& answers) { answers.push_back(std::move(answer)); });
    });
  }
  void AskCheck(uint64_t id) {
    agent::v1::AgentQuestion question;
    question.set_id(id);
    question.mutable_check();
    Ask(std::move(question));
  }
  void AskDescribe() {
    agent::v1::AgentQuestion question;
    question.mutable_describe();
    Ask(std::move(question));
  }
  Answers Await(size_t count) {
    EXPECT_TRUE(answers_.Eventually([&](Answers& answers) { return answers.size() >= count; }));
    return answers_.With([](Answers& answers) { return answers; });
  }

  Shared<ClusterState> cluster_;
  Shared<Answers> answers_;
  FakeBackend backend_{&cluster_, ""};
  Questions questions_{&backend_};
};

TEST_F(QuestionsTest, OneMoreThanTheBoundIsRefusedAtOnce) {
  cluster_.With([](ClusterState& state) { state.checks_hang = true; });
  for (int i = 1; i <= kMaxQuestions; ++i) AskCheck(i);
  AskCheck(99);
  const agent::v1::AgentAnswer refused = Await(1)[0];
  EXPECT_EQ(refused.id(), 99u);
  EXPECT_EQ(refused.error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  LetChecksEnd();
  EXPECT_EQ(Await(kMaxQuestions + 1).size(), static_cast<size_t>(kMaxQuestions + 1));
}

TEST_F(QuestionsTest, ACheckThatHangsDelaysNoPlan) {
  cluster_.With([](ClusterState& state) { state.checks_hang = true; });
  AskCheck(1);
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.checks_begun == 1; }));
  agent::v1::AgentQuestion question;
  question.set_id(2);
  question.mutable_plan()->set_user("ada");
  Ask(question);
  EXPECT_TRUE(Await(1)[0].has_plan());
}

TEST_F(QuestionsTest, ForeignBytesDoNotLeaveTheAgent) {
  AskCheck(1);
  EXPECT_EQ(Await(1)[0].check().checks(0).subject(), "fake ?");
}

TEST_F(QuestionsTest, ACheckEndsWithTheLineThatSaysAsWhomJobsRun) {
  v1::ClusterCheck line;
  line.set_subject("users");
  Questions questions(&backend_, line);
  agent::v1::AgentQuestion question;
  question.mutable_check();
  questions.Ask(std::move(question), [this](agent::v1::AgentAnswer answer) {
    answers_.With([&](Answers& answers) { answers.push_back(std::move(answer)); });
  });
  const v1::ClusterChecks checks = Await(1)[0].check();
  ASSERT_EQ(checks.checks_size(), 2);
  EXPECT_EQ(checks.checks(1).subject(), "users");
}

TEST_F(QuestionsTest, AnErrorIsTheAnswerWithItsWords) {
  cluster_.With([](ClusterState& state) { state.details = absl::UnavailableError("no answer"); });
  AskDescribe();
  const agent::v1::AgentAnswer answer = Await(1)[0];
  EXPECT_EQ(answer.error().code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(answer.error().message(), "no answer");
}

TEST_F(QuestionsTest, AnAnswerThatIsTooLargeIsAnError) {
  cluster_.With([](ClusterState& state) {
    for (int i = 0; i < 40; ++i) state.details->add_nodes()->set_reason(std::string(100'000, 'x'));
  });
  AskDescribe();
  EXPECT_EQ(Await(1)[0].error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
}

TEST_F(QuestionsTest, ALongPlanIsCutAndSaysSo) {
  agent::v1::AgentQuestion question;
  question.mutable_plan()->mutable_spec()->set_name(std::string(kMaxSubmissionBytes, 'n'));
  Ask(question);
  const agent::v1::AgentAnswer answer = Await(1)[0];
  EXPECT_LT(answer.plan().submission().size(), kMaxSubmissionBytes + 100);
  EXPECT_THAT(answer.plan().submission(), HasSubstr("cut here"));
}

TEST_F(QuestionsTest, AQuestionOfALaterVersionIsAnsweredAsUnknown) {
  Ask({});
  EXPECT_EQ(Await(1)[0].error().code(), static_cast<int>(absl::StatusCode::kUnimplemented));
}

TEST(CleanAllTextsTest, ReachesTextsInListsMessagesAndMaps) {
  v1::ClusterDetails details;
  v1::Node* node = details.add_nodes();
  node->set_name("n\xFF");
  node->add_features("f\xFF");
  (*node->mutable_gpus())["g\xFF"] = 3;
  CleanAllTexts(&details, 100);
  EXPECT_EQ(details.nodes(0).name(), "n?");
  EXPECT_EQ(details.nodes(0).features(0), "f?");
  EXPECT_EQ(details.nodes(0).gpus().at("g?"), 3u);
}

}  // namespace
}  // namespace muster::agents
