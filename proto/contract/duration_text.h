// Durations in errors.
#ifndef MUSTER_PROTO_CONTRACT_DURATION_TEXT_H_
#define MUSTER_PROTO_CONTRACT_DURATION_TEXT_H_

#include <string>

#include "google/protobuf/duration.pb.h"

namespace muster::contract {

// As people write it, and exactly: "2h", "1d30m", "0.5s". What is no duration, by its nanoseconds,
// has both numbers.
std::string DurationText(const google::protobuf::Duration& duration);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_DURATION_TEXT_H_
