// The hashes that chain the records of the audit log. Pure.
#ifndef MUSTER_BROKER_AUDIT_CHAIN_H_
#define MUSTER_BROKER_AUDIT_CHAIN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "broker/audit/record.h"

namespace muster::audit {

inline constexpr size_t kHashBytes = 32;
// Returns the hash before the first record.
inline const std::string kNoHash(kHashBytes, '\0');
// The action of the record that is written when old ones are removed.
inline constexpr std::string_view kRetentionAction = "audit.retention";

// Returns SHA-256 over `previous` and then each field but the hash, in the order of the struct: its
// length as four bytes, the highest first, then its bytes. Numbers are decimal text.
std::string HashOf(std::string_view previous, const Record& record);

// The last record that a retention removed.
struct Removed {
  uint64_t seq = 0;  // 0: nothing was removed
  std::string hash = kNoHash;
};
// Returns the target of the retention's record, and back. Number 0: the text is none.
std::string RetentionTarget(const Removed& removed);
Removed ReadRetentionTarget(std::string_view target);

// Writes bytes as digits 0-9 and a-f.
std::string ToHex(std::string_view bytes);

}  // namespace muster::audit

#endif  // MUSTER_BROKER_AUDIT_CHAIN_H_
