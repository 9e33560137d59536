// Reads what a run prints, piece by piece.
#ifndef MUSTER_BROKER_APP_READ_LOG_H_
#define MUSTER_BROKER_APP_READ_LOG_H_

#include <memory>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/pull_source.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

using LogSource = PullSource<v1::ReadLogResponse>;

// Does not block. INVALID_ARGUMENT is about the request; the first Next tells whether there is such
// a log.
absl::StatusOr<std::unique_ptr<LogSource>> ReadLog(const Principal& principal,
                                                   const Services& services,
                                                   const v1::ReadLogRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_READ_LOG_H_
