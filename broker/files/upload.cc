#include "broker/files/upload.h"

#include <fmt/format.h>

#include <utility>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"

namespace muster::files {
namespace {

absl::Status NotAsAnnounced(std::string_view reason, const std::string& sha256,
                            std::string_view what) {
  return contract::Error(absl::StatusCode::kInvalidArgument, reason,
                         fmt::format("the file {}: {}; read it anew, in case it has changed "
                                     "meanwhile, and send it again",
                                     sha256, what),
                         {{"sha256", sha256}});
}

}  // namespace

absl::Status Upload::Begin(const std::string& sha256, uint64_t size_bytes) {
  if (absl::Status status = EndFile(); !status.ok()) return status;
  if (!contract::IsSha256(sha256)) {
    return contract::BadField(
        "head.sha256", fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the file's",
                                   contract::Quoted(sha256)));
  }
  const auto there = store_->Use(sha256, viewer_);
  if (!there.ok()) return there.status();
  if (*there) {
    ++counts_.known;
  } else {
    auto file = store_->NewFile(sha256, size_bytes, viewer_);
    if (!file.ok()) return file.status();
    file_ = *std::move(file);
  }
  is_open_ = true;
  sha256_ = sha256;
  size_bytes_ = size_bytes;
  received_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status Upload::Append(std::string_view bytes) {
  if (!is_open_)
    return contract::BadField("chunk", "comes before any head, which says whose bytes they are");
  if (bytes.size() > size_bytes_ - received_bytes_) {
    return NotAsAnnounced("WRONG_SIZE", sha256_,
                          fmt::format("more bytes came than the {} of its head", size_bytes_));
  }
  received_bytes_ += bytes.size();
  digest_.Add(bytes);
  return file_ ? file_->Append(bytes) : absl::OkStatus();
}

absl::Status Upload::EndFile() {
  if (!std::exchange(is_open_, false)) return absl::OkStatus();
  const std::string digest = digest_.Finish();
  if (received_bytes_ < size_bytes_) {
    return NotAsAnnounced(
        "WRONG_SIZE", sha256_,
        fmt::format("{} bytes came of the {} of its head", received_bytes_, size_bytes_));
  }
  if (digest != sha256_) {
    return NotAsAnnounced("WRONG_DIGEST", sha256_,
                          fmt::format("what came has the SHA-256 {}", digest));
  }
  if (!file_) {
    known_.push_back(sha256_);
    return known_.size() < kBatchFiles ? absl::OkStatus() : KeepKnown();
  }
  file_->Complete();
  batch_bytes_ += file_->size_bytes();
  batch_.push_back(std::move(file_));
  if (batch_.size() < kBatchFiles && batch_bytes_ < kBatchBytes) return absl::OkStatus();
  return KeepBatch();
}

absl::Status Upload::KeepBatch() {
  if (batch_.empty()) return absl::OkStatus();
  batch_bytes_ = 0;
  const auto kept = store_->Keep(std::exchange(batch_, {}), viewer_);
  if (!kept.ok()) return kept.status();
  counts_.stored += kept->stored;
  counts_.known += kept->known;
  return absl::OkStatus();
}

absl::Status Upload::KeepKnown() {
  return store_->AddOwner(std::exchange(known_, {}), viewer_.self());
}

absl::StatusOr<FileStore::Counts> Upload::Finish() {
  if (absl::Status status = EndFile(); !status.ok()) return status;
  if (absl::Status status = KeepKnown(); !status.ok()) return status;
  if (absl::Status status = KeepBatch(); !status.ok()) return status;
  return counts_;
}

}  // namespace muster::files
