#include "agents/core/status_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/characters.h"
#include "contract/failures.h"

namespace muster::agents {
namespace {

using nlohmann::json;

constexpr size_t kMaxMessageBytes = 4096;
constexpr size_t kMaxNumbers = 100;
constexpr size_t kMaxNameBytes = 128;

std::string UpperCase(std::string text) {
  for (char& c : text) {
    if (contract::IsLowerLetter(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::optional<TrainingStatus> StatusOf(const json& entry) {
  const auto word = entry.find("status");
  if (word == entry.end() || !word->is_string()) return std::nullopt;
  const std::string status = UpperCase(word->get<std::string>());
  if (status == "STARTED" || status == "RUNNING") return TrainingStatus::kRunning;
  if (status == "SUCCESS") return TrainingStatus::kSuccess;
  if (status == "FAILURE") return TrainingStatus::kFailure;
  return std::nullopt;
}

void AddNumbers(const json& object, const std::string& prefix, StatusFile* file) {
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() || name.size() > kMaxNameBytes) continue;
    const std::string key = prefix + name;
    if (file->numbers.size() < kMaxNumbers || file->numbers.contains(key)) {
      file->numbers[key] = value.get<double>();
    }
  }
}

// False if the line is no entry.
bool AddEntry(std::string_view line, StatusFile* file) {
  if (line.size() > kMaxStatusLineBytes) return false;
  const json entry = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object()) return false;
  ++file->entries;
  if (const auto status = StatusOf(entry); status.has_value()) file->status = *status;
  if (const auto message = entry.find("message"); message != entry.end() && message->is_string()) {
    file->message =
        contract::CutBetweenCharacters(message->get_ref<const std::string&>(), kMaxMessageBytes);
  }
  AddNumbers(entry, "", file);
  if (const auto kpi = entry.find("kpi"); kpi != entry.end() && kpi->is_object()) {
    AddNumbers(*kpi, "kpi.", file);
  }
  return true;
}

}  // namespace

StatusFile ReadStatusFile(std::string_view text) {
  if (text.size() > kMaxStatusBytes) text.remove_prefix(text.size() - kMaxStatusBytes);
  StatusFile file;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const bool may_be_torn = end == line.npos;
    if (!AddEntry(line, &file) && !may_be_torn) ++file.bad_lines;
  }
  return file;
}

std::optional<v1::Failure> JudgeTraining(const StatusFile& file) {
  if (file.status == TrainingStatus::kSuccess) return std::nullopt;
  contract::FailureParts parts = {.phase = v1::FAILURE_PHASE_COMMAND};
  const bool says_failure = file.status == TrainingStatus::kFailure;
  if (!says_failure) {
    parts.meaning =
        file.entries == 0 ? "it has no entry" : "it has no last entry, neither SUCCESS nor FAILURE";
  }
  return contract::MakeFailure(
      says_failure ? v1::FAILURE_CODE_STATUS_SAYS_FAILURE : v1::FAILURE_CODE_STATUS_MISSING,
      v1::FAILURE_CLASS_PROGRAM, parts);
}

}  // namespace muster::agents
