// Lists the history of a job, page by page.
#ifndef MUSTER_BROKER_APP_LIST_TRANSITIONS_H_
#define MUSTER_BROKER_APP_LIST_TRANSITIONS_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Blocks for some milliseconds. It runs on a thread of Services::readers.
absl::StatusOr<v1::ListTransitionsResponse> ListTransitions(
    const Principal& principal, const Services& services,
    const v1::ListTransitionsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_LIST_TRANSITIONS_H_
