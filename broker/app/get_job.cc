#include "broker/app/get_job.h"

#include <utility>

#include "broker/app/cluster_losses.h"
#include "broker/app/queue_reasons.h"
#include "broker/app/rights.h"
#include "broker/app/silence.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"

namespace muster::broker {

absl::StatusOr<v1::GetJobResponse> GetJob(const Principal& principal, const Services& services,
                                          const v1::GetJobRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return scope.status();
  absl::StatusOr<v1::Job> job = services.store->GetJob(*scope, request.job_id());
  if (!job.ok()) return job.status();
  v1::GetJobResponse response;
  *response.mutable_job() = *std::move(job);
  AnswerRoom room;
  AddQueueReasons(services, *scope, {response.mutable_job()}, room);
  AddSilence(*services.engine->clusters(), {response.mutable_job()}, room);
  AddLosses(services, *scope, {response.mutable_job()}, room);
  return response;
}

}  // namespace muster::broker
