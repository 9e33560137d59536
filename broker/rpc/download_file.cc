#include "broker/rpc/download_file.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "broker/files/file_store.h"
#include "broker/rpc/pull_stream.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "daemon/log.h"
#include "digest/sha256.h"

namespace muster::broker {
namespace {

// Read ahead of what the client has taken, so that the disk and the network work at the same time.
constexpr int kPiecesPerStep = 2;

absl::Status Validate(const v1::DownloadFileRequest& request) {
  if (contract::IsSha256(request.sha256())) return absl::OkStatus();
  return contract::BadField(
      "sha256", fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the file's",
                            contract::Quoted(request.sha256())));
}

class DownloadStream final : public PullStream<v1::DownloadFileResponse> {
 public:
  DownloadStream(const Context& context, const v1::DownloadFileRequest& request)
      : PullStream(context), sha256_(request.sha256()), offset_(request.offset()) {}

 private:
  Result Step() override {
    Result result;
    absl::Status status = Read(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

  // What is sent from its first byte on is checked, and its last bytes are only sent if all is as
  // the name says. Whoever goes on from further on has the rest, and checks it.
  absl::Status CheckWhole(Result* result) {
    if (!digest_ || digest_->Finish() == sha256_) return absl::OkStatus();
    result->messages.clear();
    LogEvent(spdlog::level::err, "damaged_file_dropped", {{"sha256", sha256_}});
    return context_.files->DropDamaged(sha256_, *kept_);
  }

  absl::Status Read(Result* result) {
    if (!kept_) {
      auto kept = context_.files->OpenKept(sha256_);
      if (!kept.ok()) return kept.status();
      if (offset_ > kept->size_bytes) {
        return contract::Error(absl::StatusCode::kOutOfRange, "OFFSET_BEYOND_END",
                               fmt::format("offset is {}, and the file {} has {} bytes", offset_,
                                           sha256_, kept->size_bytes));
      }
      kept_ = *std::move(kept);
      if (offset_ == 0) digest_.emplace();
    }
    for (int i = 0; i < kPiecesPerStep && offset_ < kept_->size_bytes; ++i) {
      auto piece = disk::ReadAt(kept_->file.get(), offset_, contract::kMaxFileChunkBytes,
                                "a file that a job brings along");
      if (!piece.ok()) return piece.status();
      if (piece->empty())
        return absl::DataLossError("the file became shorter on the broker's disk");
      offset_ += piece->size();
      if (digest_) digest_->Add(*piece);
      v1::DownloadFileResponse message;
      message.set_chunk(*std::move(piece));
      result->messages.push_back(std::move(message));
    }
    result->more = offset_ < kept_->size_bytes;
    if (!result->more) result->final_status = CheckWhole(result);
    return absl::OkStatus();
  }

  void Unhook() override {}

  const std::string sha256_;
  // A Step's.
  uint64_t offset_;
  std::optional<files::FileStore::KeptFile> kept_;
  std::optional<Sha256> digest_;  // of what was read; none: it does not begin at the first byte
};

}  // namespace

grpc::ServerWriteReactor<v1::DownloadFileResponse>* NewDownloadStream(
    const Context& context, const v1::DownloadFileRequest& request) {
  auto stream = std::make_shared<DownloadStream>(context, request);
  DownloadStream* reactor = stream.get();
  stream->Begin(Validate(request));
  return reactor;
}

}  // namespace muster::broker
