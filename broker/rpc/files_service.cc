// The service Files: translate, call, translate. No handler blocks.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "broker/files/file_store.h"
#include "broker/rpc/context.h"
#include "broker/rpc/download_file.h"
#include "broker/rpc/fetch_files.h"
#include "broker/rpc/unary.h"
#include "broker/rpc/upload_files.h"
#include "broker/rpc/users.h"
#include "contract/characters.h"
#include "contract/file_tree.h"
#include "muster/v1/files_service.grpc.pb.h"

namespace muster::broker {
namespace {

absl::Status CheckDigests(const v1::FindMissingFilesRequest& request) {
  if (request.sha256_size() > static_cast<int>(contract::kMaxDigestsPerRequest)) {
    return contract::BadField(
        "sha256", fmt::format("{} digests; the most in one call is {}", request.sha256_size(),
                              contract::kMaxDigestsPerRequest));
  }
  for (int i = 0; i < request.sha256_size(); ++i) {
    if (contract::IsSha256(request.sha256(i))) continue;
    return contract::BadField(
        fmt::format("sha256[{}]", i),
        fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the file's",
                    contract::Quoted(request.sha256(i))));
  }
  return absl::OkStatus();
}

class FilesService : public v1::FilesService::CallbackService {
 public:
  explicit FilesService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* FindMissingFiles(grpc::CallbackServerContext* call,
                                             const v1::FindMissingFilesRequest* in,
                                             v1::FindMissingFilesResponse* out) override {
    auto* reactor = call->DefaultReactor();
    if (const absl::Status status = CheckDigests(*in); !status.ok()) {
      reactor->Finish(rpc::ToGrpc(status));
      return reactor;
    }
    OnReaders(context_.file_workers, reactor,
              [this, reactor, in, out] { reactor->Finish(rpc::ToGrpc(FindMissing(*in, out))); });
    return reactor;
  }

  grpc::ServerReadReactor<v1::UploadFilesRequest>* UploadFiles(
      grpc::CallbackServerContext* call, v1::UploadFilesResponse* out) override {
    return NewUploadStream(context_, context_.users->PrincipalOf(call->peer()).user, &open_uploads_,
                           out);
  }

  grpc::ServerWriteReactor<v1::DownloadFileResponse>* DownloadFile(
      grpc::CallbackServerContext*, const v1::DownloadFileRequest* in) override {
    return NewDownloadStream(context_, *in);
  }

  grpc::ServerWriteReactor<v1::FetchFilesResponse>* FetchFiles(
      grpc::CallbackServerContext*, const v1::FetchFilesRequest* in) override {
    return NewFetchStream(context_, *in);
  }

 private:
  absl::Status FindMissing(const v1::FindMissingFilesRequest& in,
                           v1::FindMissingFilesResponse* out) const {
    out->set_max_job_bytes(context_.files->options().max_job_bytes);
    absl::flat_hash_set<std::string> seen;
    for (const std::string& sha256 : in.sha256()) {
      if (!seen.insert(sha256).second) continue;
      const auto size_bytes = context_.files->Use(sha256);
      if (!size_bytes.ok()) return size_bytes.status();
      if (!*size_bytes) out->add_missing_sha256(sha256);
    }
    return absl::OkStatus();
  }

  const Context context_;
  std::atomic<int> open_uploads_ = 0;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFilesService(const Context& context) {
  return std::make_unique<FilesService>(context);
}

}  // namespace muster::broker
