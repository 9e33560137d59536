// Tells which files the broker does not have of the caller's (file_viewer.h), so that a client
// uploads only these.
#ifndef MUSTER_BROKER_APP_FIND_MISSING_FILES_H_
#define MUSTER_BROKER_APP_FIND_MISSING_FILES_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// Blocks for up to some milliseconds. It runs on a thread that may use the store of files.
absl::StatusOr<v1::FindMissingFilesResponse> FindMissingFiles(
    const Principal& principal, const Services& services,
    const v1::FindMissingFilesRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FIND_MISSING_FILES_H_
