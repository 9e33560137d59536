// Plans the submission of a job on each cluster that could take it.
#ifndef MUSTER_BROKER_APP_PLAN_JOB_H_
#define MUSTER_BROKER_APP_PLAN_JOB_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

using PlanJobDone = std::function<void(absl::StatusOr<v1::PlanJobResponse>)>;

// Nobody waits for the answer after `client_deadline`. `done` is called once, on any thread.
// UNAVAILABLE, NO_CLUSTER_CONNECTED; an agent that does not answer is a failed check of its plan.
// Does not block.
void PlanJob(const Principal& principal, const Services& services,
             const v1::PlanJobRequest& request, absl::Time client_deadline, PlanJobDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PLAN_JOB_H_
