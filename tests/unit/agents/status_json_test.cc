#include "agents/core/status_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace muster::agents {
namespace {

using ::testing::HasSubstr;

// Lines as TAO writes them.
constexpr const char* kStarted =
    R"({"date": "3/7/2025", "time": "9:5:1", "status": "STARTED", "verbosity": "INFO", "message": "Starting DINO training."})"
    "\n";
constexpr const char* kRunning =
    R"({"date": "3/7/2025", "time": "9:7:44", "status": "RUNNING", "verbosity": "INFO", "message": "Train and Val metrics generated.", "epoch": 3, "max_epoch": 12, "kpi": {"val_loss": 0.25, "best": "no"}})"
    "\n";
constexpr const char* kSuccess =
    R"({"date": "3/7/2025", "time": "10:1:2", "status": "SUCCESS", "verbosity": "INFO", "message": "Train finished successfully."})"
    "\n";
constexpr const char* kFailure =
    R"({"date": "3/7/2025", "time": "10:1:2", "status": "FAILURE", "verbosity": "ERROR", "message": "No classes in the dataset"})"
    "\n";
constexpr const char* kSkipped = R"({"status": "SKIPPED", "message": "already done"})"
                                 "\n";

StatusFile Read(std::initializer_list<const char*> lines) {
  std::string text;
  for (const char* line : lines) text += line;
  return ReadStatusFile(text);
}

TEST(StatusJsonTest, TheLastKnownWordIsTheStatus) {
  EXPECT_EQ(Read({}).status, TrainingStatus::kNone);
  EXPECT_EQ(Read({kStarted}).status, TrainingStatus::kRunning);
  EXPECT_EQ(Read({kStarted, kRunning}).status, TrainingStatus::kRunning);
  EXPECT_EQ(Read({kStarted, kRunning, kSuccess}).status, TrainingStatus::kSuccess);
  EXPECT_EQ(Read({kStarted, kFailure}).status, TrainingStatus::kFailure);
  EXPECT_EQ(Read({kFailure, kStarted}).status, TrainingStatus::kRunning);
  EXPECT_EQ(Read({kSkipped}).status, TrainingStatus::kNone);
  EXPECT_EQ(Read({kSuccess, kSkipped}).status, TrainingStatus::kSuccess);
}

TEST(StatusJsonTest, MessageAndNumbersAreTheLatest) {
  const StatusFile file = Read({kStarted, kRunning});
  EXPECT_EQ(file.message, "Train and Val metrics generated.");
  EXPECT_EQ(file.numbers.at("epoch"), 3);
  EXPECT_EQ(file.numbers.at("max_epoch"), 12);
  EXPECT_EQ(file.numbers.at("kpi.val_loss"), 0.25);
  EXPECT_FALSE(file.numbers.contains("kpi.best"));
  EXPECT_EQ(file.entries, 2u);
}

TEST(StatusJsonTest, ALineThatIsStillBeingWrittenIsNoBadOne) {
  const std::string whole = std::string(kStarted) + kSuccess;
  for (size_t cut = std::string(kStarted).size(); cut < whole.size() - 2; ++cut) {
    const StatusFile file = ReadStatusFile(whole.substr(0, cut));
    EXPECT_EQ(file.status, TrainingStatus::kRunning) << cut;
    EXPECT_EQ(file.bad_lines, 0u) << cut;
  }
  // The text lacks only its line break.
  EXPECT_EQ(ReadStatusFile(whole.substr(0, whole.size() - 1)).status, TrainingStatus::kSuccess);
}

TEST(StatusJsonTest, BadLinesAreCountedAndPassedOver) {
  const StatusFile file = Read(
      {kStarted, "not json\n", "[1]\n", "\n", "{\"status\": 3}\n", "{\"a\":\"\xff\"}\n", kSuccess});
  EXPECT_EQ(file.bad_lines, 3u);
  EXPECT_EQ(file.status, TrainingStatus::kSuccess);
}

TEST(StatusJsonTest, OnlyTheEndOfALongFileIsRead) {
  std::string text = kFailure;
  while (text.size() < kMaxStatusBytes + 1000) text += kRunning;
  const StatusFile file = ReadStatusFile(text);
  EXPECT_EQ(file.status, TrainingStatus::kRunning);
  EXPECT_LE(file.bad_lines, 1u);
  EXPECT_EQ(ReadStatusFile("{\"x\":\"" + std::string(kMaxStatusLineBytes, 'x') + "\"}\n").entries,
            0u);
  EXPECT_EQ(ReadStatusFile(std::string(kMaxStatusLineBytes, '[') + "\n").bad_lines, 1u);
}

TEST(JudgeTrainingTest, AnEndWithoutALastEntryIsNoSuccess) {
  for (const StatusFile& file : {Read({}), Read({kStarted, kRunning}), Read({kSkipped})}) {
    const std::optional<v1::Failure> failure = JudgeTraining(file);
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
    EXPECT_EQ(failure->code(), v1::FAILURE_CODE_STATUS_MISSING);
    EXPECT_THAT(failure->message(), HasSubstr("has no "));
    EXPECT_FALSE(failure->retriable());
  }
}

TEST(JudgeTrainingTest, AFailureThatTaoCaughtIsAFailureOfTheProgram) {
  const std::optional<v1::Failure> failure = JudgeTraining(Read({kStarted, kFailure}));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(failure->code(), v1::FAILURE_CODE_STATUS_SAYS_FAILURE);
  EXPECT_THAT(failure->message(), HasSubstr("says FAILURE"));
}

TEST(JudgeTrainingTest, ASuccessIsOne) {
  EXPECT_FALSE(JudgeTraining(Read({kStarted, kSuccess})).has_value());
}

RC_GTEST_PROP(StatusJsonTest, AnyBytesAreRead, ()) {
  std::string text;
  const auto piece = rc::gen::oneOf(
      rc::gen::elementOf(std::vector<std::string>{kStarted, kRunning, "{", "}", "\"status\":", "\n",
                                                  "[", "1e999", "\xff", "\\ud800"}),
      rc::gen::arbitrary<std::string>());
  for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece)) text += one;
  RC_ASSERT(ReadStatusFile(text + "\n" + kSuccess).status == TrainingStatus::kSuccess);
}

}  // namespace
}  // namespace muster::agents
