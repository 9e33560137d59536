// Submits the specs of jobs that have ended once more.
#ifndef MUSTER_BROKER_APP_RERUN_JOBS_H_
#define MUSTER_BROKER_APP_RERUN_JOBS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

using RerunDone = std::function<void(absl::StatusOr<v1::RerunJobsResponse>)>;

// `done` is called once, on any thread. Does not block.
void RerunJobs(const Principal& principal, const Services& services, v1::RerunJobsRequest request,
               RerunDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_RERUN_JOBS_H_
