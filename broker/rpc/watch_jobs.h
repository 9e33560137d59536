// The stream of WatchJobs.
#ifndef MUSTER_BROKER_RPC_WATCH_JOBS_H_
#define MUSTER_BROKER_RPC_WATCH_JOBS_H_

#include <grpcpp/support/server_callback.h>

#include "broker/rpc/context.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Frees itself.
grpc::ServerWriteReactor<v1::WatchJobsResponse>* NewWatchStream(
    const Context& context, const v1::WatchJobsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_WATCH_JOBS_H_
