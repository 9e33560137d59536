// Makes absl::Status with google.rpc details. The details travel as status payloads keyed by their
// type URL, so that this code needs no gRPC; proto/rpc turns them into what gRPC sends.
#ifndef MUSTER_PROTO_CONTRACT_ERRORS_H_
#define MUSTER_PROTO_CONTRACT_ERRORS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"

namespace muster::v1 {
class StateReason;
}

namespace muster::contract {

inline constexpr std::string_view kErrorDomain = "muster";

// Makes an error with an ErrorInfo. The reason is in UPPER_SNAKE_CASE and part of the API.
absl::Status Error(absl::StatusCode code, std::string_view reason, std::string_view message,
                   std::map<std::string, std::string> metadata = {});
// RESOURCE_EXHAUSTED or UNAVAILABLE with a RetryInfo beside the ErrorInfo.
absl::Status RetryableError(absl::StatusCode code, std::string_view reason,
                            std::string_view message, absl::Duration retry_after);
// UNAVAILABLE with the reason SHUTTING_DOWN: the broker ends, and whoever asks again may find it
// back.
absl::Status ShuttingDown();
// INVALID_ARGUMENT that names one field.
absl::Status BadField(std::string_view field, std::string_view description);

// Returns the same error in other words, with its code and its details.
absl::Status InOtherWords(const absl::Status& status, std::string_view message);
// Replaces the metadata of the ErrorInfo, which the status has. Nothing else of it changes.
void SetMetadata(std::map<std::string, std::string> metadata, absl::Status* status);

// Puts a QuotaFailure of the user, in the same words, beside the rest.
absl::Status WithQuota(std::string_view user, absl::Status status);

// Puts the facts of a refusal beside its sentence: a job that no cluster can run. Leaves out the
// sentence, which the status has, and so many clusters, counted, that the rest fits into a status.
void AttachReason(v1::StateReason reason, absl::Status* status);

// Returns the details of a status, if it has them.
std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status);
std::optional<v1::StateReason> GetStateReason(const absl::Status& status);
std::optional<google::rpc::BadRequest> GetBadRequest(const absl::Status& status);
std::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

// A status travels in HTTP/2 trailers, which gRPC refuses beyond 8 KiB
// (GRPC_ARG_MAX_METADATA_SIZE); what is over this is counted, not listed.
inline constexpr size_t kMaxViolationBytes = 2000;

// Collects every bad field of a request before answering. Lists as many as fit, by default into a
// gRPC status, and counts the rest.
class FieldErrors {
 public:
  explicit FieldErrors(size_t max_bytes = kMaxViolationBytes) : max_bytes_(max_bytes) {}
  void Add(std::string_view field, std::string_view description);
  bool empty() const { return bad_request_.field_violations().empty(); }
  const google::protobuf::RepeatedPtrField<google::rpc::BadRequest::FieldViolation>& violations()
      const {
    return bad_request_.field_violations();
  }
  size_t unlisted() const { return unlisted_; }
  // OK if nothing was added.
  absl::Status ToStatus() const;

 private:
  const size_t max_bytes_;  // of the fields and descriptions listed, but for a lone one
  google::rpc::BadRequest bad_request_;
  size_t bytes_ = 0;
  size_t unlisted_ = 0;
};

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_ERRORS_H_
