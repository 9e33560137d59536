#include "agents/core/log_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/failures.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;

constexpr char kXid[] = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n";
constexpr char kCudaOom[] = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
constexpr char kNccl[] = "ncclSystemError: System call failed\n";

v1::Failure ProgramFailure() {
  v1::Failure failure = contract::OwnEnd(contract::ExitWithCode(1), {});
  failure.set_rank(0);
  contract::PutSentence(&failure);
  return failure;
}

v1::Failure Refined(const std::vector<LogEnd>& logs, v1::Failure failure = ProgramFailure()) {
  RefineByLogs(contract::FailurePatterns(), logs, true, &failure);
  return failure;
}

TEST(RefineByLogsTest, AFaultOfTheClusterIsWorthAnotherRunAndQuotesItsLine) {
  const v1::Failure failure =
      Refined({{"rank-0.out", "step 1\n"}, {"rank-1.err", std::string("a\n") + kXid + "b\n"}});
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(failure.retriable());
  EXPECT_THAT(failure.message(), HasSubstr("exit code 1 on rank 0. Its output says"));
  ASSERT_EQ(failure.quotes_size(), 1);
  EXPECT_EQ(failure.quotes(0).source(), "rank-1.err");
  EXPECT_EQ(failure.quotes(0).text() + "\n", kXid);
  EXPECT_NE(failure.remedy(), ProgramFailure().remedy());
  EXPECT_EQ(failure.code(), v1::FAILURE_CODE_COMMAND_FAILED) << "what happened";
  EXPECT_EQ(failure.log_sign(), "gpu-lost") << "and whose fault it was";
}

TEST(RefineByLogsTest, WhatAProgramDidToItselfExplainsWhatItDidToTheOtherRanks) {
  const v1::Failure failure = Refined({{"rank-0.err", kNccl}, {"rank-3.err", kCudaOom}});
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_OOM);
  EXPECT_FALSE(failure.retriable());
  ASSERT_EQ(failure.quotes_size(), 1);
  EXPECT_EQ(failure.quotes(0).source(), "rank-3.err");
}

TEST(RefineByLogsTest, LogsThatAreMissingOrTellNothingAreNoFaultOfTheCluster) {
  for (const std::vector<LogEnd>& logs :
       {std::vector<LogEnd>{}, std::vector<LogEnd>{{"rank-0.err", ""}}}) {
    const v1::Failure failure = Refined(logs);
    EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_PROGRAM);
    EXPECT_FALSE(failure.retriable());
    EXPECT_EQ(failure.message(), "The command ended with exit code 1 on rank 0");
    EXPECT_EQ(failure.quotes_size(), 0);
  }
}

TEST(RefineByLogsTest, WhatNobodyKnowsIsQuotedAsTheLastWords) {
  const v1::Failure failure = Refined(
      {{"rank-0.out", "done\n"}, {"rank-0.err", "Traceback\nValueError: 3\x1b[0m\n\n", true}});
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_PROGRAM);
  ASSERT_EQ(failure.quotes_size(), 1);
  EXPECT_EQ(failure.quotes(0).source(), "rank-0.err");
  EXPECT_EQ(failure.quotes(0).text(), "ValueError: 3 [0m");
}

TEST(RefineByLogsTest, WhereStderrIsEmptyTheLastWordsAreOfStdout) {
  const v1::Failure failure =
      Refined({{"rank-0.out", "\n"}, {"rank-0.err", "\n", true}, {"rank-1.out", "a\nb\n"}});
  ASSERT_EQ(failure.quotes_size(), 1);
  EXPECT_EQ(failure.quotes(0).source(), "rank-1.out");
  EXPECT_EQ(failure.quotes(0).text(), "b");
}

TEST(RefineByLogsTest, OnlyTheLastLinesCount) {
  std::string text = kXid;
  for (size_t i = 0; i < kMaxEvidenceLines; ++i) text += "a later line\n";
  EXPECT_FALSE(Refined({{"rank-0.err", text}}).retriable());
  EXPECT_TRUE(Refined({{"rank-0.err", text.substr(0, text.size() - 13)}}).retriable());
}

TEST(RefineByLogsTest, AProgramThatSpeaksOfImagesHasNoFaultOfItsImage) {
  const v1::Failure failure = Refined({{"rank-0.err", "[ERROR] Could not process JSON input\n"}});
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_PROGRAM);
}

TEST(RefineByLogsTest, SlurmsWordOnMemoryStandsUnlessTheClusterWasAtFault) {
  v1::Failure oom = ProgramFailure();
  oom.set_failure_class(v1::FAILURE_CLASS_OOM);
  EXPECT_EQ(Refined({{"e", "ModuleNotFoundError: x\n"}}, oom).failure_class(),
            v1::FAILURE_CLASS_OOM);
  EXPECT_TRUE(Refined({{"e", kXid}}, oom).retriable());
}

TEST(MayLogsTellTest, ATimeLimitIsOneWhateverTheLogsSay) {
  Observation seen;
  seen.state = v1::RUN_STATE_FAILED;
  seen.failure = ProgramFailure();
  EXPECT_TRUE(MayLogsTell(seen));
  seen.failure->set_failure_class(v1::FAILURE_CLASS_TIMEOUT);
  EXPECT_FALSE(MayLogsTell(seen));
  seen.may_logs_tell = true;
  EXPECT_TRUE(MayLogsTell(seen));
  seen.state = v1::RUN_STATE_CANCELED;
  EXPECT_FALSE(MayLogsTell(seen));
}

TEST(LastLinesTest, CountsFromTheEnd) {
  EXPECT_EQ(LastLines("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(LastLines("a\nb\nc", 2), "b\nc");
  EXPECT_EQ(LastLines("a\nb\nc", 3), "a\nb\nc");
  EXPECT_EQ(LastLines("a\nb\n", 9), "a\nb\n");
  EXPECT_EQ(LastLines("\n\n\n", 2), "\n\n");
  EXPECT_EQ(LastLines("", 2), "");
}

TEST(AddQuoteTest, IsBoundedInLengthAndNumber) {
  v1::Failure failure;
  AddQuote("a", " \n", &failure);
  EXPECT_EQ(failure.quotes_size(), 0);
  for (int i = 0; i < kMaxQuotes + 3; ++i) AddQuote("a", std::string(600, 'x'), &failure);
  EXPECT_EQ(failure.quotes_size(), kMaxQuotes);
  EXPECT_EQ(failure.quotes(0).text().size(), kMaxQuoteBytes);
}

}  // namespace
}  // namespace muster::agents
