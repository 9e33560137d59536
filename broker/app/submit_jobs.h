// Takes jobs in.
#ifndef MUSTER_BROKER_APP_SUBMIT_JOBS_H_
#define MUSTER_BROKER_APP_SUBMIT_JOBS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/core/core.h"
#include "broker/engine/effects.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

using SubmitJobDone = std::function<void(absl::StatusOr<v1::SubmitJobResponse>)>;

// `done` is called once, on any thread, with jobs that are on disk. Does not block.
void SubmitJob(const Principal& principal, const Services& services, v1::SubmitJobRequest request,
               SubmitJobDone done);
// Submits all or none.
void SubmitJobs(const Principal& principal, const Services& services, v1::SubmitJobsRequest request,
                SubmitDone done);

// The request as the core takes it, with every field checked, and the caller's rights.
absl::StatusOr<core::Submit> ToSubmit(const Principal& principal, const Services& services,
                                      v1::SubmitJobRequest request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SUBMIT_JOBS_H_
