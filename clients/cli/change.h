// The common part of cancel, hold and release: jobs by number or by filter, all of them or a trial.
#ifndef MUSTER_CLIENTS_CLI_CHANGE_H_
#define MUSTER_CLIENTS_CLI_CHANGE_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "clients/cli/exit_code.h"
#include "clients/cli/question.h"
#include "clients/cli/verbs.h"
#include "contract/counted.h"

namespace muster::cli {

// Asks about more jobs than one call changes, where somebody can answer; kOk: they are to change.
template <typename Request, typename Response>
int AskAboutMany(Session& session, std::string_view verb,
                 absl::StatusOr<Response> (client::Client::*method)(const Request&),
                 Request request) {
  const Invocation& call = session.call;
  if (call.yes || call.validate_only || !CanAsk(session)) return kOk;
  uint64_t jobs = call.jobs.size();
  if (!call.filter.empty()) {
    request.set_validate_only(true);
    const absl::StatusOr<Response> trial = (session.client.*method)(request);
    if (!trial.ok()) return Fail(session, trial.status());
    jobs = trial->matched_count();
  }
  return jobs <= kMaxUnasked || IsWanted(session, verb, jobs) ? kOk : kError;
}

// `note` says in words what became of the jobs of an answer, before they are shown.
template <typename Request, typename Response>
int Change(Session& session, std::string_view verb,
           absl::StatusOr<Response> (client::Client::*method)(const Request&),
           const std::function<void(const Response&)>& note) {
  const Invocation& call = session.call;
  Request request;
  request.set_filter(call.filter);
  request.set_reason(call.reason);
  request.set_validate_only(call.validate_only);
  const bool is_text = session.for_people() || session.ids_only();
  uint64_t shown = 0;
  uint64_t matched = 0;
  const std::function<void(const Response&)> show = [&](const Response& answer) {
    matched = shown + answer.matched_count();
    shown += static_cast<uint64_t>(answer.jobs_size());
    if (!is_text) return PrintMessage(session, answer);
    if (session.for_people() && !call.validate_only) note(answer);
    if (answer.jobs().empty()) return;
    v1::ListJobsResponse jobs;
    *jobs.mutable_jobs() = answer.jobs();
    PrintJobs(session, jobs);
  };
  if (const int code = AskAboutMany(session, verb, method, request); code != kOk) return code;
  // One call takes as many numbers; an array may have more tasks.
  constexpr size_t kMaxAtOnce = 1000;
  size_t named = 0;
  do {
    request.clear_job_ids();
    for (const size_t end = std::min(call.jobs.size(), named + kMaxAtOnce); named < end; ++named)
      request.add_job_ids(call.jobs[named].job);
    const absl::Status status = client::ChangeAll(session.client, method, request, show);
    if (!status.ok()) return Fail(session, status);
  } while (named < call.jobs.size());
  if (!session.for_people()) return kOk;
  if (call.validate_only) {
    session.terminal.Note(fmt::format("nothing was changed; {} would concern {}", verb,
                                      contract::Counted(matched, "job")));
  } else if (!call.filter.empty() && shown == 0) {
    session.terminal.Note(fmt::format("there is no job to {} among those of the filter", verb));
  }
  NoteOtherTasks(session, verb);
  return kOk;
}

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CHANGE_H_
