// Tells what projects, their users and clusters have used.
#ifndef MUSTER_BROKER_APP_GET_USAGE_H_
#define MUSTER_BROKER_APP_GET_USAGE_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/usage_service.pb.h"

namespace muster::broker {

// Reads the store, a row for each day of each combination; call it on a thread for that.
absl::StatusOr<v1::GetUsageResponse> GetUsage(const Principal& principal, const Services& services,
                                              const v1::GetUsageRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_GET_USAGE_H_
