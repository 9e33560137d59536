// Takes files that a client sends, one by one, before it submits the jobs that need them.
#ifndef MUSTER_BROKER_APP_UPLOAD_FILES_H_
#define MUSTER_BROKER_APP_UPLOAD_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/app/user_meter.h"
#include "broker/files/upload.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// Takes one client's upload. It is for one call at a time; all of them block for the disk, the
// destructor too: it removes what is half there.
class FileReceiver {
 public:
  // `meter` bounds the bytes of the user; null if nothing does.
  FileReceiver(std::string user, files::Viewer viewer, files::FileStore* files, UserMeter* meter)
      : user_(std::move(user)), meter_(meter), upload_(files, std::move(viewer)) {}

  // Takes one message. After an error nothing more may be given.
  absl::Status Take(const v1::UploadFilesRequest& request);
  // Everything has come; returns the answer once it is on disk. At most once.
  absl::StatusOr<v1::UploadFilesResponse> Finish();

 private:
  absl::Status Handle(const v1::UploadFilesRequest& request);
  // RESOURCE_EXHAUSTED, TOO_MANY_UPLOAD_BYTES: the user has sent too much in the last hour.
  absl::Status Meter(uint64_t bytes) const;
  void LogRefused(const absl::Status& status) const;

  const std::string user_;
  UserMeter* const meter_;
  files::Upload upload_;
};

// Does not block.
absl::StatusOr<std::unique_ptr<FileReceiver>> UploadFiles(const Principal& principal,
                                                          const Services& services);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_UPLOAD_FILES_H_
