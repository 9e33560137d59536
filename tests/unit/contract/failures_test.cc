// The sentences and remedies of failures, which every client shows alike.
#include "contract/failures.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::Failure OfCommand(const v1::ExitStatus& exit) {
  return OwnEnd(exit, {.phase = v1::FAILURE_PHASE_COMMAND});
}

void SetRank(uint32_t rank, const std::string& node, v1::Failure* failure) {
  failure->set_rank(rank);
  failure->set_node(node);
  PutSentence(failure);
}

TEST(Failure, EveryCodeHasASentenceAndARemedy) {
  for (int code = 1; code < v1::FailureCode_ARRAYSIZE; ++code) {
    if (!v1::FailureCode_IsValid(code)) continue;
    const v1::Failure failure = MakeFailure(static_cast<v1::FailureCode>(code),
                                            v1::FAILURE_CLASS_INFRA, {.detail = "its words"});
    EXPECT_THAT(failure.message(), HasSubstr("its words")) << failure.DebugString();
    EXPECT_THAT(failure.message(), ::testing::Not(HasSubstr("{")));
    if (code == v1::FAILURE_CODE_OTHER) continue;
    EXPECT_GT(failure.message().size(), sizeof("T: its words")) << failure.DebugString();
    EXPECT_TRUE(failure.remedy().ends_with('.')) << failure.DebugString();
  }
}

TEST(Failure, ACommandsOwnEndIsTheProgramsAndSaysHowAndWhere) {
  v1::Failure failure = OfCommand(ExitWithCode(3));
  EXPECT_EQ(failure.code(), v1::FAILURE_CODE_COMMAND_FAILED);
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(failure.message(), "The command ended with exit code 3");
  SetRank(1, "n2", &failure);
  EXPECT_EQ(failure.message(), "The command ended with exit code 3 on rank 1 (n2)");
  failure.set_role("worker");
  failure.set_detail("FAILED (NonZeroExitCode)");
  PutSentence(&failure);
  EXPECT_EQ(failure.message(),
            "The command ended with exit code 3 on rank 1 (role worker, n2): FAILED "
            "(NonZeroExitCode)");
}

TEST(Failure, ASignalHasACodeOfItsOwnAndAKillSpeaksOfMemory) {
  const v1::Failure failure = OfCommand(ExitBySignal(9));
  EXPECT_EQ(failure.code(), v1::FAILURE_CODE_COMMAND_SIGNALED);
  EXPECT_EQ(failure.message(), "The command was ended by signal 9 (SIGKILL)");
  EXPECT_THAT(failure.remedy(), HasSubstr("out of memory"));
  EXPECT_THAT(OfCommand(ExitBySignal(11)).remedy(), ::testing::Not(HasSubstr("out of memory")));
}

TEST(Failure, ASetupThatFailedSaysThatTheCommandWasNotStarted) {
  v1::Failure failure = OwnEnd(ExitWithCode(127), {.phase = v1::FAILURE_PHASE_SETUP});
  SetRank(0, "n1", &failure);
  EXPECT_EQ(failure.code(), v1::FAILURE_CODE_SETUP_FAILED);
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(failure.message(),
            "The setup script ended with exit code 127 on rank 0 (n1), so the command was not "
            "started");
  EXPECT_THAT(failure.remedy(), HasSubstr("no command of that name"));
}

TEST(Failure, ThePhaseSaysWhatCouldNotBeStarted) {
  FailureParts parts = {.subject = "./gone",
                        .meaning = "No such file or directory",
                        .phase = v1::FAILURE_PHASE_COMMAND_START};
  const auto message = [&] {
    return MakeFailure(v1::FAILURE_CODE_PROGRAM_NOT_STARTED, v1::FAILURE_CLASS_CONFIG, parts)
        .message();
  };
  EXPECT_EQ(message(), "The command could not be started: \"./gone\": No such file or directory");
  parts.phase = v1::FAILURE_PHASE_SETUP_START;
  EXPECT_THAT(message(), StartsWith("The setup script could not be started: "));
}

TEST(Failure, ThePodStandsLastWithItsNodeAndInPlaceOfTheRank) {
  v1::Failure failure = MakeFailure(v1::FAILURE_CODE_CANNOT_START, v1::FAILURE_CLASS_CONFIG,
                                    {.detail = "no such claim", .object = "pod k7m2-1-1"});
  SetRank(0, "node-2", &failure);
  EXPECT_EQ(failure.message(), "The pod cannot start: no such claim (pod k7m2-1-1 on node-2)");
}

