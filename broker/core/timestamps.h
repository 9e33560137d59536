// Conversions between absl's times and protobuf's. Timestamps are to the microsecond; finer parts
// are dropped.
#ifndef MUSTER_BROKER_CORE_TIMESTAMPS_H_
#define MUSTER_BROKER_CORE_TIMESTAMPS_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "absl/time/time.h"

namespace muster::core {

inline void SetTimestamp(int64_t unix_micros, google::protobuf::Timestamp* out) {
  int64_t seconds = unix_micros / 1'000'000;
  int64_t micros = unix_micros % 1'000'000;
  if (micros < 0) {
    micros += 1'000'000;
    --seconds;
  }
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int32_t>(micros * 1000));
}

inline void SetTimestamp(absl::Time time, google::protobuf::Timestamp* out) {
  SetTimestamp(absl::ToUnixMicros(time), out);
}

inline int64_t ToUnixMicros(const google::protobuf::Timestamp& timestamp) {
  return timestamp.seconds() * 1'000'000 + timestamp.nanos() / 1000;
}

inline absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixMicros(ToUnixMicros(timestamp));
}

inline void SetDuration(absl::Duration duration, google::protobuf::Duration* out) {
  absl::Duration rest;
  out->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

inline absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_TIMESTAMPS_H_
