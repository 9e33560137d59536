#include "clients/cli/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "clients/cli/alternatives.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/known_clusters.h"
#include "clients/cli/local_secrets.h"
#include "clients/cli/text.h"
#include "clients/cli/uploading.h"
#include "clients/cpp/job_files.h"
#include "clients/cpp/local_upload.h"
#include "clients/cpp/local_uploads.h"
#include "contract/errors.h"
#include "contract/job_file_names.h"
#include "contract/parts.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::cli {
namespace {

// The flags whose fields have other names in the API.
constexpr std::pair<std::string_view, std::string_view> kSubmissionFlags[] = {
    {"working_directory", "--workdir"},
    {"time_limit", "--time"},
    {"resources.cpu_millis", "--cpus"},
    {"resources.memory_bytes", "--memory"},
    {"resources.gpus", "--gpus"},
    {"placement.clusters", "--cluster"},
    {"placement.pool", "--pool"},
    {"labels", "--label"},
    {"env", "--env"},
    {"secrets", "--secret"},
    {"mounts", "--mount"},
    {"depends_on", "--after"},
};

// The times that files are uploaded again which went between upload and submit: it takes a broker
// that loses them, or a clock that is set.
constexpr int kMaxUploadsAgain = 2;

// The way in which a command's jobs are sent.
struct Sending {
  std::string request_id;  // of a single job; of several, each has its number after it
  bool validate_only = false;
  bool held = false;
};

// An answer about one job of several, as its user counts them: the tasks of an array are one
// script.
absl::Status ForTheUser(const absl::Status& status, const Invocation& call,
                        const client::JobFile& jobs, const FieldFlags& flags) {
  absl::Status own = NamingFlags(status, flags);
  const auto info = contract::GetErrorInfo(own);
  if (!info) return own;
  const auto index = info->metadata().find("request");
  if (index == info->metadata().end() || call.files.empty()) return own;
  const size_t job = contract::ParseNumber<size_t>(index->second).value_or(0);
  // The place tells which one of several files it is.
  std::error_code unreadable;
  const bool is_one =
      call.files.size() == 1 && !std::filesystem::is_directory(call.files[0], unreadable);
  const std::string found = jobs.places.Find(job, "");
  const std::string_view file =
      call.files[0] == "-" ? "standard input" : std::string_view(call.files[0]);
  const std::string place = is_one          ? fmt::format("{}: job {}", file, job + 1)
                            : found.empty() ? fmt::format("job {}", job + 1)
                                            : found;
  return contract::InOtherWords(own, fmt::format("{}: {}", place, ToStd(own.message())));
}

// All or none.
absl::StatusOr<v1::SubmitJobsResponse> SendRequests(Session& session,
                                                    const v1::SubmitJobsRequest& request) {
  if (request.requests_size() != 1) return session.client.SubmitJobs(request);
  const auto one = session.client.SubmitJob(request.requests(0));
  if (!one.ok()) return one.status();
  v1::SubmitJobsResponse response;
  *response.add_responses() = *one;
  return response;
}

// The request for all the jobs of one command.
absl::StatusOr<v1::SubmitJobsRequest> RequestForAll(const std::vector<v1::JobSpec>& specs,
                                                    const FieldFlags& flags, const Sending& how) {
  v1::SubmitJobsRequest request;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (absl::Status status = CheckSpec(specs[i], flags); !status.ok()) return status;
    const std::string id =
        specs.size() == 1 ? how.request_id : fmt::format("{}.{}", how.request_id, i + 1);
    if (absl::Status status = contract::ValidateRequestId(id); !status.ok()) return status;
    v1::SubmitJobRequest& one = *request.add_requests();
    *one.mutable_spec() = specs[i];
    one.set_request_id(id);
    one.set_validate_only(how.validate_only);
    one.set_held(how.held);
  }
  return request;
}

// Returns whether the broker may have the jobs all the same.
bool IsUnclear(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) &&
         !client::WasNeverSent(status);
}

