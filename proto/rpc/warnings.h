// How the answer to a submit tells what speaks against the job without keeping it from being
// accepted.
#ifndef MUSTER_PROTO_RPC_WARNINGS_H_
#define MUSTER_PROTO_RPC_WARNINGS_H_

#include <cstddef>

namespace muster::rpc {

// In the trailing metadata, a sentence of UTF-8 for each; "-bin" lets gRPC carry any byte.
inline constexpr char kWarningKey[] = "muster-warning-bin";
// Of one answer, and bytes of each: together well below the 8 KiB of metadata that gRPC's peers
// take by default.
inline constexpr size_t kMaxWarnings = 4;
inline constexpr size_t kMaxWarningBytes = 512;

}  // namespace muster::rpc

#endif  // MUSTER_PROTO_RPC_WARNINGS_H_
