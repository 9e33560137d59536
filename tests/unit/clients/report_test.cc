#include "clients/cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "contract/errors.h"
#include "contract/sentences.h"
#include "fmt/format.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

// Returns the error of a submit that each of so many clusters refuses for a reason of its own.
absl::Status CannotBePlaced(int clusters) {
  std::vector<v1::StateReason> lacks;
  for (int i = 0; i < clusters; ++i) {
    lacks.push_back(contract::MakeReason(
        v1::STATE_REASON_CODE_DOES_NOT_FIT,
        {.detail = fmt::format("has {} nodes; ask for at most {} (nodes)", i + 1, i + 1),
         .cluster = fmt::format("c{}", i)}));
  }
  const v1::StateReason reason = contract::NotPlaced(lacks);
  absl::Status status =
      contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", reason.message());
  contract::AttachReason(reason, &status);
  return status;
}

TEST(ErrorText, OfAJobThatNoClusterCanRunSaysOnceWhatEachLacks) {
  EXPECT_EQ(ErrorText(CannotBePlaced(2)),
            "muster: cluster \"c0\": has 1 nodes; ask for at most 1 (nodes); "
            "cluster \"c1\": has 2 nodes; ask for at most 2 (nodes) [CANNOT_BE_PLACED]\n");
  const std::string many = ErrorText(CannotBePlaced(12));
  EXPECT_THAT(many, HasSubstr("at most 5 (nodes); and 7 more [CANNOT_BE_PLACED]\n"
                              "muster: cluster \"c5\": has 6 nodes; ask for at most 6 (nodes)\n"));
  EXPECT_THAT(many, HasSubstr("muster: cluster \"c9\": has 10 nodes; ask for at most 10 (nodes)\n"
                              "muster: and 2 more\n"));
}

TEST(ErrorText, DoesNotRepeatTheAdviceThatTheMessageHas) {
  std::vector<v1::StateReason> lacks;
  for (const char* cluster : {"a", "b"}) {
    lacks.push_back(contract::MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE,
                                         {.cluster = cluster, .pool = "cpu"}));
  }
  const v1::StateReason reason = contract::NotPlaced(lacks);
  absl::Status in_full = contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED",
                                         contract::NotPlacedInFull(reason));
  contract::AttachReason(reason, &in_full);
  const std::string text = ErrorText(in_full);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_THAT(text, HasSubstr("clusters a tells more"));
  absl::Status short_one =
      contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", "it fits nowhere");
  contract::AttachReason(reason, &short_one);
  EXPECT_THAT(ErrorText(short_one), HasSubstr("\nmuster: muster clusters a tells more\n"));
}

TEST(ErrorText, NamesEachBadFieldAndWhenToTryAgain) {
  contract::FieldErrors errors;
  errors.Add("nodes", "20000 is too large");
  errors.Add("env[\"\x1b\"]", "bad");
  EXPECT_EQ(ErrorText(errors.ToStatus()),
            "muster: nodes: 20000 is too large\nmuster: env[\"\\x1b\"]: bad\n");
  EXPECT_EQ(ErrorText(contract::RetryableError(absl::StatusCode::kResourceExhausted, "QUEUE_FULL",
                                               "full", absl::Milliseconds(300))),
            "muster: full [QUEUE_FULL]\nmuster: try again in 1s\n");
  EXPECT_EQ(ErrorText(absl::InternalError("a\nb")), "muster: a\nmuster: b\n");
  EXPECT_EQ(ErrorText(absl::UnknownError("")), "muster: UNKNOWN\n");
  EXPECT_EQ(ErrorText(absl::UnimplementedError("")),
            "muster: the broker does not know this request: it is older than this command\n");
}

TEST(ErrorText, SaysWhichCommandHelpsIfTheReasonHasOne) {
  EXPECT_EQ(ErrorText(contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_CLUSTER", "no lab")),
            "muster: no lab [NO_SUCH_CLUSTER]\n"
            "muster: `muster clusters` lists those that are known\n");
  EXPECT_EQ(ErrorText(contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_JOB", "no job 7")),
            "muster: no job 7 [UNKNOWN_JOB]\n");
}

}  // namespace
}  // namespace muster::cli
