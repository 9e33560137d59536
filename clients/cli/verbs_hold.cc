// Verbs that hold jobs back, let them go on, and take them back from clusters.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "clients/cli/change.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/verbs.h"
#include "clients/cli/views.h"

namespace muster::cli {
namespace {

// Returns the jobs that a release leaves as they are: their rows alone would look as if it had done
// something.
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
    const v1::StateReason& reason = KnownReason(job);
    if (!job.held() && !SaysReleased(reason) && !SaysHeld(reason)) jobs.push_back(job.id());
  }
  return jobs;
}

}  // namespace

int Hold(Session& session) {
  const auto note = [](const v1::HoldJobsResponse&) {};
  return Change<v1::HoldJobsRequest, v1::HoldJobsResponse>(session, "hold",
                                                           &client::Client::HoldJobs, note);
}

int Release(Session& session) {
  const std::vector<uint64_t> not_held = JobsNotHeld(session);
  const auto note = [&session, &not_held](const v1::ReleaseJobsResponse&) {
    for (const uint64_t job : not_held)
      session.terminal.Note(fmt::format("job {} was not held", job));
  };
  return Change<v1::ReleaseJobsRequest, v1::ReleaseJobsResponse>(
      session, "release", &client::Client::ReleaseJobs, note);
}

int Move(Session& session) {
  // Jobs that wait on no cluster are left as they are, which their rows alone do not say.
  const auto note = [&session](const v1::MoveJobsResponse& answer) {
    for (const v1::Job& job : answer.jobs()) {
      if (!job.has_withdrawal())
        session.terminal.Note(
            fmt::format("job {} waits in no cluster's queue, and stays as it is", job.id()));
    }
  };
  return Change<v1::MoveJobsRequest, v1::MoveJobsResponse>(session, "move",
                                                           &client::Client::MoveJobs, note);
}

}  // namespace muster::cli
