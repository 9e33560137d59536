// Times as people and filters write them.
#ifndef MUSTER_PROTO_CONTRACT_RFC3339_H_
#define MUSTER_PROTO_CONTRACT_RFC3339_H_

#include <google/protobuf/timestamp.pb.h>

#include <string>

#include "absl/time/time.h"

namespace muster::contract {

// Returns the time in UTC, without parts of a second: "2026-01-31T12:00:00Z".
inline std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

inline std::string Rfc3339(const google::protobuf::Timestamp& time) {
  return Rfc3339(absl::FromUnixSeconds(time.seconds()));
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_RFC3339_H_
