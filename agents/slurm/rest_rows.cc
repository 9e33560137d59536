#include "agents/slurm/rest_rows.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/rest_json.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

// Chooses the word that squeue would show: what happens to the job comes before what it is.
SlurmState StateOf(const json& value) {
  constexpr std::array<std::string_view, 8> kFirst = {"COMPLETING",   "CONFIGURING",  "SIGNALING",
                                                      "RESIZING",     "REQUEUE_HOLD", "REQUEUED",
                                                      "SPECIAL_EXIT", "STOPPED"};
  const std::vector<std::string> words = WordsOf(value);
  for (std::string_view first : kFirst) {
    if (std::find(words.begin(), words.end(), first) != words.end()) return ParseState(first);
  }
  return ParseState(words.empty() ? std::string_view() : words.front());
}

bool IsOfUser(const json& job, std::string_view member, std::string_view user) {
  return TextOf(Member(job, member)) == user;
}

// Accounting tells the tasks that wait as a mask, "0x8" or "0x8%1"; as a list of their indices,
// which all else is.
std::string TaskList(std::string set) {
  if (!set.starts_with("0x")) return set;
  const std::string digits = set.substr(2, set.find('%') - 2);
  std::vector<size_t> indices;
  for (size_t i = 0; i < digits.size(); ++i) {
    const std::string_view digit = std::string_view(digits).substr(digits.size() - 1 - i, 1);
    unsigned bits = 0;
    if (std::from_chars(digit.begin(), digit.end(), bits, 16).ec != std::errc()) return set;
    for (size_t bit = 0; bit < 4; ++bit) {
      if ((bits >> bit) & 1) indices.push_back(i * 4 + bit);
    }
  }
  return fmt::format("{}", fmt::join(indices, ","));
}

// The jobs that one entry is about.
struct EntryIds {
  std::vector<JobId> ids;  // none: it cannot be read
  // They are tasks that Slurm had not told apart.
  bool are_together = false;
  bool is_cut = false;
};

EntryIds IdsOf(const json& job, const json& array, const json& task, const json& task_set) {
  const std::optional<int64_t> id = NumberOf(Member(job, "job_id"));
  if (!id.has_value() || *id <= 0) return {};
  const int64_t number = NumberOf(array).value_or(0);
  if (number <= 0) return {.ids = {{static_cast<uint64_t>(*id)}}};
  const auto array_number = static_cast<uint64_t>(number);
  if (const std::optional<int64_t> index = NumberOf(task))
    return {.ids = {{array_number, static_cast<uint32_t>(*index)}}};
  const std::string list = TaskList(TextOf(task_set));
  if (list.empty()) return {.ids = {{array_number}}};
  std::optional<TaskSet> set = ParseTaskSet(array_number, list);
  if (!set.has_value()) return {};
  return {.ids = std::move(set->ids), .are_together = true, .is_cut = set->is_cut};
}

// Reads a raw wait status, or {"status", "return_code", "signal": {"id" | "signal_id"}}.
void ReadExit(const json& value, HistoryRow* row) {
  if (const std::optional<int64_t> raw = NumberOf(value)) {
    const int status = static_cast<int>(*raw);
    if (WIFSIGNALED(status)) row->signal = WTERMSIG(status);
    if (WIFEXITED(status)) row->exit_code = WEXITSTATUS(status);
    return;
  }
  const json& signal = Member(value, "signal");
  row->exit_code = static_cast<int>(NumberOf(Member(value, "return_code")).value_or(0));
  row->signal = static_cast<int>(
      NumberOf(Member(signal, "id")).value_or(NumberOf(Member(signal, "signal_id")).value_or(0)));
  // slurmrestd 22.05 shows every code as 0.
  row->exit_is_known =
      row->state.phase != JobPhase::kFailed || row->exit_code != 0 || row->signal != 0;
}

// Returns a row for each id; none if it cannot be read.
template <typename Row>
std::vector<Row> RowsOf(const std::vector<JobId>& ids, Row row) {
  std::vector<Row> rows;
  if (row.state.word.empty()) return rows;
  for (const JobId& id : ids) {
    row.job_id = id;
    rows.push_back(row);
  }
  return rows;
}

