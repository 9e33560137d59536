#include "broker/app/upload_files.h"

#include <fmt/format.h>

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/app/file_viewer.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/text.h"
#include "contract/units.h"
#include "daemon/log.h"

namespace muster::broker {

absl::Status FileReceiver::Take(const v1::UploadFilesRequest& request) {
  absl::Status status = Handle(request);
  if (!status.ok()) LogRefused(status);
  return status;
}

absl::Status FileReceiver::Handle(const v1::UploadFilesRequest& request) {
  switch (request.part_case()) {
    case v1::UploadFilesRequest::kHead:
      if (absl::Status status = Meter(request.head().size_bytes()); !status.ok()) return status;
      return upload_.Begin(request.head().sha256(), request.head().size_bytes());
    case v1::UploadFilesRequest::kChunk:
      if (request.chunk().size() > contract::kMaxFileChunkBytes) {
        return contract::BadField(
            "chunk", fmt::format("has {} bytes; the most is {}", request.chunk().size(),
                                 contract::kMaxFileChunkBytes));
      }
      return upload_.Append(request.chunk());
    case v1::UploadFilesRequest::PART_NOT_SET:
      break;
  }
  return contract::BadField("part", "is not set; send a head or a chunk");
}

absl::StatusOr<v1::UploadFilesResponse> FileReceiver::Finish() {
  const absl::StatusOr<files::FileStore::Counts> counts = upload_.Finish();
  if (!counts.ok()) {
    LogRefused(counts.status());
    return counts.status();
  }
  LogEvent(spdlog::level::info, "files_uploaded",
           {{"user", user_},
            {"stored", fmt::format("{}", counts->stored)},
            {"known", fmt::format("{}", counts->known)}});
  v1::UploadFilesResponse response;
  response.set_stored_files(counts->stored);
  response.set_known_files(counts->known);
  return response;
}

absl::Status FileReceiver::Meter(uint64_t bytes) const {
  if (meter_ == nullptr) return absl::OkStatus();
  const absl::Duration wait = meter_->Take(user_, bytes, absl::Now());
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return contract::WithQuota(
      user_,
      contract::RetryableError(
          absl::StatusCode::kResourceExhausted, "TOO_MANY_UPLOAD_BYTES",
          fmt::format("{} has uploaded as much as one user may in an hour "
                      "(files.max_user_bytes_per_hour); try again in {}, or leave files on the "
                      "cluster's storage and name their path there",
                      user_, contract::FormatDuration(absl::Ceil(wait, absl::Seconds(1)))),
          wait));
}

void FileReceiver::LogRefused(const absl::Status& status) const {
  LogEvent(spdlog::level::warn, "upload_refused",
           {{"user", user_}, {"why", std::string(ToStd(status.message()))}});
}

absl::StatusOr<std::unique_ptr<FileReceiver>> UploadFiles(const Principal& principal,
                                                          const Services& services) {
  auto viewer = FileViewer(principal, UseCase::kBringFiles);
  if (!viewer.ok()) return viewer.status();
  return std::make_unique<FileReceiver>(principal.user, *std::move(viewer), services.files,
                                        HasBounds(principal) ? services.uploads : nullptr);
}

}  // namespace muster::broker
