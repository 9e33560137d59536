#include "agents/slurm/history.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/queue.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

constexpr size_t kColumns = 11;

std::vector<std::string> CommonArguments(absl::Time since) {
  return {"sacct", "--allocations", "--parsable2", "--noheader",
          fmt::format("--delimiter={}", kSeparator),
          "--format=JobID,JobIDRaw,JobName,State,ExitCode,NodeList,Start,End,"
          "Partition,Account,QOS",
          // Seconds since 1970: no time zone can be misread.
          fmt::format("--starttime=uts{}", absl::ToUnixSeconds(since))};
}

// Reads "code:signal".
bool ParseExitCode(std::string_view text, HistoryRow* row) {
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() != 2) return false;
  const std::optional<int> code = ParseNumber<int>(parts[0]);
  const std::optional<int> signal = ParseNumber<int>(parts[1]);
  if (!code.has_value() || !signal.has_value()) return false;
  row->exit_code = *code;
  row->signal = *signal;
  return true;
}

std::string NodeListOf(std::string_view text) {
  return text == "None assigned" || text == "(null)" ? std::string() : std::string(text);
}

// A line about tasks that Slurm had not told apart goes to `together`. False: the line cannot be
// read.
bool AddRows(std::string_view line, std::vector<HistoryRow>* rows,
             std::vector<HistoryRow>* together) {
  const std::vector<std::string_view> columns = Split(line, kSeparator);
  if (columns.size() != kColumns || columns[3].empty()) return false;
  // Only a task's id has an index; the number of a part of a heterogeneous job ("7+1") is raw.
  const bool is_task = columns[0].find('_') != std::string_view::npos;
  const std::vector<JobId> ids = ExpandJobIds(columns[is_task ? 0 : 1]);
  HistoryRow row;
  row.name = columns[2];
  row.state = ParseState(columns[3]);
  if (ids.empty() || !ParseExitCode(columns[4], &row)) return false;
  row.node_list = NodeListOf(columns[5]);
  row.start_time = ParseEpoch(columns[6]);
  row.end_time = ParseEpoch(columns[7]);
  row.allocation = AllocationOf(columns[8], columns[9], columns[10]);
  if (columns[0].ends_with(']')) rows = together;
  for (const JobId& id : ids) {
    row.job_id = id;
    rows->push_back(row);
  }
  return true;
}

// Returns the value of KEY in "KEY=value OTHER=value ...".
std::string_view ValueOf(std::string_view line, std::string_view key) {
  for (std::string_view word : Split(line, ' ')) {
    if (word.starts_with(key) && word.size() > key.size() && word[key.size()] == '=') {
      word.remove_prefix(key.size() + 1);
      return word;
    }
  }
  return {};
}

}  // namespace

std::string HistoryRow::Words() const {
  const std::string by = state.cancelled_by.empty() ? "" : " by " + state.cancelled_by;
  if (!exit_is_known) return fmt::format("{}{}, with a code that is not told", state.word, by);
  return fmt::format("{}{} {}:{}", state.word, by, exit_code, signal);
}

std::vector<std::string> HistoryArguments(const std::vector<JobId>& ids, absl::Time since) {
  std::vector<std::string> arguments = CommonArguments(since);
  std::set<uint64_t> numbers;
  for (const JobId& id : ids) numbers.insert(id.number);
  arguments.push_back(fmt::format("--jobs={}", fmt::join(numbers, ",")));
  return arguments;
}

std::vector<std::string> HistoryArguments(std::string_view name, absl::Time since) {
  std::vector<std::string> arguments = CommonArguments(since);
  arguments.push_back("--duplicates");
  arguments.push_back(fmt::format("--name={}", name));
  return arguments;
}

absl::StatusOr<std::vector<HistoryRow>> ParseHistory(std::string_view output) {
  std::vector<HistoryRow> rows;
  std::vector<HistoryRow> together;
  for (std::string_view line : Lines(output)) {
    if (!AddRows(line, &rows, &together)) {
      return absl::InternalError(fmt::format(
          "sacct printed a line that is not as asked for: \"{}\"", line.substr(0, 200)));
    }
  }
  AddTogether(std::move(together), &rows);
  return rows;
}

std::vector<std::string> ShowJobArguments(const JobId& id) {
  return {"scontrol", "--oneliner", "show", "job", id.ToString()};
}

std::optional<HistoryRow> ParseShowJob(std::string_view output) {
  const std::vector<std::string_view> lines = Lines(output);
  if (lines.size() != 1) return std::nullopt;
  const std::optional<uint64_t> id = ParseNumber<uint64_t>(ValueOf(lines[0], "JobId"));
  const std::string_view state = ValueOf(lines[0], "JobState");
  if (!id.has_value() || state.empty()) return std::nullopt;
  HistoryRow row;
  row.job_id = {*id};
  row.name = ValueOf(lines[0], "JobName");
  row.state = ParseState(state);
  if (!ParseExitCode(ValueOf(lines[0], "ExitCode"), &row)) return std::nullopt;
  row.node_list = NodeListOf(ValueOf(lines[0], "NodeList"));
  row.start_time = ParseEpoch(ValueOf(lines[0], "StartTime"));
  row.end_time = ParseEpoch(ValueOf(lines[0], "EndTime"));
  row.allocation = AllocationOf(ValueOf(lines[0], "Partition"), ValueOf(lines[0], "Account"),
                                ValueOf(lines[0], "QOS"));
  row.from_accounting = false;
  return row;
}

bool IsAccountingDisabled(std::string_view stderr_text) {
  return stderr_text.find("accounting storage is disabled") != std::string_view::npos;
}

bool IsUnknownJob(std::string_view stderr_text) {
  return stderr_text.find("Invalid job id specified") != std::string_view::npos;
}

bool HasEndedAlready(std::string_view stderr_text) {
  return stderr_text.find("already completing or completed") != std::string_view::npos ||
         stderr_text.find("Job has already finished") != std::string_view::npos;
}

}  // namespace muster::slurm