TEST(Failure, WhereItHappenedStandsBehindWhatNoRankDid) {
  v1::Failure failure = MakeFailure(v1::FAILURE_CODE_IMAGE_NOT_FOUND, v1::FAILURE_CLASS_IMAGE,
                                    {.detail = "404 Not Found."});
  SetRank(1, "n3", &failure);
  EXPECT_EQ(failure.message(), "There is no such image: 404 Not Found (rank 1, n3)");
  failure.set_role("worker");
  PutSentence(&failure);
  EXPECT_EQ(failure.message(), "There is no such image: 404 Not Found (rank 1, role worker, n3)");
}

TEST(Failure, NoSentenceIsBrokenByItsParts) {
  for (int code = 1; code < v1::FailureCode_ARRAYSIZE; ++code) {
    if (!v1::FailureCode_IsValid(code)) continue;
    for (const std::string object : {"", "pod k7m2-1-1"}) {
      v1::Failure failure =
          MakeFailure(static_cast<v1::FailureCode>(code), v1::FAILURE_CLASS_INFRA,
                      {.detail = "its words. ", .meaning = "m", .object = object});
      failure.set_log_sign("gpu-lost");
      SetRank(1, "n3", &failure);
      const std::string& message = failure.message();
      for (const char* broken : {"..", ": .", ".:", ". (", ".;", "::", ";;", "  ", "Muster on rank",
                                 "known on rank", "image on rank", "job on rank", "it on rank"})
        EXPECT_THAT(message, ::testing::Not(HasSubstr(broken)));
      if (object.empty()) continue;
      EXPECT_EQ(message.find(object), message.rfind(object)) << message;
      EXPECT_THAT(message, ::testing::Not(HasSubstr("rank 1")));
    }
  }
}

TEST(Failure, NoRemedyNamesACommandOfOneClient) {
  for (int code = 1; code < v1::FailureCode_ARRAYSIZE; ++code) {
    if (!v1::FailureCode_IsValid(code)) continue;
    EXPECT_THAT(MakeFailure(static_cast<v1::FailureCode>(code), v1::FAILURE_CLASS_INFRA).remedy(),
                ::testing::Not(HasSubstr("muster logs")));
  }
}

TEST(Failure, MemoryThatRanOutHasItsLimitAndWhatWasKilledThere) {
  v1::Failure failure = MakeFailure(v1::FAILURE_CODE_OUT_OF_MEMORY, v1::FAILURE_CLASS_OOM,
                                    {.phase = v1::FAILURE_PHASE_COMMAND});
  EXPECT_EQ(failure.message(), "The command used more memory than it had");
  failure.set_memory_limit_bytes(uint64_t{64} << 20);
  PutSentence(&failure);
  EXPECT_EQ(failure.message(),
            "The command used more memory than it had: its memory limit of 64Mi");
  failure.set_killed_processes(2);
  *failure.mutable_exit() = ExitWithCode(137);
  PutSentence(&failure);
  EXPECT_EQ(failure.message(),
            "The command used more memory than it had: 2 of its processes were killed at its "
            "memory limit of 64Mi; it ended with exit code 137");
}

TEST(Failure, WhatWordsMeanStandsBeforeThem) {
  EXPECT_EQ(MakeFailure(v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
                        {.detail = "Invalid partition name specified",
                         .meaning = "there is no such partition"})
                .message(),
            "The cluster refused the run: there is no such partition: Invalid partition name "
            "specified");
}

TEST(Failure, OneThatHasNoCodeKeepsTheSentenceThatItWasStoredWith) {
  v1::Failure failure;
  failure.set_message("node n1 failed");
  failure.set_remedy("");
  PutSentence(&failure);
  EXPECT_EQ(failure.message(), "node n1 failed");
  EXPECT_EQ(failure.remedy(), "");
}

TEST(Failure, ASignInTheOutputIsNamedBehindWhatHappened) {
  v1::Failure failure = OfCommand(ExitWithCode(1));
  failure.set_log_sign("cuda-out-of-memory");
  PutSentence(&failure);
  EXPECT_EQ(failure.message(),
            "The command ended with exit code 1. Its output says why (cuda-out-of-memory).");
  failure.set_log_sign("gpu-lost");
  failure.set_retriable(true);
  PutSentence(&failure);
  EXPECT_THAT(failure.message(), HasSubstr("says that the cluster was at fault (gpu-lost)."));
}

