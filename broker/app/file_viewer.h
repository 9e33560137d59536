// Says which uploaded files a caller may know of.
#ifndef MUSTER_BROKER_APP_FILE_VIEWER_H_
#define MUSTER_BROKER_APP_FILE_VIEWER_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/rights.h"
#include "broker/files/viewer.h"

namespace muster::broker {

// Callers know of what they uploaded themselves, and of what jobs of the projects brought along in
// which they may do this. Those who may do it with everybody's files know of all. Errors are
// Authorize's.
absl::StatusOr<files::Viewer> FileViewer(const Principal& principal, UseCase use_case);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FILE_VIEWER_H_
