// Refuses the fields of a job spec that this release does not know. They are never ignored in
// silence.
#ifndef MUSTER_PROTO_CONTRACT_HONOURED_H_
#define MUSTER_PROTO_CONTRACT_HONOURED_H_

#include "absl/status/status.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// UNIMPLEMENTED with an ErrorInfo {reason: FIELD_NOT_HONOURED, metadata: field} that has the number
// of every field that is set and that only a newer client knows.
absl::Status CheckHonoured(const v1::JobSpec& spec);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_HONOURED_H_
