// Counts the jobs that a filter takes, in groups.
#ifndef MUSTER_BROKER_APP_COUNT_JOBS_H_
#define MUSTER_BROKER_APP_COUNT_JOBS_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Blocks for up to a second for a million jobs. It runs on a thread of Services::counters.
absl::StatusOr<v1::CountJobsResponse> CountJobs(const Principal& principal,
                                                const Services& services,
                                                const v1::CountJobsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_COUNT_JOBS_H_
