// Short stand-ins for long values, from SHA-256: nobody can make two requests or specs collide on
// purpose.
#ifndef MUSTER_BROKER_CORE_FINGERPRINT_H_
#define MUSTER_BROKER_CORE_FINGERPRINT_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "broker/core/changes.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::core {

// Of a project and a request_id.
struct RequestKey {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const RequestKey&, const RequestKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const RequestKey& key) {
    return H::combine(std::move(h), key.low);
  }
};

RequestKey RequestKeyOf(std::string_view project, std::string_view request_id);

// The same for specs that are equal, also in another process and on another day.
Fingerprint FingerprintOf(const v1::JobSpec& spec);

// Tells a repeat of a request from another request with its id, today and after an upgrade:
// whatever defaults a release fills in, it is of what the client sent. `sent`: without unknown
// fields.
Fingerprint RequestFingerprintOf(const v1::JobSpec& sent);

// The bytes of a spec, its maps in the order of their keys.
std::string DeterministicBytes(const v1::JobSpec& spec);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_FINGERPRINT_H_
