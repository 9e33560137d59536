// Verbs that hold jobs back and let them go on.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

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

// Those that a release leaves as they are: their rows alone would look as if it had done something.
std::vector<uint64_t> JobsNotHeld(Session& session) {
  std::vector<uint64_t> jobs;
  if (!session.for_people()) return jobs;
  constexpr size_t kMaxLookedAt = 20;  // of more nobody reads a line each
  for (size_t i = 0; i < std::min(session.call.jobs.size(), kMaxLookedAt); ++i) {
    v1::GetJobRequest request;
    request.set_job_id(session.call.jobs[i].job);
    const auto response = session.client.GetJob(request);
    // The release itself tells what is wrong.
    if (!response.ok()) break;
    const v1::Job& job = response->job();
    if (!job.held() && !SaysHeld(job.reason())) jobs.push_back(job.id());
  }
  return jobs;
}

}  // namespace

int Hold(Session& session) {
  auto response = session.client.HoldJobs(RequestFor<v1::HoldJobsRequest>(session.call));
  if (response.ok() && session.for_people()) {
    NoteOtherTasks(session, "hold");
    // Whether a cluster can still keep back what it has, it tells later.
    for (v1::Job& job : *response->mutable_jobs()) {
      if (job.state() == v1::JOB_STATE_PENDING) job.set_reason(HoldAskedText(job.id()));
    }
  }
  return Report(session, response);
}

int Release(Session& session) {
  const std::vector<uint64_t> not_held = JobsNotHeld(session);
  auto response = session.client.ReleaseJobs(RequestFor<v1::ReleaseJobsRequest>(session.call));
  if (response.ok() && session.for_people()) {
    for (const uint64_t job : not_held)
      session.terminal.Note(fmt::format("job {} was not held", job));
    // What the cluster last said is from before.
    for (v1::Job& job : *response->mutable_jobs()) {
      if (SaysHeld(job.reason())) job.set_reason("released; its cluster is being told");
    }
    NoteOtherTasks(session, "release");
  }
  return Report(session, response);
}

}  // namespace muster::cli
