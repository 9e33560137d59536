#include "agents/kubernetes/objects/end_record.h"

#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

constexpr std::pair<std::string_view, EndRecord::Phase> kPhases[] = {
    {"setup", EndRecord::Phase::kSetup},
    {"command", EndRecord::Phase::kCommand},
    {"files", EndRecord::Phase::kFiles},
};
constexpr std::pair<std::string_view, EndRecord::Problem> kProblems[] = {
    {"failed", EndRecord::Problem::kFailed},
    {"start", EndRecord::Problem::kStart},
    {"working_directory", EndRecord::Problem::kWorkingDirectory},
    {"missing", EndRecord::Problem::kMissing},
    {"not_made", EndRecord::Problem::kNotMade},
    {"no_tar", EndRecord::Problem::kNoTar},
    {"not_unpacked", EndRecord::Problem::kNotUnpacked},
    {"lease_ended", EndRecord::Problem::kLeaseEnded},
    {"no_lease", EndRecord::Problem::kNoLease},
};

template <typename Value, size_t size>
bool Find(const std::pair<std::string_view, Value> (&words)[size], std::string_view word,
          Value* value) {
  for (const auto& [known, meaning] : words) {
    if (known != word) continue;
    *value = meaning;
    return true;
  }
  return false;
}

// `fields` are such as "phase=setup problem=start".
std::optional<EndRecord> ParseFields(std::string_view fields) {
  EndRecord record;
  bool has_phase = false;
  bool has_problem = false;
  for (const absl::string_view word : absl::StrSplit(ToAbsl(fields), ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const std::string_view value = ToStd(field.second);
    if (field.first == "phase") has_phase = Find(kPhases, value, &record.phase);
    if (field.first == "problem") has_problem = Find(kProblems, value, &record.problem);
    if (field.first == "field") record.field = value;
  }
  if (!has_phase || !has_problem) return std::nullopt;
  return record;
}

}  // namespace

std::vector<EndRecord> TakeEndRecords(std::string_view seal, std::string* message) {
  std::vector<EndRecord> records;
  if (seal.empty()) return records;
  message->erase(message->find_last_not_of('\n') + 1);
  const std::string mark = fmt::format("muster-end/1 seal={} ", seal);
  std::string others;
  std::string* subject = &others;
  std::string of_unknown;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(*message), '\n')) {
    const std::string_view line = ToStd(part);
    if (line.starts_with(mark)) {
      std::optional<EndRecord> record = ParseFields(line.substr(mark.size()));
      subject = &of_unknown;
      if (record.has_value()) subject = &records.emplace_back(*std::move(record)).subject;
      continue;
    }
    if (!subject->empty()) *subject += '\n';
    *subject += line;
  }
  *message = std::move(others);
  return records;
}

std::string WordsOf(const EndRecord& record) {
  const char* program = record.phase == EndRecord::Phase::kSetup ? "setup" : "command";
  switch (record.problem) {
    case EndRecord::Problem::kFailed:
      return fmt::format("the {} failed", program);
    case EndRecord::Problem::kStart:
      return fmt::format("the {} could not be started: {}", program, record.subject);
    case EndRecord::Problem::kWorkingDirectory:
      return fmt::format("the {} could not be started: the working directory {} cannot be entered",
                         program, record.subject);
    case EndRecord::Problem::kMissing:
      return fmt::format("{} \"{}\" is not there", record.field, record.subject);
    case EndRecord::Problem::kNotMade:
      return fmt::format("{} \"{}\" cannot be made", record.field, record.subject);
    case EndRecord::Problem::kNoTar:
      return fmt::format("{}: the image has no tar to unpack them", record.field);
    case EndRecord::Problem::kNotUnpacked:
      return fmt::format("{}: the files could not be unpacked into {}, and the log has tar's words",
                         record.field, record.subject);
    case EndRecord::Problem::kLeaseEnded:
      return fmt::format("the lease of the run ended, and the {} was stopped", program);
    case EndRecord::Problem::kNoLease:
      return fmt::format("the lease of the run had ended before the {} could start", program);
  }
  return {};
}

}  // namespace muster::kubernetes
