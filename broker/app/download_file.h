// Reads a file that jobs bring along.
#ifndef MUSTER_BROKER_APP_DOWNLOAD_FILE_H_
#define MUSTER_BROKER_APP_DOWNLOAD_FILE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/pull_source.h"
#include "broker/app/services.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

using FileSource = PullSource<v1::DownloadFileResponse>;

// Does not block. INVALID_ARGUMENT is about the request; the first Next tells whether there is such
// a file of the caller's (file_viewer.h).
absl::StatusOr<std::unique_ptr<FileSource>> DownloadFile(const Principal& principal,
                                                         const Services& services,
                                                         const v1::DownloadFileRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_DOWNLOAD_FILE_H_
