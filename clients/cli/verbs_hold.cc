// Verbs that hold jobs back and let them go on.
#include <fmt/format.h>

#include "clients/cli/exit_code.h"
#include "clients/cli/verbs.h"
#include "clients/cli/views.h"

namespace muster::cli {
namespace {

template <typename Request>
Request RequestFor(const Invocation& call) {
  Request request;
  for (const JobRef& ref : call.jobs) request.add_job_ids(ref.job);
  request.set_reason(call.reason);
  return request;
}

template <typename Response>
int Report(Session& session, const absl::StatusOr<Response>& response) {
  if (!response.ok()) return Fail(session, response.status());
  if (!session.for_people() && !session.ids_only()) {
    PrintMessage(session, *response);
    return kOk;
  }
  v1::ListJobsResponse jobs;
  *jobs.mutable_jobs() = response->jobs();
  PrintJobs(session, jobs);
  return kOk;
}

}  // namespace

int Hold(Session& session) {
  auto response = session.client.HoldJobs(RequestFor<v1::HoldJobsRequest>(session.call));
  if (response.ok() && session.for_people()) {
    // Whether a cluster can still keep back what it has, it tells later.
    for (v1::Job& job : *response->mutable_jobs()) {
      if (job.state() == v1::JOB_STATE_PENDING)
        job.set_reason(fmt::format("asked to hold; if too late: muster events {}", job.id()));
    }
  }
  return Report(session, response);
}

int Release(Session& session) {
  auto response = session.client.ReleaseJobs(RequestFor<v1::ReleaseJobsRequest>(session.call));
  if (response.ok() && session.for_people()) {
    // What the cluster last said is from before.
    for (v1::Job& job : *response->mutable_jobs()) {
      if (SaysHeld(job.reason())) job.set_reason("released; its cluster is being told");
    }
  }
  return Report(session, response);
}

}  // namespace muster::cli
