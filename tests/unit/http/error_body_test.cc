#include "broker/http/error_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "broker/http/codes.h"
#include "contract/errors.h"
#include "google/rpc/error_details.pb.h"

namespace muster::http {
namespace {

// The details of a status come in no order.
nlohmann::json DetailOf(const nlohmann::json& body, const std::string& type) {
  for (const auto& detail : body["details"]) {
    if (detail["type"] == type) return detail;
  }
  ADD_FAILURE() << "no " << type << " in " << body;
  return {};
}

TEST(ErrorBody, HasTheCodeTheWordsAndEachDetail) {
  const absl::Status status =
      contract::RetryableError(absl::StatusCode::kResourceExhausted, "BROKER_BUSY", "try \"later\"",
                               absl::Milliseconds(1500));
  const auto body = nlohmann::json::parse(ErrorBody(status));
  EXPECT_EQ(body["code"], "resource_exhausted");
  EXPECT_EQ(body["message"], "try \"later\"");
  EXPECT_EQ(body["details"].size(), 2u);
  const auto info = DetailOf(body, "google.rpc.ErrorInfo");
  EXPECT_EQ(info["debug"]["reason"], "BROKER_BUSY");
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(info["value"].get<std::string>(), &bytes));
  EXPECT_EQ(info["value"].get<std::string>().find('='), std::string::npos);
  google::rpc::ErrorInfo message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.reason(), "BROKER_BUSY");
  EXPECT_EQ(DetailOf(body, "google.rpc.RetryInfo")["debug"]["retryDelay"], "1.500s");
}

TEST(ErrorBody, LeavesDetailsOutWhereThereAreNone) {
  EXPECT_EQ(ErrorBody(absl::NotFoundError("no")), R"({"code":"not_found","message":"no"})");
}

TEST(ErrorBody, IsJsonWhateverTheWordsAre) {
  const auto body = nlohmann::json::parse(ErrorBody(absl::InternalError("a\x01\n\xff")));
  EXPECT_EQ(body["message"], "a\x01\n\xEF\xBF\xBD");
}

TEST(ErrorBody, DoesWithoutDebugForADetailThatIsNotKnown) {
  absl::Status status = absl::AbortedError("x");
  status.SetPayload("type.googleapis.com/some.Other", absl::Cord("\x08\x01"));
  const auto body = nlohmann::json::parse(ErrorBody(status));
  EXPECT_EQ(body["details"][0]["type"], "some.Other");
  EXPECT_EQ(body["details"][0]["value"], "CAE");
  EXPECT_FALSE(body["details"][0].contains("debug"));
}

TEST(ErrorBody, EndsAStream) {
  EXPECT_EQ(EndOfStream(absl::OkStatus()), "{}");
  EXPECT_EQ(EndOfStream(absl::NotFoundError("no")),
            R"({"error":{"code":"not_found","message":"no"}})");
}

// https://connectrpc.com/docs/protocol/#error-codes
TEST(Codes, AreThoseOfTheProtocol) {
  using absl::StatusCode;
  const std::vector<std::tuple<StatusCode, std::string_view, int>> rows = {
      {StatusCode::kCancelled, "canceled", 499},
      {StatusCode::kUnknown, "unknown", 500},
      {StatusCode::kInvalidArgument, "invalid_argument", 400},
      {StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
      {StatusCode::kNotFound, "not_found", 404},
      {StatusCode::kAlreadyExists, "already_exists", 409},
      {StatusCode::kPermissionDenied, "permission_denied", 403},
      {StatusCode::kResourceExhausted, "resource_exhausted", 429},
      {StatusCode::kFailedPrecondition, "failed_precondition", 400},
      {StatusCode::kAborted, "aborted", 409},
      {StatusCode::kOutOfRange, "out_of_range", 400},
      {StatusCode::kUnimplemented, "unimplemented", 501},
      {StatusCode::kInternal, "internal", 500},
      {StatusCode::kUnavailable, "unavailable", 503},
      {StatusCode::kDataLoss, "data_loss", 500},
      {StatusCode::kUnauthenticated, "unauthenticated", 401}};
  for (const auto& [code, name, http_status] : rows) {
    EXPECT_EQ(ConnectCode(code), name);
    EXPECT_EQ(HttpStatus(code), http_status) << name;
    EXPECT_NE(ReasonPhrase(http_status), "Unknown") << http_status;
  }
  EXPECT_EQ(ConnectCode(static_cast<StatusCode>(99)), "unknown");
}

}  // namespace
}  // namespace muster::http
