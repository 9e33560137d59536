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

// Stands for a project and a request_id.
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

// Equal specs have equal fingerprints, in other processes and on other days, too.
Fingerprint FingerprintOf(const v1::JobSpec& spec);

// Tells a repeat of a request from another request with the same id, today and after an upgrade: it
// depends on what the client sent, not on the defaults that a release fills in. A request with
// unknown fields is refused, whatever its fingerprint is.
Fingerprint RequestFingerprintOf(const v1::JobSpec& sent);

// Returns the bytes of a spec, its maps in the order of their keys.
std::string DeterministicBytes(const v1::JobSpec& spec);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_FINGERPRINT_H_
