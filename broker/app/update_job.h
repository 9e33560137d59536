// Changes the priority or the labels of a job.
#ifndef MUSTER_BROKER_APP_UPDATE_JOB_H_
#define MUSTER_BROKER_APP_UPDATE_JOB_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

using UpdateDone = std::function<void(absl::StatusOr<v1::UpdateJobResponse>)>;

// `done` is called once, on any thread. Does not block. An error means that nothing was changed.
void UpdateJob(const Principal& principal, const Services& services, v1::UpdateJobRequest request,
               UpdateDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_UPDATE_JOB_H_
