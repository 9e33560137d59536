#include "clients/cli/slurm/squeue_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/task_array.h"

namespace muster::cli {
namespace {

// In place of letters, which --format does not take.
constexpr char kNumber = 1;
constexpr char kCluster = 2;
constexpr char kRestarts = 3;
constexpr char kExitCode = 4;
constexpr char kPendingTime = 5;
constexpr char kTres = 6;

// Width of a column of --Format, as squeue has it.
constexpr size_t kLongWidth = 20;
// More than any terminal has.
constexpr size_t kMaxLongWidth = 1000;

std::string OrNull(std::string text) { return text.empty() ? "(null)" : Harmless(text); }

// Returns the known facts of the run; without one the value is `absent`.
std::string NodeListOf(const JobRecord& record) {
  if (record.run() == nullptr) return "";
  const auto& nodes = record.run()->nodes();
  return Harmless(HostList({nodes.begin(), nodes.end()}));
}

std::string ArrayOf(const v1::Job& job) {
  const std::string name = NameOf(job);
  return name.substr(0, name.find('_'));
}

std::string ArrayTaskOf(const v1::Job& job) {
  const std::string name = NameOf(job);
  const size_t bar = name.find('_');
  return bar == name.npos ? "N/A" : name.substr(bar + 1);
}

std::string StartTime(const JobRecord& record) {
  if (record.job.has_start_time()) return LocalTime(record.job.start_time(), "N/A");
  return record.run() == nullptr ? "N/A" : LocalTime(record.run()->estimated_start_time(), "N/A");
}

std::string TimeLeft(const JobRecord& record, absl::Time now) {
  if (!record.time_limit.has_value()) return "UNLIMITED";
  return SqueueTime(std::max(absl::ZeroDuration(), *record.time_limit - Elapsed(record, now)));
}

std::string EndTime(const JobRecord& record) {
  if (record.job.has_end_time()) return LocalTime(record.job.end_time(), "N/A");
  if (!record.job.has_start_time() || !record.time_limit.has_value()) return "N/A";
  google::protobuf::Timestamp end = record.job.start_time();
  end.set_seconds(end.seconds() + absl::ToInt64Seconds(*record.time_limit));
  return LocalTime(end, "N/A");
}

std::string NodesOrReason(const JobRecord& record) {
  const std::string nodes = NodeListOf(record);
  const bool waits = StateWord(record) == "PENDING";
  if (!waits && !nodes.empty()) return nodes;
  // "(None)" would say that nothing keeps it; it is only that nobody has said yet what does.
  const std::string word = ReasonWord(record);
  return word == kNoReason ? "" : fmt::format("({})", word);
}

using R = JobRecord;
using T = absl::Time;
constexpr std::array kSqueueColumns = {
    SqueueColumn{'i', "JOBID", [](const R& r, T) { return NameOf(r.job); }},
    SqueueColumn{'F', "ARRAY_JOB_ID", [](const R& r, T) { return ArrayOf(r.job); }},
    SqueueColumn{'K', "ARRAY_TASK_ID", [](const R& r, T) { return ArrayTaskOf(r.job); }},
    SqueueColumn{'A', "SLURM_ID",
                 [](const R& r, T) {
                   return r.run() == nullptr || r.is_on_slurm ? OrNull(SlurmNumber(r)) : "N/A";
                 }},
    SqueueColumn{'j', "NAME", [](const R& r, T) { return Harmless(r.job.name()); }},
    SqueueColumn{'u', "USER", [](const R& r, T) { return Harmless(r.job.user()); }},
    SqueueColumn{'a', "ACCOUNT",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().account()); }},
    SqueueColumn{'P', "PARTITION", [](const R& r, T) { return OrNull(r.partition); }},
    SqueueColumn{'q', "QOS", [](const R& r, T) { return OrNull(r.job.spec().slurm().qos()); }},
    SqueueColumn{'t', "ST", [](const R& r, T) { return std::string(StateCode(StateWord(r))); }},
    SqueueColumn{'T', "STATE", [](const R& r, T) { return std::string(StateWord(r)); }},
    SqueueColumn{'M', "TIME", [](const R& r, T now) { return SqueueTime(Elapsed(r, now)); }},
    SqueueColumn{'l', "TIME_LIMIT",
                 [](const R& r, T) {
                   return r.time_limit ? SqueueTime(*r.time_limit) : std::string("UNLIMITED");
                 }},
    SqueueColumn{'L', "TIME_LEFT", [](const R& r, T now) { return TimeLeft(r, now); }},
    SqueueColumn{
        'D', "NODES",
        [](const R& r, T) { return fmt::format("{}", std::max(1u, r.job.spec().nodes())); }},
    SqueueColumn{'C', "CPUS",
                 [](const R& r, T) { return fmt::format("{}", TotalCpus(r.job.spec())); }},
    SqueueColumn{'c', "MIN_CPUS",
                 [](const R& r, T) {
                   const uint64_t millis = r.job.spec().resources().cpu_millis();
                   return fmt::format("{}", std::max<uint64_t>(1, (millis + 999) / 1000));
                 }},
    SqueueColumn{'m', "MIN_MEMORY", [](const R& r, T) { return MemoryText(r.job.spec()); }},
    SqueueColumn{'b', "TRES_PER_NODE", [](const R& r, T) { return GresText(r.job.spec()); }},
    SqueueColumn{'p', "PRIORITY",
                 [](const R& r, T) { return fmt::format("{}", r.job.priority()); }},
    SqueueColumn{'Q', "PRIORITY",
                 [](const R& r, T) { return fmt::format("{}", r.job.priority()); }},
    SqueueColumn{'r', "REASON", [](const R& r, T) { return ReasonWord(r); }},
    SqueueColumn{'R', "NODELIST(REASON)", [](const R& r, T) { return NodesOrReason(r); }},
    SqueueColumn{'N', "NODELIST", [](const R& r, T) { return NodeListOf(r); }},
    SqueueColumn{'B', "EXEC_HOST",
                 [](const R& r, T) {
                   const bool has = r.run() != nullptr && !r.run()->nodes().empty();
                   return has ? Harmless(r.run()->nodes(0)) : std::string("n/a");
                 }},
    SqueueColumn{'S', "START_TIME", [](const R& r, T) { return StartTime(r); }},
    SqueueColumn{'e', "END_TIME", [](const R& r, T) { return EndTime(r); }},
    SqueueColumn{'V', "SUBMIT_TIME",
                 [](const R& r, T) { return LocalTime(r.job.create_time(), "N/A"); }},
    SqueueColumn{'k', "COMMENT",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().comment()); }},
    SqueueColumn{'Z', "WORK_DIR",
                 [](const R& r, T) { return OrNull(r.job.spec().working_directory()); }},
    SqueueColumn{'v', "RESERVATION",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().reservation()); }},
    SqueueColumn{'f', "FEATURES",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().constraint()); }},
    SqueueColumn{'x', "EXC_NODES",
                 [](const R& r, T) { return Harmless(r.job.spec().slurm().exclude()); }},
    SqueueColumn{'n', "REQ_NODES",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().nodelist()); }},
    SqueueColumn{'y', "NICE",
                 [](const R& r, T) { return fmt::format("{}", r.job.spec().slurm().nice()); }},
    SqueueColumn{'E', "DEPENDENCY",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().dependency()); }},
    SqueueColumn{'W', "LICENSES",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().licenses()); }},
    // Those that have no letter.
    SqueueColumn{kNumber, "JOBID", [](const R& r, T) { return fmt::format("{}", r.job.id()); }},
    SqueueColumn{kCluster, "CLUSTER", [](const R& r, T) { return OrNull(r.job.cluster()); }},
    SqueueColumn{kRestarts, "RESTART_COUNT",
                 [](const R& r, T) {
                   return fmt::format("{}", r.run() == nullptr ? 0 : r.run()->restarts());
                 }},
    SqueueColumn{kExitCode, "EXIT_CODE",
                 [](const R& r, T) { return fmt::format("{}", r.job.exit().code()); }},
    SqueueColumn{kPendingTime, "PENDING_TIME",
                 [](const R& r, T now) {
                   const absl::Time start =
                       r.job.has_start_time() ? ToTime(r.job.start_time()) : now;
                   return fmt::format(
                       "{}", absl::ToInt64Seconds(start - ToTime(r.job.create_time())));
                 }},
    SqueueColumn{kTres, "TRES_ALLOC", [](const R& r, T) { return TresText(r.job.spec(), TresOrder::kSqueue); }},
};

