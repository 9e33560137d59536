// The stream of DownloadFile.
#ifndef MUSTER_BROKER_RPC_DOWNLOAD_FILE_H_
#define MUSTER_BROKER_RPC_DOWNLOAD_FILE_H_

#include <grpcpp/support/server_callback.h>

#include "broker/rpc/context.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// Frees itself.
grpc::ServerWriteReactor<v1::DownloadFileResponse>* NewDownloadStream(
    const Context& context, const v1::DownloadFileRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_DOWNLOAD_FILE_H_
