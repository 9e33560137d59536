#ifndef MUSTER_PROTO_CONTRACT_PATH_BYTES_H_
#define MUSTER_PROTO_CONTRACT_PATH_BYTES_H_

#include <cstddef>

namespace muster::contract {

// The longest path has this many bytes: Linux's PATH_MAX without the NUL (limits.h).
inline constexpr size_t kMaxPathBytes = 4095;

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PATH_BYTES_H_
