// Verbs that change jobs which are there: cancel, update.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/change.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/field_flags.h"
#include "clients/cli/verbs.h"
#include "contract/counted.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// More ids than this nobody reads.
constexpr size_t kMaxIds = 20;

// "1 2 3", as they can be typed again; not more than anyone reads.
std::string Ids(const std::vector<uint64_t>& ids) {
  const std::vector<uint64_t> some(ids.begin(), ids.begin() + std::min(ids.size(), kMaxIds));
  return fmt::format("{}{}", fmt::join(some, " "), ids.size() > kMaxIds ? " ..." : "");
}

// Returns those of the jobs that are canceled already, so that the answer to the cancel, in which
// they look like the others, is not told as if it had canceled them. It looks at no more jobs than
// the answer names.
absl::StatusOr<std::set<uint64_t>> CanceledBefore(Session& session) {
  std::set<uint64_t> canceled;
  const std::vector<JobRef>& jobs = session.call.jobs;
  if (!session.for_people() || jobs.size() > kMaxIds) return canceled;
  for (const JobRef& ref : jobs) {
    v1::GetJobRequest request;
    request.set_job_id(ref.job);
    const auto response = session.client.GetJob(request);
    // The cancel itself tells which job there is not.
    if (absl::IsNotFound(response.status())) continue;
    if (!response.ok()) return response.status();
    if (response->job().state() == v1::JOB_STATE_CANCELED) canceled.insert(ref.job);
  }
  return canceled;
}

// Tells the result for each job that was to be canceled. `before`: was canceled already.
void NoteCanceled(Session& session, const std::set<uint64_t>& before,
                  const v1::CancelJobsResponse& response) {
  std::vector<uint64_t> canceled;
  std::vector<uint64_t> already;
  std::vector<uint64_t> requested;
  std::vector<uint64_t> ended;
  for (const v1::Job& job : response.jobs()) {
    auto& group = before.contains(job.id())               ? already
                  : job.state() == v1::JOB_STATE_CANCELED ? canceled
                  : contract::IsTerminal(job.state())     ? ended
                                                          : requested;
    group.push_back(job.id());
  }
  if (!canceled.empty()) session.terminal.Note("canceled: " + Ids(canceled));
  if (!already.empty()) session.terminal.Note("had been canceled already: " + Ids(already));
  if (!ended.empty()) session.terminal.Note("had ended already: " + Ids(ended));
  if (!requested.empty()) {
    const std::string ids = Ids(requested);
    session.terminal.Note(fmt::format(
        "cancel requested, the cluster has yet to end: {}; see the end with: muster wait {}", ids,
        ids));
  }
}

}  // namespace

int Cancel(Session& session) {
  const auto before = CanceledBefore(session);
  if (!before.ok()) return Fail(session, before.status());
  const auto note = [&](const v1::CancelJobsResponse& response) {
    NoteCanceled(session, *before, response);
  };
  return Change<v1::CancelJobsRequest, v1::CancelJobsResponse>(session, "cancel",
                                                               &client::Client::CancelJobs, note);
}

int Update(Session& session) {
  const Invocation& call = session.call;
  v1::UpdateJobRequest request;
  if (call.spec.priority) request.set_priority(*call.spec.priority);
  for (const std::string& label : call.spec.labels) {
    const size_t equals = label.find('=');
    (*request.mutable_set_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  for (const std::string& key : call.remove_labels) request.add_remove_labels(key);
  request.set_reason(call.reason);
  v1::ListJobsResponse jobs;
  for (const JobRef& ref : call.jobs) {
    request.set_job_id(ref.job);
    auto response = session.client.UpdateJob(request);
    if (!response.ok()) return Fail(session, response.status());
    for (const v1::SubmitWarning& warning : response->warnings())
      session.terminal.Note("warning: " + WarningText(warning, {}));
    if (!session.for_people() && !session.ids_only()) {
      PrintMessage(session, response->job());
    } else {
      *jobs.add_jobs() = std::move(*response->mutable_job());
    }
  }
  if (!jobs.jobs().empty()) PrintJobs(session, jobs);
  return kOk;
}

}  // namespace muster::cli
