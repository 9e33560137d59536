// Reads every change of jobs, in order.
#ifndef MUSTER_BROKER_APP_WATCH_JOBS_H_
#define MUSTER_BROKER_APP_WATCH_JOBS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/pull_source.h"
#include "broker/app/services.h"
#include "broker/engine/change_tail.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Gives messages as bytes, each a v1::WatchJobsResponse: a change that many watch is serialised
// once. Two such messages in a row are one message that has the changes of both.
using WatchSource = PullSource<ChangeBytes>;

// Does not block. INVALID_ARGUMENT is about the request; the first Next tells whether there are
// such jobs.
absl::StatusOr<std::unique_ptr<WatchSource>> WatchJobs(const Principal& principal,
                                                       const Services& services,
                                                       const v1::WatchJobsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_WATCH_JOBS_H_