int FailToSubmit(Session& session, const absl::Status& status, const std::string& remark,
                 bool validate_only) {
  const int code = Fail(session, status);
  if (IsUnclear(status) && !validate_only) {
    session.terminal.Err(fmt::format("muster: {}\n", remark));
  }
  return code;
}

// Jobs that are alike have the same ones.
void TellWarnings(Session& session, const v1::SubmitJobsResponse& response,
                  const FieldFlags& flags) {
  std::set<std::string> told;
  for (const v1::SubmitJobResponse& one : response.responses()) {
    for (const v1::SubmitWarning& warning : one.warnings()) {
      const std::string words = WarningText(warning, flags);
      if (told.insert(words).second) session.terminal.Note("warning: " + words);
    }
  }
}

int FailSubmission(Session& session, const absl::Status& status) {
  Fail(session, status);
  return kUsage;
}

// Advises about a submission without an answer.
std::string RepeatRemark(const Session& session, size_t count, const std::string& id) {
  if (session.call.verb == Verb::kSbatch) {
    return "the broker may have it all the same; look before you submit it again: muster squeue "
           "--me";
  }
  if (session.call.verb == Verb::kSky) {
    return "the broker may have it all the same; look before you submit it again: muster sky queue";
  }
  return fmt::format(
      "the broker may have it all the same; to repeat it without making {}, add: --request-id {}",
      count == 1 ? "a second job" : "the jobs twice", id);
}

// The answer to the jobs, an error in the user's words.
absl::StatusOr<v1::SubmitJobsResponse> SendOnce(Session& session, const client::JobFile& jobs,
                                                const FieldFlags& flags, const Sending& how) {
  const auto request = RequestForAll(jobs.specs, flags, how);
  if (!request.ok()) return request.status();
  auto response = SendRequests(session, *request);
  if (response.ok()) return response;
  return ForTheUser(response.status(), session.call, jobs, flags);
}

// Returns whether the broker lacks files that are here to be uploaded.
bool LacksFiles(const absl::Status& status, const client::JobFile& jobs) {
  const auto info = contract::GetErrorInfo(status);
  const bool has_files = !jobs.local_uploads.empty() || !jobs.contents.empty();
  return has_files && info && info->reason() == "FILES_MISSING";
}

// Sends what the specs name by digests. Most brokers have it from an earlier job: this one does
// not, it has just said so.
absl::Status SendContents(Session& session, const client::JobFile& jobs) {
  client::MissingFiles missing;
  for (const auto& [sha256, content] : jobs.contents) {
    missing.files.push_back({sha256, content.size(), {}, content});
    missing.bytes += content.size();
  }
  if (missing.files.empty()) return absl::OkStatus();
  return client::SendFiles(&session.client, missing, [](uint64_t) {});
}

// The broker has the files of the jobs. If it is only to judge the jobs, it gets none, and what
// they are is returned.
absl::StatusOr<std::string> BringFiles(Session& session, const FieldFlags& flags,
                                       const Sending& how, client::JobFile* jobs) {
  if (how.validate_only) {
    auto found = ReadUploads(session, jobs);
    if (found.ok() && !found->empty()) *found = "it " + *found;
    return found;
  }
  if (session.interrupt != nullptr && !jobs->local_uploads.empty())
    session.interrupt->SetRemark("interrupted while files were uploaded; nothing was submitted");
  const absl::Status status = SendUploads(session, jobs, [&] {
    Sending trial = how;
    trial.validate_only = true;
    return SendOnce(session, *jobs, flags, trial).status();
  });
  if (!status.ok()) return status;
  return "";
}

