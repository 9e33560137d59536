#include "agents/slurm/exit_record.h"

#include <array>
#include <map>
#include <utility>

#include "agents/slurm/fields.h"
#include "contract/characters.h"

namespace muster::slurm {
namespace {

using Fields = std::map<std::string_view, std::string_view>;

constexpr std::array<std::pair<std::string_view, ExitRecord::Problem>, 10> kProblems = {{
    {"none", ExitRecord::Problem::kNone},
    {"start", ExitRecord::Problem::kStart},
    {"working_directory", ExitRecord::Problem::kWorkingDirectory},
    {"files", ExitRecord::Problem::kFiles},
    {"srun", ExitRecord::Problem::kSrun},
    {"image", ExitRecord::Problem::kImage},
    {"timeout", ExitRecord::Problem::kTimeout},
    {"streams", ExitRecord::Problem::kStreams},
    {"lease", ExitRecord::Problem::kLease},
    {"unknown", ExitRecord::Problem::kUnknown},
}};

constexpr std::array<std::pair<std::string_view, ExitRecord::Cause>, 15> kCauses = {{
    {"restart_limit", ExitRecord::Cause::kRestartLimit},
    {"refused", ExitRecord::Cause::kRefused},
    {"input", ExitRecord::Cause::kInput},
    {"output", ExitRecord::Cause::kOutput},
    {"error", ExitRecord::Cause::kError},
    {"not_there", ExitRecord::Cause::kNotThere},
    {"no_squashfs", ExitRecord::Cause::kNoSquashfs},
    {"not_refreshed", ExitRecord::Cause::kNotRefreshed},
    {"stopped", ExitRecord::Cause::kStopped},
    {"no_room", ExitRecord::Cause::kNoRoom},
    {"conversion", ExitRecord::Cause::kConversion},
    {"out_of_memory", ExitRecord::Cause::kOutOfMemory},
    {"killed", ExitRecord::Cause::kKilled},
    {"not_started", ExitRecord::Cause::kNotStarted},
    {"nodes", ExitRecord::Cause::kNodes},
}};

// Begins a text that goes on to the end of its line, blanks and all.
constexpr std::string_view kAbout = " about=";

// Reads "key=value key=value" on each line, and "complete" on the last one; see kAbout.
std::optional<Fields> ReadFields(std::string_view text) {
  if (!text.ends_with("\ncomplete\n")) return std::nullopt;
  Fields fields;
  for (std::string_view line : Lines(text)) {
    if (const size_t about = line.find(kAbout); about != std::string_view::npos) {
      fields["about"] = line.substr(about + kAbout.size());
      line = line.substr(0, about);
    }
    for (std::string_view word : Split(line, ' ')) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return fields;
}

template <typename Int>
bool Take(const Fields& fields, std::string_view key, Int* value) {
  const auto field = fields.find(key);
  if (field == fields.end()) return false;
  const std::optional<Int> number = ParseNumber<Int>(field->second);
  if (number.has_value()) *value = *number;
  return number.has_value();
}

bool Take(const Fields& fields, std::string_view key, JobId* id) {
  const auto field = fields.find(key);
  if (field == fields.end()) return false;
  const std::optional<JobId> parsed = ParseJobId(field->second);
  if (parsed.has_value()) *id = *parsed;
  return parsed.has_value();
}

bool TakeTime(const Fields& fields, std::string_view key, absl::Time* time) {
  int64_t seconds = 0;
  if (!Take(fields, key, &seconds)) return false;
  *time = absl::FromUnixSeconds(seconds);
  return true;
}

bool TakeProblem(const Fields& fields, ExitRecord::Problem* problem) {
  const auto field = fields.find("problem");
  if (field == fields.end()) return false;
  for (const auto& [word, value] : kProblems) {
    if (field->second != word) continue;
    *problem = value;
    return true;
  }
  return false;
}

// A cause that is not known here is none.
void TakeCause(const Fields& fields, ExitRecord* record) {
  const auto field = fields.find("cause");
  if (field == fields.end()) return;
  for (const auto& [word, value] : kCauses) {
    if (field->second == word) record->cause = value;
  }
  const auto about = fields.find("about");
  if (about == fields.end()) return;
  std::string_view text = about->second;
  // It may have been cut between the bytes of a character.
  for (int i = 0; i < 3 && !text.empty() && !contract::IsUtf8(text); ++i) text.remove_suffix(1);
  if (contract::IsUtf8(text)) record->about = text;
}

}  // namespace

std::optional<ExitRecord> ParseExitRecord(std::string_view text) {
  const std::optional<Fields> fields = ReadFields(text);
  if (!fields.has_value()) return std::nullopt;
  ExitRecord record;
  const auto phase = fields->find("phase");
  if (phase == fields->end()) return std::nullopt;
  record.phase = phase->second;
  if (const auto nodes = fields->find("nodes"); nodes != fields->end())
    record.node_list = nodes->second;
  const bool whole =
      Take(*fields, "job", &record.job_id) && Take(*fields, "restart", &record.restart) &&
      TakeProblem(*fields, &record.problem) && Take(*fields, "code", &record.code) &&
      Take(*fields, "signal", &record.signal) && Take(*fields, "rank", &record.rank) &&
      TakeTime(*fields, "start", &record.start) && TakeTime(*fields, "end", &record.end);
  TakeCause(*fields, &record);
  const auto pulled = fields->find("pulled");
  record.pulled_image = pulled != fields->end() && pulled->second == "1";
  int terminated = 0;
  int continued = 0;
  if (!whole || !Take(*fields, "terminated", &terminated) ||
      !Take(*fields, "continued", &continued)) {
    return std::nullopt;
  }
  record.terminated = terminated != 0;
  record.continued = continued != 0;
  return record;
}

}  // namespace muster::slurm
