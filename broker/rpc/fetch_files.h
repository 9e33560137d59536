// Implements FilesService.FetchFiles: brings a run's files from its agent to a client.
#ifndef MUSTER_BROKER_RPC_FETCH_FILES_H_
#define MUSTER_BROKER_RPC_FETCH_FILES_H_

#include <grpcpp/support/server_callback.h>

#include "broker/app/principal.h"
#include "broker/rpc/context.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// The call frees itself.
grpc::ServerWriteReactor<v1::FetchFilesResponse>* NewFetchStream(
    const Context& context, Principal principal, const v1::FetchFilesRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_FETCH_FILES_H_
