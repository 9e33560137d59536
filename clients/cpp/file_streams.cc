#include "clients/cpp/file_streams.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <utility>

#include "clients/cpp/bearer.h"
#include "clients/cpp/errors.h"

namespace muster::client {
namespace {

// Returns the context of a stream that is about to begin.
grpc::ClientContext* WithBearer(const FileStreamContext& context, grpc::ClientContext* grpc) {
  AddBearer(*context.options, grpc);
  return grpc;
}

// Turns the end of a stream into words that help.
absl::Status EndOf(const FileStreamContext& context, const grpc::Status& end) {
  const absl::Status status = EndOfCall(end);
  if (status.ok() || !IsTransportError(status)) *context.was_answered = true;
  return status.ok() ? status : Explain(status, *context.address, absl::ZeroDuration());
}

class FileWriterImpl final : public FileWriter {
 public:
  explicit FileWriterImpl(FileStreamContext context)
      : context_(context),
        writer_(context.stub->UploadFiles(WithBearer(context, &grpc_), &response_)) {}

  ~FileWriterImpl() override {
    if (is_finished_) return;
    grpc_.TryCancel();
    writer_->Finish();
  }

  bool Write(const v1::UploadFilesRequest& request) override { return writer_->Write(request); }

  absl::StatusOr<v1::UploadFilesResponse> Finish() override {
    is_finished_ = true;
    writer_->WritesDone();
    const absl::Status status = EndOf(context_, writer_->Finish());
    if (!status.ok()) return status;
    return std::move(response_);
  }

 private:
  const FileStreamContext context_;
  grpc::ClientContext grpc_;
  v1::UploadFilesResponse response_;
  const std::unique_ptr<grpc::ClientWriter<v1::UploadFilesRequest>> writer_;
  bool is_finished_ = false;
};

class FileReaderImpl final : public FileReader {
 public:
  FileReaderImpl(FileStreamContext context, const v1::FetchFilesRequest& request)
      : context_(context),
        reader_(context.stub->FetchFiles(WithBearer(context, &grpc_), request)) {}

  ~FileReaderImpl() override {
    if (is_finished_) return;
    grpc_.TryCancel();
    reader_->Finish();
  }

  absl::StatusOr<std::optional<v1::FetchFilesResponse>> Next() override {
    v1::FetchFilesResponse piece;
    if (reader_->Read(&piece)) return std::optional<v1::FetchFilesResponse>(std::move(piece));
    is_finished_ = true;
    const absl::Status status = EndOf(context_, reader_->Finish());
    if (!status.ok()) return status;
    return std::optional<v1::FetchFilesResponse>();
  }

 private:
  const FileStreamContext context_;
  grpc::ClientContext grpc_;
  const std::unique_ptr<grpc::ClientReader<v1::FetchFilesResponse>> reader_;
  bool is_finished_ = false;
};

}  // namespace

std::unique_ptr<FileWriter> NewFileWriter(FileStreamContext context) {
  return std::make_unique<FileWriterImpl>(context);
}

std::unique_ptr<FileReader> NewFileReader(FileStreamContext context,
                                          const v1::FetchFilesRequest& request) {
  return std::make_unique<FileReaderImpl>(context, request);
}

}  // namespace muster::client