// Rows of tasks that Slurm had not told apart go to `together`. False: it cannot be read.
bool ReadHistory(const json& job, std::vector<HistoryRow>* rows,
                 std::vector<HistoryRow>* together) {
  const json& times = Member(job, "time");
  const json& array = Member(job, "array");
  HistoryRow row;
  row.state = StateOf(Member(Member(job, "state"), "current"));
  row.name = TextOf(Member(job, "name"));
  if (row.state.phase == JobPhase::kCancelled)
    row.state.cancelled_by = TextOf(Member(job, "kill_request_user"));
  ReadExit(Member(job, "exit_code"), &row);
  row.node_list = TextOf(Member(job, "nodes"));
  if (row.node_list == "None assigned") row.node_list.clear();
  row.start_time = TimeOf(Member(times, "start"));
  row.end_time = TimeOf(Member(times, "end"));
  row.allocation = AllocationOf(TextOf(Member(job, "partition")), TextOf(Member(job, "account")),
                                TextOf(Member(job, "qos")));
  const EntryIds entry =
      IdsOf(job, Member(array, "job_id"), Member(array, "task_id"), Member(array, "task"));
  if (entry.is_cut) return false;
  std::vector<HistoryRow> some = RowsOf(entry.ids, row);
  if (entry.are_together) rows = together;
  rows->insert(rows->end(), some.begin(), some.end());
  return !some.empty();
}

absl::Duration SpanOf(const json& value) {
  return absl::Seconds(NumberOf(Member(value, "seconds")).value_or(0)) +
         absl::Microseconds(NumberOf(Member(value, "microseconds")).value_or(0));
}

// Returns the most memory of a task of the step.
uint64_t MaxRssOf(const json& step) {
  const json* most = ListIn(Member(Member(step, "tres"), "requested"), "max");
  if (most == nullptr) return 0;
  for (const json& one : *most) {
    if (TextOf(Member(one, "type")) == "mem")
      return static_cast<uint64_t>(
          std::max<int64_t>(0, NumberOf(Member(one, "count")).value_or(0)));
  }
  return 0;
}

// The job itself has the sums of its steps only in later versions.
void AddStep(const json& step, UsageRow* row) {
  const json& time = Member(step, "time");
  row->user_cpu += SpanOf(Member(time, "user"));
  row->system_cpu += SpanOf(Member(time, "system"));
  row->max_rss_bytes = std::max(row->max_rss_bytes, MaxRssOf(step));
  row->has_ended = row->has_ended && HasEnded(StateOf(Member(step, "state")).phase);
}

