// One job, with its runs and why it waits.
#ifndef MUSTER_BROKER_APP_GET_JOB_H_
#define MUSTER_BROKER_APP_GET_JOB_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// NOT_FOUND: there is no such job, or the principal may not see it. Blocks; on the readers.
absl::StatusOr<v1::GetJobResponse> GetJob(const Principal& principal, const Services& services,
                                          const v1::GetJobRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_GET_JOB_H_
