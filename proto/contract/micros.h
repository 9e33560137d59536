// Times of messages as numbers, as they are compared and stored.
#ifndef MUSTER_PROTO_CONTRACT_MICROS_H_
#define MUSTER_PROTO_CONTRACT_MICROS_H_

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

namespace muster::contract {

// Microseconds since 1970; what is finer is dropped.
inline int64_t Micros(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1'000'000 + time.nanos() / 1000;
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_MICROS_H_
