// Durations in errors.
#ifndef MUSTER_PROTO_CONTRACT_DURATION_TEXT_H_
#define MUSTER_PROTO_CONTRACT_DURATION_TEXT_H_

#include <string>

#include "google/protobuf/duration.pb.h"

namespace muster::contract {

// Writes a duration exactly and as people write it: "2h", "1d30m", "0.5s". A message that is not a
// valid duration is written with both of its numbers.
std::string DurationText(const google::protobuf::Duration& duration);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_DURATION_TEXT_H_
