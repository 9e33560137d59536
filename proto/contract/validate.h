// Checks a job spec by the rules in the comments of its fields (proto/muster/v1/job_spec.proto),
// and fills in its defaults. Client, broker and agent all trust this one check.
#ifndef MUSTER_PROTO_CONTRACT_VALIDATE_H_
#define MUSTER_PROTO_CONTRACT_VALIDATE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// A spec is kept in memory while it travels, and one gRPC message carries up to 1000 assignments in
// 4 MiB pieces.
inline constexpr size_t kMaxSpecBytes = 1 << 20;
// Linux refuses a single argument or variable longer than this (MAX_ARG_STRLEN, execve(2)).
inline constexpr size_t kMaxArgBytes = 131071;
inline constexpr size_t kMaxArgs = 10000;
inline constexpr size_t kMaxEnvVars = 1000;
inline constexpr size_t kMaxLabels = 64;
// One look on the cluster answers for all of them.
inline constexpr size_t kMaxInputs = 64;
inline constexpr size_t kMaxNameBytes = 128;
inline constexpr uint32_t kMaxNodes = 10000;
// No process fits into less; whoever asks for less has forgotten the unit.
inline constexpr uint64_t kMinMemoryBytes = 1 << 20;
inline constexpr size_t kMaxRequestIdBytes = 128;

// Returns the spec with defaults filled in. Each error names every bad field, its value and the
//   remedy: INVALID_ARGUMENT with a google.rpc.BadRequest (one FieldViolation for each bad field),
//   or UNIMPLEMENTED with an ErrorInfo {reason: FIELD_NOT_HONOURED, metadata: field} for a field of
//   a later version.
absl::StatusOr<v1::JobSpec> NormalizeJobSpec(v1::JobSpec spec);
// Checks in place: adds the bad fields to `errors`, and returns the other error.
absl::Status FindBadFields(v1::JobSpec* spec, FieldErrors* errors);

// A cluster's name has 1 to 63 characters of a-z, 0-9 and '-', and begins and ends with a letter or
// digit.
absl::Status ValidateClusterName(std::string_view name);
absl::Status ValidateRequestId(std::string_view request_id);
// Checks the priority and the labels of a spec that has nothing else.
absl::Status ValidateEdit(const v1::JobSpec& spec);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_VALIDATE_H_
