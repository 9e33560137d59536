#include "clients/cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "clients/cli/field_flags.h"
#include "clients/cli/text.h"
#include "contract/errors.h"
#include "contract/job_file_names.h"
#include "contract/sentences.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// The job of a request that has one.
constexpr size_t kOnlyJob = std::numeric_limits<size_t>::max();

void AppendLines(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    *out += fmt::format("muster: {}\n", Harmless(line));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

// Remedies of errors for users of this command, by reason. The broker's own words know nothing of
// commands.
constexpr std::pair<std::string_view, std::string_view> kRemedies[] = {
    {"NO_SUCH_CLUSTER", "`muster clusters` lists those that are known"},
    {"NO_CLUSTER_CONNECTED",
     "`muster clusters` lists those that are known, and says since when they are away"},
    {"AGENT_NOT_CONNECTED",
     "`muster clusters` says when it was last seen; on its machine, `muster-agent ... --check` "
     "looks at the same without the broker"},
};

std::string_view RemedyFor(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  if (!info) return "";
  for (const auto& [reason, remedy] : kRemedies) {
    if (info->reason() == reason) return remedy;
  }
  return "";
}

// The field as users know it: "job 4: time" for "requests[3].spec.time_limit".
std::string FieldName(std::string_view field) {
  const bool is_of_job = field.starts_with("requests[") || field.starts_with("spec.");
  const size_t job = is_of_job ? TakeJob(kOnlyJob, &field) : kOnlyJob;
  const std::string name = contract::JobFileName(field);
  return job == kOnlyJob ? name : fmt::format("job {}: {}", job + 1, name);
}

// The error's name, under which docs/troubleshooting.md explains it.
std::string Named(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return fmt::format("{}{}", ToStd(status.message()),
                     info ? fmt::format(" [{}]", info->reason()) : "");
}

// The message of a refusal has the advice for the first clusters, as a part of its sentence.
void ForgetToldAdvice(std::string_view message, v1::StateReason* reason) {
  const std::string told = absl::AsciiStrToLower(ToAbsl(message));
  const auto forget = [&told](v1::StateReason* one) {
    std::string advice = absl::AsciiStrToLower(one->remedy());
    if (advice.ends_with('.')) advice.pop_back();
    if (told.find(advice) != std::string::npos) one->clear_remedy();
  };
  forget(reason);
  for (v1::StateReason& cluster : *reason->mutable_clusters()) forget(&cluster);
}

}  // namespace

std::string ErrorText(const absl::Status& status) {
  std::string out;
  const auto bad_request = contract::GetBadRequest(status);
  if (bad_request && !bad_request->field_violations().empty()) {
    // The message repeats them in one line.
    for (const auto& violation : bad_request->field_violations()) {
      AppendLines(fmt::format("{}: {}", FieldName(violation.field()), violation.description()),
                  &out);
    }
  } else if (absl::IsUnimplemented(status) && status.message().empty()) {
    // gRPC's own answer, which has no words worth reading.
    AppendLines("the broker does not know this request: it is older than this command", &out);
  } else if (status.message().empty()) {
    AppendLines(absl::StatusCodeToString(status.code()), &out);
  } else {
    AppendLines(Named(status), &out);
  }
  AppendLines(RemedyFor(status), &out);
  if (auto reason = contract::GetStateReason(status)) {
    ForgetToldAdvice(ToStd(status.message()), &*reason);
    AppendLines(reason->remedy(), &out);
    for (const std::string& line : contract::BesidesTheFirst(*reason)) AppendLines(line, &out);
  }
  if (const auto delay = contract::GetRetryDelay(status)) {
    const absl::Duration at_least = std::max(*delay, absl::Seconds(1));
    AppendLines(fmt::format("try again in {}", contract::FormatDuration(at_least)), &out);
  }
  return out;
}

std::string ErrorJson(const absl::Status& status) {
  nlohmann::ordered_json error;
  error["code"] = absl::StatusCodeToString(status.code());
  error["message"] = ToStd(status.message());
  if (const auto info = contract::GetErrorInfo(status)) error["reason"] = info->reason();
  if (const auto bad_request = contract::GetBadRequest(status)) {
    for (const auto& violation : bad_request->field_violations()) {
      error["fields"].push_back(
          {{"field", FieldName(violation.field())}, {"description", violation.description()}});
    }
  }
  std::string remedy(RemedyFor(status));
  if (const auto reason = contract::GetStateReason(status); reason && remedy.empty())
    remedy = reason->remedy();
  if (!remedy.empty()) error["remedy"] = remedy;
  if (const auto delay = contract::GetRetryDelay(status))
    error["retry_after_s"] = absl::ToDoubleSeconds(*delay);
  using Errors = nlohmann::json::error_handler_t;
  return nlohmann::ordered_json{{"error", error}}.dump(-1, ' ', false, Errors::replace) + "\n";
}

void WriteError(Terminal& terminal, Format format, const absl::Status& status) {
  const bool is_json = format == Format::kJson || format == Format::kJsonLines;
  terminal.Err(is_json ? ErrorJson(status) : ErrorText(status));
}

}  // namespace muster::cli