TEST(Failure, ACauseHasItsRemedyInPlaceOfTheCodes) {
  for (int i = 1; i <= static_cast<int>(kLastFailureCause); ++i) {
    const auto cause = static_cast<FailureCause>(i);
    v1::Failure failure = MakeFailure(v1::FAILURE_CODE_LOST, v1::FAILURE_CLASS_INFRA,
                                      {.subject = "ann", .cause = cause});
    EXPECT_TRUE(RemedyFor(cause).ends_with('.')) << i;
    EXPECT_THAT(failure.remedy(), ::testing::Not(HasSubstr("{")));
    const std::string remedy = failure.remedy();
    SetRank(1, "n2", &failure);
    EXPECT_EQ(failure.remedy(), remedy) << "the rank has nothing to do with it";
  }
  EXPECT_EQ(RemedyFor(FailureCause::kNone), "");
  EXPECT_THAT(MakeFailure(v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
                          {.subject = "ann", .cause = FailureCause::kUserWithoutAccount})
                  .remedy(),
              HasSubstr("sacctmgr add user ann account="));
}

TEST(Failure, AnotherCauseReplacesTheRemedyAndNoneBringsBackTheCodes) {
  v1::Failure failure = MakeFailure(v1::FAILURE_CODE_LOST, v1::FAILURE_CLASS_INFRA,
                                    {.cause = FailureCause::kHostGone});
  EXPECT_THAT(failure.remedy(), StartsWith("See to the host"));
  PutSentence(FailureCause::kNone, &failure);
  EXPECT_THAT(failure.remedy(), StartsWith("Read its output so far"));
}

TEST(Failure, ASignInTheOutputHasARemedyOfItsOwn) {
  v1::Failure failure = OfCommand(ExitWithCode(1));
  failure.set_log_sign("module-missing");
  PutSentence(FailureCause::kNone, &failure);
  EXPECT_THAT(failure.remedy(), StartsWith("A Python module is missing"));
  failure.set_log_sign("a sign of a later agent");
  PutSentence(FailureCause::kNone, &failure);
  EXPECT_EQ(failure.remedy(), OfCommand(ExitWithCode(1)).remedy());
}

TEST(Failure, ThePhaseAndTheSubjectMakeTheRemedyToo) {
  FailureParts parts;
  const auto remedy = [&](v1::FailureCode code) {
    return MakeFailure(code, v1::FAILURE_CLASS_INFRA, parts).remedy();
  };
  EXPECT_THAT(remedy(v1::FAILURE_CODE_LAUNCH_FAILED), StartsWith("Submit the job again"));
  EXPECT_THAT(remedy(v1::FAILURE_CODE_NAME_TAKEN), StartsWith("Have its owner rename or remove"));
  parts = {.subject = "Secret lab/x", .phase = v1::FAILURE_PHASE_QUEUE};
  EXPECT_THAT(remedy(v1::FAILURE_CODE_LAUNCH_FAILED), HasSubstr("(a prolog, or an ill node)"));
  EXPECT_THAT(remedy(v1::FAILURE_CODE_NAME_TAKEN), HasSubstr("rename the Secret lab/x or delete"));
}

TEST(Failure, WhileTheClusterWaitsTheRemedySaysWhoSetsHowLong) {
  EXPECT_EQ(RemedyWhileWaiting(v1::FAILURE_CODE_CANNOT_START, FailureCause::kMissingInNamespace),
            "Make it in the run's namespace, or name another. The cluster's operator sets how long "
            "Muster waits (kubernetes.start_grace).");
}

TEST(Failure, NodesThatWereKeptInVainAreCounted) {
  v1::Failure failure = MakeFailure(v1::FAILURE_CODE_PLACED_IN_PART, v1::FAILURE_CLASS_INFRA);
  failure.set_placed_nodes(1);
  failure.set_requested_nodes(2);
  failure.mutable_waited()->set_seconds(300);
  failure.set_meaning("pod b found none");
  PutSentence(&failure);
  EXPECT_THAT(failure.message(),
              StartsWith("1 of 2 pods had nodes and kept them from others for 5m: "));
  EXPECT_THAT(failure.message(), HasSubstr(": pod b found none; all were taken away"));
}

}  // namespace
}  // namespace muster::contract
