// The stream of ReadLog.
#ifndef MUSTER_BROKER_RPC_READ_LOG_H_
#define MUSTER_BROKER_RPC_READ_LOG_H_

#include <grpcpp/support/server_callback.h>

#include "broker/rpc/context.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Frees itself.
grpc::ServerWriteReactor<v1::ReadLogResponse>* NewLogReadStream(const Context& context,
                                                                const v1::ReadLogRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_READ_LOG_H_
