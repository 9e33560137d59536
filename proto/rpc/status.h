// Converts an absl::Status with its google.rpc details to a grpc::Status, and back.
#ifndef MUSTER_PROTO_RPC_STATUS_H_
#define MUSTER_PROTO_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace muster::rpc {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace muster::rpc

#endif  // MUSTER_PROTO_RPC_STATUS_H_
