#include "rpc/status.h"

#include <gtest/gtest.h>

#include <string>

#include "contract/errors.h"
#include "google/rpc/status.pb.h"

namespace muster::rpc {
namespace {

TEST(StatusOnTheWire, KeepsOk) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(StatusOnTheWire, ComesBackWithItsDetails) {
  const absl::Status sent = contract::RetryableError(
      absl::StatusCode::kResourceExhausted, "QUEUE_FULL", "too many jobs wait", absl::Seconds(3));
  EXPECT_EQ(FromGrpc(ToGrpc(sent)), sent);
  EXPECT_EQ(contract::GetRetryDelay(FromGrpc(ToGrpc(sent))), absl::Seconds(3));
}

TEST(StatusOnTheWire, IsAGoogleRpcStatusForOtherClients) {
  const grpc::Status sent = ToGrpc(contract::BadField("nodes", "0 is too few"));
  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(sent.error_details()));
  EXPECT_EQ(wire.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(wire.message(), sent.error_message());
  ASSERT_EQ(wire.details_size(), 1);
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(wire.details(0).UnpackTo(&bad_request));
  EXPECT_EQ(bad_request.field_violations(0).field(), "nodes");
}

TEST(StatusOnTheWire, HasNoDetailsWhereTheStatusHasNone) {
  EXPECT_EQ(ToGrpc(absl::NotFoundError("no job 7")).error_details(), "");
}

TEST(StatusOnTheWire, StaysBelowTheLimitOfTrailers) {
  contract::FieldErrors errors;
  for (int i = 0; i < 1000; ++i) errors.Add("field" + std::to_string(i), std::string(5000, 'x'));
  absl::Status status = errors.ToStatus();
  status.SetPayload("type.googleapis.com/huge", absl::Cord(std::string(100000, 'y')));
  const grpc::Status sent = ToGrpc(status);
  // Base64 makes the details a third larger; the message travels beside them.
  EXPECT_LT(sent.error_details().size() * 4 / 3 + sent.error_message().size(), 8192u);
  EXPECT_TRUE(contract::GetBadRequest(FromGrpc(sent)));
}

TEST(StatusOnTheWire, SurvivesDetailsThatAreNotOurs) {
  const grpc::Status foreign(grpc::StatusCode::UNAVAILABLE, "gone", "not a google.rpc.Status");
  EXPECT_EQ(FromGrpc(foreign), absl::UnavailableError("gone"));
}

}  // namespace
}  // namespace muster::rpc
