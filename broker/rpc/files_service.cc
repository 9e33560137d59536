// Implements FilesService: translates, calls, translates. No handler blocks.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <utility>

#include "broker/app/download_file.h"
#include "broker/app/find_missing_files.h"
#include "broker/app/upload_files.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/fetch_files.h"
#include "broker/rpc/pull_stream.h"
#include "broker/rpc/unary.h"
#include "broker/rpc/upload_files.h"
#include "muster/v1/files_service.grpc.pb.h"

namespace muster::broker {
namespace {

class FilesService : public v1::FilesService::CallbackService {
 public:
  explicit FilesService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* FindMissingFiles(grpc::CallbackServerContext* call,
                                             const v1::FindMissingFilesRequest* in,
                                             v1::FindMissingFilesResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.file_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::FindMissingFiles(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerReadReactor<v1::UploadFilesRequest>* UploadFiles(
      grpc::CallbackServerContext* call, v1::UploadFilesResponse* out) override {
    const Principal caller = Caller(call);
    return NewUploadStream(context_, caller, broker::UploadFiles(caller, context_.app),
                           &open_uploads_, out);
  }

  grpc::ServerWriteReactor<v1::DownloadFileResponse>* DownloadFile(
      grpc::CallbackServerContext* call, const v1::DownloadFileRequest* in) override {
    const Principal caller = Caller(call);
    return StartPull(context_, caller, broker::DownloadFile(caller, context_.app, *in));
  }

  grpc::ServerWriteReactor<v1::FetchFilesResponse>* FetchFiles(
      grpc::CallbackServerContext* call, const v1::FetchFilesRequest* in) override {
    return NewFetchStream(context_, Caller(call), *in);
  }

 private:
  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  const Context context_;
  std::atomic<int> open_uploads_ = 0;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFilesService(const Context& context) {
  return std::make_unique<FilesService>(context);
}

}  // namespace muster::broker
