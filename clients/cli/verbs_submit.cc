// Verbs that submit: submit and run.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/follow.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::cli {
namespace {

// The flags whose fields have other names in the API.
constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"working_directory", "--workdir"},
    {"time_limit", "--time"},
    {"command.argv", "the command"},
    {"resources.cpu_millis", "--cpus"},
    {"resources.memory_bytes", "--memory"},
    {"resources.gpus", "--gpus"},
    {"placement.clusters", "--cluster"},
    {"placement.pool", "--pool"},
    {"labels", "--label"},
    {"env", "--env"},
    {"mounts", "--mount"},
};

// "--workdir (working_directory)": what was typed, beside the API's name for it.
std::string WithFlag(std::string_view field) {
  for (const auto& [name, flag] : kFlags) {
    const bool is_it =
        field.starts_with(name) &&
        (field.size() == name.size() || field[name.size()] == '.' || field[name.size()] == '[');
    if (is_it) return fmt::format("{} ({})", flag, field);
  }
  return std::string(field);
}

// A spec that the broker would refuse is refused here without a round trip; what is not honoured
// yet is left to the broker, which may be newer. A file's own fields have been checked with it, so
// that what is wrong here came by a flag.
absl::Status Check(const v1::JobSpec& spec) {
  const absl::Status status = contract::NormalizeJobSpec(spec).status();
  if (absl::IsUnimplemented(status)) return absl::OkStatus();
  const auto bad_request = contract::GetBadRequest(status);
  if (!bad_request) return status;
  contract::FieldErrors errors;
  for (const auto& violation : bad_request->field_violations()) {
    errors.Add(WithFlag(violation.field()), violation.description());
  }
  return errors.ToStatus();
}

v1::SubmitJobRequest RequestFor(v1::JobSpec spec, std::string request_id, bool validate_only) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = std::move(spec);
  request.set_request_id(std::move(request_id));
  request.set_validate_only(validate_only);
  return request;
}

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

// Of "requests[3].spec." the 3, and 0 of "spec."; `names` loses it.
size_t TakeJob(std::string_view* names) {
  constexpr std::string_view kRequests = "requests[";
  constexpr std::string_view kSpec = "spec.";
  size_t job = 0;
  if (names->starts_with(kRequests)) {
    const std::string_view number = names->substr(kRequests.size());
    std::from_chars(number.data(), number.data() + number.size(), job);
  }
  const size_t spec = names->find(kSpec);
  if (spec != std::string_view::npos) names->remove_prefix(spec + kSpec.size());
  return job;
}

// An answer that names fields which are not honoured yet, with their places in the file.
absl::Status AtItsPlace(const absl::Status& status, const client::FieldPlaces& places) {
  const auto info = contract::GetErrorInfo(status);
  if (!info || info->reason() != "FIELD_NOT_HONOURED") return status;
  const auto field = info->metadata().find("field");
  if (field == info->metadata().end()) return status;
  std::string_view names = field->second;
  const size_t job = TakeJob(&names);
  std::string text;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const std::string place = places.Find(job, name);
    if (!place.empty()) text += fmt::format("{}: {}: is not honoured yet\n", place, name);
  }
  return absl::UnimplementedError(fmt::format("{}{}", text, ToStd(status.message())));
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

// All or none.
absl::StatusOr<v1::SubmitJobsResponse> Send(Session& session,
                                            const v1::SubmitJobsRequest& request) {
  if (request.requests_size() != 1) return session.client.SubmitJobs(request);
  const auto one = session.client.SubmitJob(request.requests(0));
  if (!one.ok()) return one.status();
  v1::SubmitJobsResponse response;
  *response.add_responses() = *one;
  return response;
}

