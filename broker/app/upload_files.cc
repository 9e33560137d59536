#include "broker/app/upload_files.h"

#include <fmt/format.h>

#include <utility>

#include "broker/app/rights.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/text.h"
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

void FileReceiver::LogRefused(const absl::Status& status) const {
  LogEvent(spdlog::level::warn, "upload_refused",
           {{"user", user_}, {"why", std::string(ToStd(status.message()))}});
}

absl::StatusOr<std::unique_ptr<FileReceiver>> UploadFiles(const Principal& principal,
                                                          const Services& services) {
  if (auto scope = Authorize(principal, UseCase::kBringFiles); !scope.ok()) return scope.status();
  return std::make_unique<FileReceiver>(principal.user, services.files);
}

}  // namespace muster::broker