// The names of --Format.
constexpr std::pair<std::string_view, char> kLongNames[] = {
    {"Account", 'a'},    {"ArrayJobID", 'F'},   {"ArrayTaskID", 'K'},
    {"BatchHost", 'B'},  {"Cluster", kCluster}, {"Comment", 'k'},
    {"Dependency", 'E'}, {"EndTime", 'e'},      {"exit_code", kExitCode},
    {"Feature", 'f'},    {"JobArrayID", 'i'},   {"JobID", kNumber},
    {"Licenses", 'W'},   {"MinCpus", 'c'},      {"MinMemory", 'm'},
    {"Name", 'j'},       {"Nice", 'y'},         {"NodeList", 'N'},
    {"NumCPUs", 'C'},    {"NumNodes", 'D'},     {"Partition", 'P'},
    {"Priority", 'p'},   {"PriorityLong", 'Q'}, {"PendingTime", kPendingTime},
    {"QOS", 'q'},        {"Reason", 'r'},       {"ReasonList", 'R'},
    {"ReqNodes", 'n'},   {"Reservation", 'v'},  {"RestartCnt", kRestarts},
    {"StartTime", 'S'},  {"State", 'T'},        {"StateCompact", 't'},
    {"SubmitTime", 'V'}, {"TimeLeft", 'L'},     {"TimeLimit", 'l'},
    {"TimeUsed", 'M'},   {"tres-alloc", kTres}, {"tres-per-node", 'b'},
    {"UserName", 'u'},   {"WorkDir", 'Z'},
};