// The request for all the jobs of one command. `id` is the request_id of a single job; of several,
// each has its number after it.
absl::StatusOr<v1::SubmitJobsRequest> RequestForAll(std::vector<v1::JobSpec> specs,
                                                    const std::string& id, bool validate_only) {
  v1::SubmitJobsRequest request;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (absl::Status status = Check(specs[i]); !status.ok()) return status;
    std::string request_id = specs.size() == 1 ? id : fmt::format("{}.{}", id, i + 1);
    if (absl::Status status = contract::ValidateRequestId(request_id); !status.ok()) return status;
    *request.add_requests() = RequestFor(std::move(specs[i]), std::move(request_id), validate_only);
  }
  return request;
}

int FailToSubmit(Session& session, const absl::Status& status, const std::string& remark) {
  const int code = Fail(session, status);
  const bool is_unclear = (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) &&
                          !client::WasNeverSent(status);
  if (is_unclear && !session.call.validate_only) {
    session.terminal.Err(fmt::format("muster: {}\n", remark));
  }
  return code;
}

int SubmitSpecs(Session& session, std::vector<v1::JobSpec> specs,
                const client::FieldPlaces& places) {
  const Invocation& call = session.call;
  const size_t count = specs.size();
  const std::string limit = count == 1 ? LimitRemark(specs[0]) : "";
  const std::string id = call.request_id.empty() ? client::NewRequestId() : call.request_id;
  const auto request = RequestForAll(std::move(specs), id, call.validate_only);
  if (!request.ok()) return Fail(session, request.status());
  const std::string remark = fmt::format(
      "the broker may have it all the same; to repeat it without making {}, add: --request-id {}",
      count == 1 ? "a second job" : "the jobs twice", id);
  if (call.wait) {
    session.interrupt->SetRemark("interrupted before the broker had answered; " + remark);
  }
  const absl::StatusOr<v1::SubmitJobsResponse> response = Send(session, *request);
  if (!response.ok()) {
    return FailToSubmit(session, AtItsPlace(response.status(), places), remark);
  }
  if (call.validate_only) {
    session.terminal.Note(count == 1
                              ? fmt::format("the job is good{}; nothing was submitted", limit)
                              : "the jobs are good; nothing was submitted");
    return kOk;
  }
  std::vector<uint64_t> ids;
  for (const auto& accepted : response->responses()) ids.push_back(accepted.job_id());
  if (call.wait) {
    session.interrupt->SetRemark(
        fmt::format("no longer waiting; {} on. Come back with: muster {} {}",
                    ids.size() == 1 ? "the job goes" : "the jobs go",
                    ids.size() == 1 ? "logs -f" : "wait", fmt::join(ids, " ")));
    return WaitAndReport(session, ids, limit);
  }
  if (session.for_people() || session.ids_only()) {
    PrintIds(session, ids);
    if (ids.size() == 1 && session.terminal.err_is_terminal()) {
      session.terminal.Note(
          fmt::format("submitted{}; follow it with: muster logs -f {}", limit, ids[0]));
    }
  } else if (ids.size() == 1) {
    PrintMessage(session, response->responses(0));
  } else {
    PrintMessage(session, *response);
  }
  return kOk;
}

int FailUsage(Session& session, const absl::Status& status) {
  Fail(session, status);
  return kUsage;
}

}  // namespace

int Submit(Session& session) {
  client::FieldPlaces places;
  absl::StatusOr<std::vector<v1::JobSpec>> specs = client::ReadJobFile(session.call.file, &places);
  if (!specs.ok()) return Fail(session, specs.status());
  for (v1::JobSpec& spec : *specs) {
    const absl::Status status = session.call.spec.ApplyTo(&spec);
    if (!status.ok()) return FailUsage(session, status);
  }
  return SubmitSpecs(session, *std::move(specs), places);
}

int Run(Session& session) {
  v1::JobSpec spec;
  const auto& command = session.call.command;
  spec.mutable_command()->mutable_argv()->mutable_args()->Assign(command.begin(), command.end());
  const absl::Status status = session.call.spec.ApplyTo(&spec);
  if (!status.ok()) return FailUsage(session, status);
  std::vector<v1::JobSpec> specs;
  specs.push_back(std::move(spec));
  return SubmitSpecs(session, std::move(specs), {});
}

}  // namespace muster::cli
