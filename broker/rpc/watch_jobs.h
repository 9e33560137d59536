// The stream of WatchJobs.
#ifndef MUSTER_BROKER_RPC_WATCH_JOBS_H_
#define MUSTER_BROKER_RPC_WATCH_JOBS_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "broker/rpc/context.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Request and answers as bytes: what many watch is made into bytes once. Frees itself.
grpc::ServerWriteReactor<grpc::ByteBuffer>* NewWatchStream(const Context& context,
                                                           const grpc::ByteBuffer& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_WATCH_JOBS_H_
