// Converts absl::Time and absl::Duration to protobuf's, and back.
#ifndef MUSTER_AGENTS_CORE_PROTO_TIME_H_
#define MUSTER_AGENTS_CORE_PROTO_TIME_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster::agents {

inline google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  proto.set_seconds(absl::ToUnixSeconds(time));
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(proto.seconds()))));
  return proto;
}

inline google::protobuf::Duration ToProto(absl::Duration span) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::ToInt64Seconds(span));
  proto.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(span - absl::Seconds(proto.seconds()))));
  return proto;
}

inline absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_PROTO_TIME_H_
