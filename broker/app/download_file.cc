#include "broker/app/download_file.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "broker/app/file_viewer.h"
#include "broker/files/file_store.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "daemon/log.h"
#include "digest/sha256.h"

namespace muster::broker {
namespace {

// This many pieces are read ahead of the client, so that the disk and the network work at the same
// time.
constexpr int kFilePiecesPerStep = 2;

absl::Status CheckFileRequest(const v1::DownloadFileRequest& request) {
  if (contract::IsSha256(request.sha256())) return absl::OkStatus();
  return contract::BadField(
      "sha256", fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the file's",
                            contract::Quoted(request.sha256())));
}

class DownloadingFile final : public FileSource {
 public:
  DownloadingFile(files::FileStore* files, files::Viewer viewer,
                  const v1::DownloadFileRequest& request)
      : files_(files),
        viewer_(std::move(viewer)),
        sha256_(request.sha256()),
        offset_(request.offset()) {}

  Pulled Next() override {
    Pulled result;
    absl::Status status = Read(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

 private:
  // A file that is sent from its first byte on is checked, and its last bytes are sent only if its
  // digest is right. A client that resumes has the first part, and checks the whole file itself.
  absl::Status CheckWhole(Pulled* result) {
    if (!digest_ || digest_->Finish() == sha256_) return absl::OkStatus();
    result->messages.clear();
    LogEvent(spdlog::level::err, "damaged_file_dropped", {{"sha256", sha256_}});
    return files_->DropDamaged(sha256_, *kept_);
  }

  absl::Status Read(Pulled* result) {
    if (!kept_) {
      auto kept = files_->OpenKept(sha256_, viewer_);
      if (!kept.ok()) return kept.status();
      if (offset_ > kept->size_bytes) {
        return contract::Error(absl::StatusCode::kOutOfRange, "OFFSET_BEYOND_END",
                               fmt::format("offset is {}, and the file {} has {} bytes", offset_,
                                           sha256_, kept->size_bytes));
      }
      kept_ = *std::move(kept);
      if (offset_ == 0) digest_.emplace();
    }
    for (int i = 0; i < kFilePiecesPerStep && offset_ < kept_->size_bytes; ++i) {
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

  files::FileStore* const files_;
  const files::Viewer viewer_;
  const std::string sha256_;
  uint64_t offset_;
  std::optional<files::FileStore::KeptFile> kept_;
  std::optional<Sha256>
      digest_;  // digest of the bytes read so far; none: they do not begin at the first byte
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSource>> DownloadFile(const Principal& principal,
                                                         const Services& services,
                                                         const v1::DownloadFileRequest& request) {
  auto viewer = FileViewer(principal, UseCase::kDownloadFiles);
  if (!viewer.ok()) return viewer.status();
  if (absl::Status status = CheckFileRequest(request); !status.ok()) return status;
  return std::make_unique<DownloadingFile>(services.files, *std::move(viewer), request);
}

}  // namespace muster::broker
