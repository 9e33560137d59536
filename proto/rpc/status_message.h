// Statuses inside of messages.
#ifndef MUSTER_PROTO_RPC_STATUS_MESSAGE_H_
#define MUSTER_PROTO_RPC_STATUS_MESSAGE_H_

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"

namespace muster::rpc {

google::rpc::Status ToMessage(const absl::Status& status);
// A code that is none is UNKNOWN.
absl::Status FromMessage(const google::rpc::Status& message);

}  // namespace muster::rpc

#endif  // MUSTER_PROTO_RPC_STATUS_MESSAGE_H_
