#include "agents/files/broker_files.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "contract/text.h"
#include "muster/v1/files_service.grpc.pb.h"
#include "rpc/status.h"
#include "sync/mutex.h"

namespace muster::uploads {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const agents::BrokerEnd& broker) {
  grpc::ChannelArguments arguments;
  // The same values as for the agent's other connections (agents/core/broker_link.cc).
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The reader has its own wait, which is shorter than gRPC's.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  return grpc::CreateCustomChannel(broker.target, agents::CredentialsFor(broker), arguments);
}

// An error that another try may heal becomes UNAVAILABLE, the one code that FileSource has for it.
absl::Status AsSourceSays(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return status;
    default:
      return absl::UnavailableError(
          fmt::format("the broker did not send a file to its end: {}", ToStd(status.message())));
  }
}

class BrokerFiles final : public FileSource {
 public:
  explicit BrokerFiles(agents::BrokerEnd broker) : broker_(std::move(broker)) {}

  absl::Status Read(const std::string& sha256, uint64_t offset, absl::Duration patience,
                    const ByteSink& sink) override {
    grpc::ClientContext context;
    // gRPC takes it as a wait from now on: later steps of the wall clock do not move it.
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
    if (!Begin(&context)) return absl::UnavailableError("the agent ends");
    absl::Status status = ReadIn(&context, sha256, offset, sink);
    const MutexLock lock(mutex_);
    reads_.erase(&context);
    return status;
  }

  void Stop() override {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (grpc::ClientContext* read : reads_) read->TryCancel();
  }

 private:
  // Returns whether there is still time for it.
  bool Begin(grpc::ClientContext* context) {
    const MutexLock lock(mutex_);
    return !stopped_ && reads_.insert(context).second;
  }

  absl::Status ReadIn(grpc::ClientContext* context, const std::string& sha256, uint64_t offset,
                      const ByteSink& sink) {
    v1::DownloadFileRequest request;
    request.set_sha256(sha256);
    request.set_offset(offset);
    const std::shared_ptr<v1::FilesService::Stub> stub = Stub();
    const auto reader = stub->DownloadFile(context, request);
    v1::DownloadFileResponse response;
    while (reader->Read(&response)) {
      if (absl::Status status = sink(response.chunk()); !status.ok()) {
        context->TryCancel();
        (void)reader->Finish();
        return status;
      }
    }
    return AsSourceSays(rpc::FromGrpc(reader->Finish()));
  }

  // One connection for all reads, until the agent has another certificate.
  std::shared_ptr<v1::FilesService::Stub> Stub() {
    std::string certificate;
    if (!broker_.tls_directory.empty()) {
      const absl::StatusOr<agents::Identity> identity = agents::ReadIdentity(broker_.tls_directory);
      if (identity.ok()) certificate = identity->own.certificate;
    }
    const MutexLock lock(mutex_);
    if (stub_ == nullptr || certificate != certificate_) {
      stub_ = v1::FilesService::NewStub(MakeChannel(broker_));
      certificate_ = std::move(certificate);
    }
    return stub_;
  }

  const agents::BrokerEnd broker_;
  Mutex mutex_;
  std::shared_ptr<v1::FilesService::Stub> stub_ ABSL_GUARDED_BY(mutex_);
  std::string certificate_ ABSL_GUARDED_BY(mutex_);  // that the stub shows
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // One for each thread that fetches.
  std::set<grpc::ClientContext*> reads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<FileSource> MakeBrokerFiles(agents::BrokerEnd broker) {
  return std::make_unique<BrokerFiles>(std::move(broker));
}

}  // namespace muster::uploads
