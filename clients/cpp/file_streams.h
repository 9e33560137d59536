// Streams of the Files service. Private to the client.
#ifndef MUSTER_CLIENTS_CPP_FILE_STREAMS_H_
#define MUSTER_CLIENTS_CPP_FILE_STREAMS_H_

#include <atomic>
#include <memory>

#include "clients/cpp/client.h"
#include "muster/v1/files_service.grpc.pb.h"
#include "rpc/address.h"

namespace muster::client {

// The objects that a stream borrows from its client.
struct FileStreamContext {
  v1::FilesService::Stub* stub;
  const ClientOptions* options;
  const rpc::Address* address;
  std::atomic<bool>* was_answered;  // by a broker, on any call or stream of the client
};

std::unique_ptr<FileWriter> NewFileWriter(FileStreamContext context);
std::unique_ptr<FileReader> NewFileReader(FileStreamContext context,
                                          const v1::FetchFilesRequest& request);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_FILE_STREAMS_H_