client::JobFileOptions FileOptions(const Invocation& call) {
  client::JobFileOptions options;
  options.strict = call.strict;
  options.dialect = call.dialect;
  options.own_variable = std::getenv;
  for (const std::string& pair : call.spec.env) {
    // ApplyTo refuses a text that is no pair.
    const size_t equals = pair.find('=');
    if (equals != std::string::npos) options.env[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return options;
}

}  // namespace

FieldFlags JobFlags() { return {.names = kSubmissionFlags}; }

std::variant<client::JobFile, int> AskedFor(Session& session) {
  const Invocation& call = session.call;
  client::JobFile jobs;
  if (!call.files.empty()) {
    absl::StatusOr<client::JobFile> read = client::ReadJobFiles(call.files, FileOptions(call));
    if (!read.ok()) return Fail(session, read.status());
    for (const std::string& note : read->notes) session.terminal.Note(note);
    jobs = *std::move(read);
    ChooseAlternatives(
        session, [&](v1::JobSpec* spec) { return call.spec.ApplyTo(spec); }, &jobs);
  } else {
    jobs.specs.emplace_back().mutable_command()->mutable_argv()->mutable_args()->Assign(
        call.command.begin(), call.command.end());
  }
  for (size_t i = 0; i < jobs.specs.size(); ++i) {
    const absl::Status status = call.spec.ApplyTo(&jobs.specs[i]);
    if (!status.ok()) return FailSubmission(session, status);
    if (call.spec.workdir) client::SetWorkdir(*call.spec.workdir, /*is_local=*/false, i, &jobs);
  }
  return jobs;
}

// A file's own fields have been checked with it, so that what is wrong here came by a flag.
absl::Status CheckSpec(const v1::JobSpec& spec, const FieldFlags& flags) {
  const absl::Status status = contract::NormalizeJobSpec(spec).status();
  if (absl::IsUnimplemented(status)) return absl::OkStatus();
  const auto bad_request = contract::GetBadRequest(status);
  if (!bad_request) return status;
  contract::FieldErrors errors;
  for (const auto& violation : bad_request->field_violations()) {
    errors.Add(Typed(violation.field(), flags), violation.description());
  }
  return errors.ToStatus();
}

std::variant<v1::SubmitJobsResponse, int> SendJobs(Session& session, client::JobFile jobs,
                                                   const FieldFlags& flags, bool validate_only) {
  const std::string& given = session.call.request_id;
  const Sending how{given.empty() ? client::NewRequestId() : given, validate_only,
                    session.call.hold};
  if (validate_only) LeaveOutLocalSecrets(&jobs);
  NameLocalSecrets(how.request_id, &jobs);
  // Faults of the jobs themselves are told before their files are read.
  if (const auto valid = RequestForAll(jobs.specs, flags, how); !valid.ok())
    return Fail(session, valid.status());
  if (absl::Status kinds = CheckKinds(session, jobs); !kinds.ok()) return Fail(session, kinds);
  SentSecrets secrets(&session);
  if (absl::Status set = secrets.Send(jobs); !set.ok()) return Fail(session, set);
  const auto found = BringFiles(session, flags, how, &jobs);
  if (!found.ok()) return Fail(session, found.status());
  const std::string remark = RepeatRemark(session, jobs.specs.size(), how.request_id);
  if (session.interrupt != nullptr) {
    session.interrupt->SetRemark("interrupted before the broker had answered; " + remark);
  }
  absl::StatusOr<v1::SubmitJobsResponse> response = SendOnce(session, jobs, flags, how);
  // Files that were there a moment ago may go when nobody has used them for long.
  for (int again = 0; again < kMaxUploadsAgain && LacksFiles(response.status(), jobs); ++again) {
    if (absl::Status sent = SendContents(session, jobs); !sent.ok()) return Fail(session, sent);
    if (const auto sent = BringFiles(session, flags, how, &jobs); !sent.ok())
      return Fail(session, sent.status());
    response = SendOnce(session, jobs, flags, how);
  }
  if (response.ok() || IsUnclear(response.status())) secrets.Keep();
  if (!response.ok()) return FailToSubmit(session, response.status(), remark, validate_only);
  TellWarnings(session, *response, flags);
  if (!found->empty()) session.terminal.Note(*found);
  return *response;
}

}  // namespace muster::cli
