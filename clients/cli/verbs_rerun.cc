// The verb rerun: ended jobs once more, however many they are.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/chosen_jobs.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/question.h"
#include "clients/cli/verbs.h"
#include "contract/counted.h"
#include "contract/errors.h"

namespace muster::cli {
namespace {

// A list of more numbers is no slip that anybody can look through; narrow filters do them in parts.
constexpr size_t kMaxRerun = 1'000'000;

bool IsTooMany(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info.has_value() && info->reason() == "TOO_MANY_JOBS";
}

// Prints the numbers of the new jobs, or the message.
int TellRerun(Session& session, const v1::RerunJobsResponse& response) {
  if (!session.for_people() && !session.ids_only()) {
    PrintMessage(session, response);
    return kOk;
  }
  std::string lines;
  for (const v1::RerunJob& job : response.jobs()) {
    if (job.job_id() != 0) lines += fmt::format("{}\n", job.job_id());
  }
  session.terminal.Out(lines);
  return kOk;
}

// Submits the jobs in parts, each all or none. A part whose specs are too much for one call is
// halved, under a request id of its own. A repeat with the same request id and the same jobs makes
// the same parts.
class RerunInParts {
 public:
  RerunInParts(Session* session, std::string request_id)
      : session_(*session), request_id_(std::move(request_id)) {}

  int Run(const std::vector<uint64_t>& jobs) {
    for (size_t at = 0; at < jobs.size();) {
      const size_t size = std::min<size_t>(size_, jobs.size() - at);
      v1::RerunJobsRequest request;
      request.mutable_job_ids()->Add(jobs.begin() + static_cast<ptrdiff_t>(at),
                                     jobs.begin() + static_cast<ptrdiff_t>(at + size));
      request.set_held(session_.call.hold);
      request.set_request_id(fmt::format("{}.{}.{}", request_id_, at, size));
      const auto response = session_.client.RerunJobs(request);
      if (IsTooMany(response.status()) && size > 1) {
        size_ = size / 2;
        continue;
      }
      if (!response.ok()) return FailPart(response.status(), at, jobs.size());
      TellRerun(session_, *response);
      at += size;
    }
    if (session_.for_people() && !session_.ids_only())
      session_.terminal.Note(fmt::format("{} run again", contract::Counted(jobs.size(), "job")));
    return kOk;
  }

 private:
  int FailPart(const absl::Status& status, size_t done, size_t all) {
    const int code = Fail(session_, status);
    session_.terminal.Err(
        fmt::format("muster: {} of {} jobs run again; to go on without making any twice, add: "
                    "--request-id {}\n",
                    done, all, request_id_));
    if (!session_.call.filter.empty()) {
      session_.terminal.Err(
          "muster: if other jobs of the filter have ended since, the parts are others, and the "
          "broker refuses the request id: narrow the filter to the jobs that are left\n");
    }
    return code;
  }

  Session& session_;
  const std::string request_id_;
  size_t size_ = kMaxUnasked;
};

// More jobs than one call runs again. Scripts that did not say that they mean it get the error.
int RerunMany(Session& session, const absl::Status& refusal, const std::string& request_id) {
  const Invocation& call = session.call;
  if (!call.yes && !CanAsk(session)) {
    const int code = Fail(session, refusal);
    session.terminal.Err("muster: to run them again in parts of 1000, add: --yes\n");
    return code;
  }
  std::vector<uint64_t> jobs;
  for (const JobRef& ref : call.jobs) jobs.push_back(ref.job);
  if (!call.filter.empty()) {
    const auto found = JobsOfFilter(
        session.client,
        fmt::format("({}) AND (state = SUCCEEDED OR state = FAILED OR state = CANCELED)",
                    call.filter),
        kMaxRerun);
    if (!found.ok()) return Fail(session, found.status());
    jobs = *found;
  }
  if (!call.yes && !IsWanted(session, "rerun", jobs.size())) return kError;
  return RerunInParts(&session, request_id).Run(jobs);
}

}  // namespace

int Rerun(Session& session) {
  const Invocation& call = session.call;
  v1::RerunJobsRequest request;
  for (const JobRef& ref : call.jobs) request.add_job_ids(ref.job);
  request.set_filter(call.filter);
  request.set_validate_only(call.validate_only);
  request.set_held(call.hold);
  // A repeat after a lost answer must not run the jobs twice.
  request.set_request_id(call.request_id.empty() ? client::NewRequestId() : call.request_id);
  // One call takes as many numbers.
  if (call.jobs.size() > kMaxUnasked && !call.validate_only) {
    return RerunMany(session, absl::InvalidArgumentError("these are more than 1000 jobs"),
                     request.request_id());
  }
  const auto response = session.client.RerunJobs(request);
  if (IsTooMany(response.status()))
    return RerunMany(session, response.status(), request.request_id());
  if (!response.ok()) return Fail(session, response.status());
  TellRerun(session, *response);
  if (!session.for_people() || session.ids_only()) return kOk;
  if (response->jobs().empty()) {
    session.terminal.Note("no job of the filter has ended; nothing was submitted");
  } else if (call.validate_only) {
    session.terminal.Note(
        response->more()
            ? fmt::format(
                  "nothing was submitted; {} jobs of the filter have ended, more than one call "
                  "runs again (1000 jobs, 16 MiB of specs, 64 trees of files); they would run "
                  "again in "
                  "parts, after a question or with --yes",
                  response->matched_count())
            : fmt::format("nothing was submitted; {} would run again",
                          contract::Counted(response->matched_count(), "job")));
  } else {
    const v1::RerunJob& first = response->jobs(0);
    session.terminal.Note(
        response->jobs_size() == 1
            ? fmt::format("job {} has the spec of job {}", first.job_id(), first.source_job_id())
            : fmt::format("{} jobs run again", response->jobs_size()));
  }
  return kOk;
}

}  // namespace muster::cli
