// Lists jobs by a filter, in pages, each with the reason why it waits.
#ifndef MUSTER_BROKER_APP_LIST_JOBS_H_
#define MUSTER_BROKER_APP_LIST_JOBS_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Lists those that the principal may see. Blocks; on the readers.
absl::StatusOr<v1::ListJobsResponse> ListJobs(const Principal& principal, const Services& services,
                                              const v1::ListJobsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_LIST_JOBS_H_