std::vector<QueueRow> ReadJob(const json& job) {
  QueueRow row;
  row.state = StateOf(Member(job, "job_state"));
  row.name = TextOf(Member(job, "name"));
  row.reason = TextOf(Member(job, "state_reason"));
  row.node_list = TextOf(Member(job, "nodes"));
  row.submit_time = TimeOf(Member(job, "submit_time"));
  row.start_time = TimeOf(Member(job, "start_time"));
  row.end_time = TimeOf(Member(job, "end_time"));
  row.restarts = static_cast<uint32_t>(NumberOf(Member(job, "restart_cnt")).value_or(0));
  row.allocation = AllocationOf(TextOf(Member(job, "partition")), TextOf(Member(job, "account")),
                                TextOf(Member(job, "qos")));
  EntryIds entry = IdsOf(job, Member(job, "array_job_id"), Member(job, "array_task_id"),
                         Member(job, "array_task_string"));
  std::vector<QueueRow> rows = RowsOf(entry.ids, row);
  if (!entry.is_cut || row.state.word.empty()) return rows;
  row.unnamed_from = rows.empty() ? 0 : *rows.back().job_id.task + 1;
  row.job_id = {static_cast<uint64_t>(*NumberOf(Member(job, "array_job_id")))};
  rows.push_back(row);
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<QueueRow>> RestQueue(const json& answer, std::string_view user,
                                                std::string_view name) {
  const json* jobs = ListIn(answer, "jobs");
  if (jobs == nullptr) return UnreadableAnswer("no list of jobs, or one");
  std::vector<QueueRow> rows;
  for (const json& job : *jobs) {
    if (!IsOfUser(job, "user_name", user)) continue;
    std::vector<QueueRow> some = ReadJob(job);
    if (some.empty()) return UnreadableAnswer("a job");
    if (name.empty() || some.front().name == name)
      rows.insert(rows.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
  }
  return rows;
}

absl::StatusOr<std::vector<QueuedJob>> RestWholeQueue(const json& answer) {
  const json* jobs = ListIn(answer, "jobs");
  if (jobs == nullptr) return UnreadableAnswer("no list of jobs, or one");
  std::vector<QueuedJob> queue;
  for (const json& job : *jobs) {
    const std::vector<QueueRow> some = ReadJob(job);
    if (some.empty()) return UnreadableAnswer("a job");
    if (HasEnded(some.front().state.phase)) continue;
    QueuedJob queued;
    const std::string partitions = TextOf(Member(job, "partition"));
    for (std::string_view partition : Split(partitions, ','))
      queued.partitions.emplace_back(partition);
    queued.is_waiting = some.front().state.phase == JobPhase::kPending;
    queued.user = TextOf(Member(job, "user_name"));
    // Each task of an array counts.
    queue.insert(queue.end(), some.size(), queued);
  }
  return queue;
}

absl::StatusOr<HistoryRow> RestJob(const json& answer, const JobId& id) {
  const json* jobs = ListIn(answer, "jobs");
  if (jobs == nullptr) return UnreadableAnswer("no list of jobs, or one");
  for (const json& job : *jobs) {
    const std::vector<QueueRow> some = ReadJob(job);
    if (some.empty()) return UnreadableAnswer("a job");
    const auto seen = std::find_if(some.begin(), some.end(),
                                   [&](const QueueRow& one) { return one.job_id == id; });
    if (seen == some.end()) continue;
    HistoryRow row;
    row.job_id = id;
    row.name = seen->name;
    row.state = seen->state;
    row.node_list = seen->node_list;
    row.start_time = seen->start_time;
    row.end_time = seen->end_time;
    row.allocation = seen->allocation;
    row.from_accounting = false;
    ReadExit(Member(job, "exit_code"), &row);
    return row;
  }
  return absl::NotFoundError(fmt::format("slurmrestd shows no job {}", id.ToString()));
}

absl::StatusOr<std::vector<HistoryRow>> RestHistory(const json& answer, std::string_view user) {
  const json* jobs = ListIn(answer, "jobs");
  if (jobs == nullptr) return UnreadableAnswer("no list of jobs, or one");
  std::vector<HistoryRow> rows;
  std::vector<HistoryRow> together;
  for (const json& job : *jobs) {
    if (!IsOfUser(job, "user", user)) continue;
    if (!ReadHistory(job, &rows, &together)) return UnreadableAnswer("a job");
  }
  AddTogether(std::move(together), &rows);
  return rows;
}

absl::StatusOr<std::vector<UsageRow>> RestUsage(const json& answer, std::string_view user) {
  const json* jobs = ListIn(answer, "jobs");
  if (jobs == nullptr) return UnreadableAnswer("no list of jobs, or one");
  std::vector<UsageRow> rows;
  std::vector<UsageRow> together;
  for (const json& job : *jobs) {
    if (!IsOfUser(job, "user", user)) continue;
    std::vector<HistoryRow> own;
    std::vector<HistoryRow> rest;
    if (!ReadHistory(job, &own, &rest)) return UnreadableAnswer("a job");
    const std::vector<HistoryRow>& some = own.empty() ? rest : own;
    UsageRow row;
    row.name = some.front().name;
    row.has_ended = HasEnded(some.front().state.phase) && some.front().end_time.has_value();
    if (const json* steps = ListIn(job, "steps"); steps != nullptr) {
      for (const json& step : *steps) AddStep(step, &row);
    }
    for (const HistoryRow& one : some) {
      row.job_id = one.job_id;
      (own.empty() ? together : rows).push_back(row);
    }
  }
  AddTogether(std::move(together), &rows);
  return rows;
}

}  // namespace muster::slurm
