// Verbs that submit: submit and run.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/follow.h"
#include "clients/cli/submission.h"
#include "clients/cli/unread_input.h"
#include "clients/cli/verbs.h"

namespace muster::cli {
namespace {

void PrintIds(Session& session, const std::vector<uint64_t>& ids) {
  std::string out;
  for (uint64_t id : ids) out += fmt::format("{}\n", id);
  session.terminal.Out(out);
}

// ", to be stopped after 1m30s": who meant minutes by --time 90 sees it before the job dies of it.
std::string LimitRemark(const v1::JobSpec& spec) {
  if (!spec.has_time_limit()) return "";
  return fmt::format(", to be stopped after {}", TimeLimitText(spec));
}

// Suggests the next command for the job that has just been submitted.
std::string NextRemark(const Invocation& call, uint64_t id) {
  return call.hold ? fmt::format("it is held; let it go with: muster release {}", id)
                   : fmt::format("follow it with: muster logs -f {}", id);
}

// Looked for after the broker has answered, and once more when the job has ended: what is piped to
// us may come late. Returns whether there was some.
bool NoteUnreadInput(Session& session) {
  const std::vector<std::string>& files = session.call.files;
  if (std::find(files.begin(), files.end(), "-") != files.end()) return false;
  if (!HasUnreadInput(files.empty() ? "" : files[0])) return false;
  session.terminal.Note(
      "standard input is not passed on: a job reads nothing from there. Bring data as files with "
      "--workdir DIR, or write it into the script of a job file (cat <<EOF); to say nothing of it, "
      "add </dev/null");
  return true;
}

// The code of the first job that did not succeed.
int CodeForAll(const std::vector<v1::Job>& jobs) {
  for (const v1::Job& job : jobs) {
    if (CodeFor(job) != kOk) return CodeFor(job);
  }
  return kOk;
}

// Waits for jobs that have just been submitted: one with its log, several without.
int WaitAndReport(Session& session, const std::vector<uint64_t>& ids, const std::string& remark) {
  std::vector<v1::Job> jobs;
  if (ids.size() == 1) {
    session.terminal.Note(fmt::format("submitted as job {}{}", ids[0], remark));
    absl::StatusOr<v1::Job> job = StreamJob(session, ids[0]);
    if (!job.ok()) return Fail(session, job.status());
    jobs.push_back(*std::move(job));
  } else {
    PrintIds(session, ids);
    auto ended = WaitForJobs(session, ids, absl::InfiniteFuture());
    if (!ended.ok()) return Fail(session, ended.status());
    jobs = *std::move(ended);
  }
  for (const v1::Job& job : jobs) NoteEnd(session, job);
  return CodeForAll(jobs);
}

int SubmitJobs(Session& session, client::JobFile jobs) {
  const Invocation& call = session.call;
  const size_t count = jobs.specs.size();
  const std::string limit = count == 1 ? LimitRemark(jobs.specs[0]) : "";
  const auto sent = SendJobs(session, std::move(jobs), JobFlags(), call.validate_only);
  if (const int* code = std::get_if<int>(&sent)) return *code;
  const auto& response = std::get<v1::SubmitJobsResponse>(sent);
  if (call.validate_only) {
    session.terminal.Note(count == 1
                              ? fmt::format("the job is good{}; nothing was submitted", limit)
                              : "the jobs are good; nothing was submitted");
    return kOk;
  }
  const bool is_input_noted = NoteUnreadInput(session);
  std::vector<uint64_t> ids;
  for (const auto& accepted : response.responses()) ids.push_back(accepted.job_id());
  if (call.wait) {
    session.interrupt->SetRemark(
        fmt::format("no longer waiting; {} on. Come back with: muster {} {}",
                    ids.size() == 1 ? "the job goes" : "the jobs go",
                    ids.size() == 1 ? "logs -f" : "wait", fmt::join(ids, " ")));
    const int code = WaitAndReport(session, ids, limit);
    if (!is_input_noted) NoteUnreadInput(session);
    return code;
  }
  if (session.for_people() || session.ids_only()) {
    PrintIds(session, ids);
    if (ids.size() == 1 && session.terminal.err_is_terminal()) {
      session.terminal.Note(fmt::format("submitted{}; {}", limit, NextRemark(call, ids[0])));
    }
  } else {
    // One job and several have the same form.
    for (const auto& accepted : response.responses()) PrintMessage(session, accepted);
  }
  return kOk;
}

}  // namespace

int Submit(Session& session) {
  auto jobs = AskedFor(session);
  if (const int* code = std::get_if<int>(&jobs)) return *code;
  return SubmitJobs(session, std::get<client::JobFile>(std::move(jobs)));
}

int Run(Session& session) { return Submit(session); }

}  // namespace muster::cli