bool AreEqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char one, char other) {
    return one == other || (contract::IsLetter(one) && (one ^ other) == ('a' ^ 'A'));
  });
}

// "[.][SIZE][SUFFIX]"; gives the suffix.
std::string_view ReadSize(std::string_view text, FormatField* field) {
  if (text.starts_with('.')) {
    field->right = true;
    text.remove_prefix(1);
  }
  size_t size = 0;
  while (!text.empty() && contract::IsDigit(text.front())) {
    size = std::min(kMaxLongWidth, size * 10 + static_cast<size_t>(text.front() - '0'));
    text.remove_prefix(1);
  }
  if (size > 0) field->width = size;
  return text;
}

// Tells the tasks of an array apart.
bool IsOfTask(char letter) { return letter == 'i' || letter == 'K' || letter == kNumber; }

std::string ValueOfTasks(char letter, uint64_t array, const std::vector<uint32_t>& tasks,
                         uint32_t limit) {
  if (letter == kNumber) return fmt::format("{}", array);
  std::string text = contract::TaskRanges(tasks);
  if (limit > 0) text += fmt::format("%{}", limit);
  return letter == 'K' ? text : fmt::format("{}_[{}]", array, text);
}

}  // namespace

const SqueueColumn& SqueueColumnOf(char letter) {
  return *std::find_if(kSqueueColumns.begin(), kSqueueColumns.end(),
                       [&](const SqueueColumn& column) { return column.letter == letter; });
}

std::string SqueueLetters() {
  std::string letters;
  for (const SqueueColumn& column : kSqueueColumns) {
    if (contract::IsLetter(column.letter)) letters += column.letter;
  }
  return letters;
}

std::string LongSqueueNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, letter] : kLongNames) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

absl::StatusOr<ColumnFormat> ParseLongSqueueFormat(std::string_view text) {
  ColumnFormat format;
  std::string suffix;
  for (std::string_view word : contract::Split(text, ',')) {
    const size_t colon = std::min(word.find(':'), word.size());
    const std::string_view name = word.substr(0, colon);
    const auto* found =
        std::find_if(std::begin(kLongNames), std::end(kLongNames),
                     [&](const auto& one) { return AreEqualIgnoringCase(one.first, name); });
    if (found == std::end(kLongNames)) {
      return absl::InvalidArgumentError(
          fmt::format("--Format: {} is not a column that muster has; it has: {}",
                      contract::Quoted(name), LongSqueueNames()));
    }
    FormatField field;
    field.letter = found->second;
    field.width = kLongWidth;
    field.before = std::exchange(suffix, "");
    if (colon < word.size()) suffix = ReadSize(word.substr(colon + 1), &field);
    format.fields.push_back(std::move(field));
  }
  format.after = std::move(suffix);
  return format;
}

std::vector<SqueueRow> SqueueRows(std::span<const JobRecord> records, const ColumnFormat& format,
                                  bool each_task, absl::Time now) {
  // The tasks of a row, by what they have in common.
  struct Shared {
    size_t row = 0;
    uint64_t array = 0;
    uint32_t limit = 0;
    std::vector<uint32_t> tasks;
  };
  std::map<std::pair<uint64_t, std::vector<std::string>>, Shared> shared;
  std::vector<SqueueRow> rows;
  for (const JobRecord& record : records) {
    SqueueRow row{&record, {}};
    std::vector<std::string> common;
    for (const FormatField& field : format.fields) {
      row.values.push_back(SqueueColumnOf(field.letter).value(record, now));
      if (!IsOfTask(field.letter)) common.push_back(row.values.back());
    }
    const std::optional<contract::ArrayTask> task = contract::FindArrayTask(record.job.spec());
    if (!each_task && task.has_value() && StateWord(record) == "PENDING") {
      const uint64_t array = contract::ArrayNumber(record.job.id(), *task);
      const auto [at, is_first] = shared.try_emplace({array, std::move(common)},
                                                     Shared{rows.size(), array, task->limit, {}});
      at->second.tasks.push_back(task->id);
      if (!is_first) continue;
    }
    rows.push_back(std::move(row));
  }
  for (auto& [key, tasks] : shared) {
    if (tasks.tasks.size() < 2) continue;
    std::sort(tasks.tasks.begin(), tasks.tasks.end());
    for (size_t i = 0; i < format.fields.size(); ++i) {
      const char letter = format.fields[i].letter;
      if (IsOfTask(letter))
        rows[tasks.row].values[i] = ValueOfTasks(letter, tasks.array, tasks.tasks, tasks.limit);
    }
  }
  return rows;
}

}  // namespace muster::cli
