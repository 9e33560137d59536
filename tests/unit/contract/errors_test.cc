#include "contract/errors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/characters.h"
#include "muster/v1/facts.pb.h"

namespace muster::contract {
namespace {

TEST(Errors, CarryTheirReasonAndMetadata) {
  const absl::Status status =
      Error(absl::StatusCode::kFailedPrecondition, "WRONG_CLUSTER", "no", {{"cluster", "a"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason(), "WRONG_CLUSTER");
  EXPECT_EQ(info->domain(), "muster");
  EXPECT_EQ(info->metadata().at("cluster"), "a");
  EXPECT_FALSE(GetBadRequest(status));
  EXPECT_FALSE(GetRetryDelay(status));
}

TEST(Errors, ThatAreRetryableSayWhen) {
  const absl::Status status =
      RetryableError(absl::StatusCode::kUnavailable, "BUSY", "busy", absl::Milliseconds(1500));
  EXPECT_EQ(GetRetryDelay(status), absl::Milliseconds(1500));
  EXPECT_EQ(GetErrorInfo(status)->reason(), "BUSY");
}

TEST(Errors, HaveNoDetailsWhenOthersMadeThem) {
  EXPECT_FALSE(GetErrorInfo(absl::InternalError("x")));
  EXPECT_FALSE(GetErrorInfo(absl::OkStatus()));
}

TEST(FieldErrors, AreOkWhenNothingWasAdded) {
  EXPECT_TRUE(FieldErrors().empty());
  EXPECT_TRUE(FieldErrors().ToStatus().ok());
}

TEST(FieldErrors, NameEveryBadField) {
  FieldErrors errors;
  errors.Add("nodes", "20000 is too large");
  errors.Add("name", "too long");
  const absl::Status status = errors.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "nodes: 20000 is too large; name: too long");
  ASSERT_EQ(GetBadRequest(status)->field_violations_size(), 2);
  EXPECT_EQ(GetBadRequest(status)->field_violations(1).field(), "name");
}

TEST(FieldErrors, CountWhatDoesNotFitIntoAStatus) {
  FieldErrors errors;
  for (int i = 0; i < 500; ++i) errors.Add("field" + std::to_string(i), "bad");
  const absl::Status status = errors.ToStatus();
  const std::string message(status.message());
  EXPECT_LT(message.size(), 1000u);
  EXPECT_NE(message.find("more bad fields"), std::string::npos) << message;
  EXPECT_LT(GetBadRequest(status)->ByteSizeLong(), 4000u);
}

TEST(Quoted, MakesTextFromOutsideHarmless) {
  EXPECT_EQ(Quoted("plain"), "\"plain\"");
  EXPECT_EQ(Quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(Quoted(std::string_view("a\n\x1b\0z", 5)), "\"a\\x0a\\x1b\\x00z\"");
  EXPECT_EQ(Quoted("\xc2\x9b"
                   "1m"),
            "\"\\xc2\\x9b1m\"");
  EXPECT_EQ(Quoted("\xff"), "\"\\xff\"");
  EXPECT_EQ(Quoted("größe"), "\"größe\"");
}

TEST(Quoted, CutsLongTextBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "ö";
  const std::string quoted = Quoted(text);
  EXPECT_TRUE(IsUtf8(quoted));
  EXPECT_NE(quoted.find("(200 bytes)"), std::string::npos) << quoted;
}

TEST(Utf8, IsCheckedStrictly) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("aé€😀"));
  EXPECT_FALSE(IsUtf8("\xc0\xaf")) << "overlong";
  EXPECT_FALSE(IsUtf8("\xe0\x80\xaf")) << "overlong";
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80")) << "surrogate";
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80")) << "beyond U+10FFFF";
  EXPECT_FALSE(IsUtf8("\xe2\x82")) << "cut short";
}

TEST(InOtherWords, KeepsTheCodeAndTheDetails) {
  const absl::Status status = InOtherWords(
      RetryableError(absl::StatusCode::kResourceExhausted, "FULL", "no room", absl::Seconds(3)),
      "job 7: no room");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "job 7: no room");
  EXPECT_EQ(GetErrorInfo(status)->reason(), "FULL");
  EXPECT_EQ(GetRetryDelay(status), absl::Seconds(3));
}

TEST(SetMetadata, ReplacesThatOfTheErrorInfoAlone) {
  absl::Status status =
      RetryableError(absl::StatusCode::kResourceExhausted, "FULL", "no room", absl::Seconds(3));
  SetMetadata({{"request", "1"}}, &status);
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("request"), "1");
  EXPECT_EQ(GetErrorInfo(status)->reason(), "FULL");
  EXPECT_EQ(status.message(), "no room");
  EXPECT_EQ(GetRetryDelay(status), absl::Seconds(3));
}

TEST(AttachReason, LeavesOutSoManyClustersThatTheRestFitsIntoAStatus) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_DOES_NOT_FIT);
  reason.set_message("the status has it");
  for (int i = 0; i < 10; ++i) {
    v1::StateReason& cluster = *reason.add_clusters();
    cluster.set_cluster(fmt::format("c{}", i));
    cluster.set_detail(std::string(400, 'x'));
  }
  reason.set_unlisted_clusters(5);
  absl::Status status = absl::FailedPreconditionError("no cluster can ever run this job");
  AttachReason(reason, &status);
  const auto attached = GetStateReason(status);
  ASSERT_TRUE(attached.has_value());
  EXPECT_LE(attached->ByteSizeLong(), 2000u);
  EXPECT_EQ(attached->message(), "");
  ASSERT_GT(attached->clusters_size(), 0);
  EXPECT_EQ(attached->clusters(0).cluster(), "c0");
  EXPECT_EQ(attached->clusters_size() + attached->unlisted_clusters(), 15u);
}

TEST(GetStateReason, IsNothingWithoutOne) {
  EXPECT_FALSE(GetStateReason(absl::NotFoundError("there is no job 7")).has_value());
}

}  // namespace
}  // namespace muster::contract
