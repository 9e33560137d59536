// The stream of UploadFiles.
#ifndef MUSTER_BROKER_RPC_UPLOAD_FILES_H_
#define MUSTER_BROKER_RPC_UPLOAD_FILES_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/upload_files.h"
#include "broker/rpc/context.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// The stream frees itself. `open` counts the streams, and outlives all of them.
grpc::ServerReadReactor<v1::UploadFilesRequest>* NewUploadStream(
    const Context& context, const Principal& caller,
    absl::StatusOr<std::unique_ptr<FileReceiver>> receiver, std::atomic<int>* open,
    v1::UploadFilesResponse* response);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_UPLOAD_FILES_H_
