#include "clients/cli/field_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "clients/cli/text.h"
#include "contract/errors.h"
#include "contract/job_file_names.h"
#include "contract/sentences.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

// The flag by which a field was typed; empty: none.
std::string_view FlagOf(std::string_view field, const FieldFlags& flags) {
  for (const auto& [name, flag] : flags.names) {
    const bool is_it =
        field.starts_with(name) &&
        (field.size() == name.size() || field[name.size()] == '.' || field[name.size()] == '[');
    if (is_it) return flag;
  }
  return "";
}

// The field by which a job asks for what there is too little of.
std::string_view FieldOf(const v1::Shortage& shortage) {
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"cpus", "resources.cpu_millis"},
      {"memory", "resources.memory_bytes"},
      {"gpus", "resources.gpus"},
      {"pool", "placement.pool"}};
  const std::string_view resource = shortage.resource();
  // All of a node's resources at once are too little of nothing in particular.
  if (resource == "nodes" && shortage.requested() == 0) return "";
  for (const auto& [name, field] : kFields) {
    if (resource.substr(0, resource.find(':')) == name) return field;
  }
  return resource;
}

// The flags of all that a job asks too much of, each once.
std::string FlagsOf(const v1::StateReason& reason, const FieldFlags& flags) {
  std::vector<std::string_view> found;
  const auto add = [&](const v1::StateReason& one) {
    for (const v1::Shortage& shortage : one.shortages()) {
      const std::string_view flag = FlagOf(FieldOf(shortage), flags);
      if (!flag.empty() && std::find(found.begin(), found.end(), flag) == found.end())
        found.push_back(flag);
    }
  };
  add(reason);
  for (const v1::StateReason& cluster : reason.clusters()) add(cluster);
  return fmt::format("{}", fmt::join(found, ", "));
}

// The same bad fields by their flags; nothing: the answer names none.
std::optional<absl::Status> Retyped(const absl::Status& status, const FieldFlags& flags) {
  const auto bad_request = contract::GetBadRequest(status);
  if (!bad_request || bad_request->field_violations().empty()) return std::nullopt;
  contract::FieldErrors errors;
  for (const auto& violation : bad_request->field_violations()) {
    std::string_view field = violation.field();
    TakeJob(/*job=*/0, &field);
    errors.Add(FlagOf(field, flags).empty() ? violation.field() : Typed(field, flags),
               violation.description());
  }
  return errors.ToStatus();
}

// The flag of the field that the answer's metadata name.
std::string_view FlagInMetadata(const absl::Status& status, const FieldFlags& flags) {
  const auto info = contract::GetErrorInfo(status);
  if (!info) return "";
  const auto field = info->metadata().find("field");
  if (field == info->metadata().end()) return "";
  std::string_view name = field->second;
  TakeJob(/*job=*/0, &name);
  return FlagOf(name, flags);
}

}  // namespace

size_t TakeJob(size_t job, std::string_view* field) {
  constexpr std::string_view kRequests = "requests[";
  constexpr std::string_view kSpec = "spec.";
  if (field->starts_with(kRequests)) {
    const std::string_view number = field->substr(kRequests.size());
    std::from_chars(number.data(), number.data() + number.size(), job);
  }
  const size_t spec = field->find(kSpec);
  if (spec != std::string_view::npos) field->remove_prefix(spec + kSpec.size());
  return job;
}

std::string Typed(std::string_view field, const FieldFlags& flags) {
  const std::string_view flag = FlagOf(field, flags);
  if (!flags.are_fields_known) return std::string(flag.empty() ? field : flag);
  const std::string name = contract::JobFileName(field);
  return flag.empty() ? name : fmt::format("{} ({})", flag, name);
}

absl::Status NamingFlags(const absl::Status& status, const FieldFlags& flags) {
  if (!flags.are_fields_known) {
    if (auto retyped = Retyped(status, flags)) return *std::move(retyped);
  }
  std::string found(FlagInMetadata(status, flags));
  const auto reason = contract::GetStateReason(status);
  if (found.empty() && reason && !flags.are_fields_known) found = FlagsOf(*reason, flags);
  if (found.empty()) return status;
  return contract::InOtherWords(status, fmt::format("{}: {}", found, ToStd(status.message())));
}

std::string WarningText(const v1::SubmitWarning& warning, const FieldFlags& flags) {
  std::string text = OneLine(contract::WithRemedy(warning.message(), warning.remedy()));
  // A place that is not there yet is a thing and no field.
  if (flags.are_fields_known || warning.code() == v1::SUBMIT_WARNING_CODE_NOT_THERE_YET)
    return text;
  const std::string_view flag = FlagOf(warning.subject(), flags);
  return flag.empty() ? text : fmt::format("{}: {}", flag, text);
}

}  // namespace muster::cli
