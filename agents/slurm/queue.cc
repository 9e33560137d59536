#include "agents/slurm/queue.h"

#include <array>

#include "absl/status/status.h"
#include "agents/slurm/fields.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// The long names, because restarts have no letter. A width of 0 is none: nothing is cut or padded.
constexpr std::array kSqueueColumns = {
    "ArrayJobID", "ArrayTaskID", "Name",       "State",     "Reason",  "NodeList", "SubmitTime",
    "StartTime",  "EndTime",     "RestartCnt", "Partition", "Account", "QOS"};

std::string Format(std::string_view separator) {
  std::string format;
  for (const char* column : kSqueueColumns)
    format += fmt::format("{}{}:0{}", format.empty() ? "" : ",", column,
                          column == kSqueueColumns.back() ? "" : separator);
  return format;
}

std::optional<QueueRow> ParseRow(const std::vector<std::string_view>& columns) {
  if (columns.size() != kSqueueColumns.size()) return std::nullopt;
  std::optional<JobId> id = ParseJobId(columns[0]);
  if (!id.has_value() || columns[3].empty()) return std::nullopt;
  id->task = ParseNumber<uint32_t>(columns[1]);  // "N/A": it is no array's
  return QueueRow{.job_id = *id,
                  .name = std::string(columns[2]),
                  .state = ParseState(columns[3]),
                  .reason = std::string(columns[4]),
                  .node_list = std::string(columns[5]),
                  .submit_time = ParseEpoch(columns[6]),
                  .start_time = ParseEpoch(columns[7]),
                  .end_time = ParseEpoch(columns[8]),
                  .allocation = AllocationOf(columns[10], columns[11], columns[12]),
                  .restarts = ParseNumber<uint32_t>(columns[9]).value_or(0)};
}

// Reads the names of one element, "n[1-2,7]" or "gpu"; false if it cannot be read.
bool ExpandElement(std::string_view element, std::vector<std::string>* names) {
  const size_t open = element.find('[');
  if (open == std::string_view::npos) {
    names->emplace_back(element);
    return names->size() <= kMaxNodes;
  }
  const size_t close = element.find(']', open);
  if (close == std::string_view::npos) return false;
  const std::string_view prefix = element.substr(0, open);
  const std::string_view suffix = element.substr(close + 1);
  if (suffix.find('[') != std::string_view::npos) return false;
  for (std::string_view range : Split(element.substr(open + 1, close - open - 1), ',')) {
    const size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const std::optional<uint64_t> first = ParseNumber<uint64_t>(low);
    const std::optional<uint64_t> last = ParseNumber<uint64_t>(high);
    if (!first.has_value() || !last.has_value() || *last < *first || *last - *first >= kMaxNodes) {
      return false;
    }
    for (uint64_t number = *first; number <= *last; ++number) {
      // Leading zeros are part of the name: n[08-10].
      names->push_back(fmt::format("{}{:0{}}{}", prefix, number, low.size(), suffix));
    }
    if (names->size() > kMaxNodes) return false;
  }
  return true;
}

std::string ChosenName(std::string_view text) {
  return text == "(null)" || text == "N/A" || text == "None" ? std::string() : std::string(text);
}

}  // namespace

v1::SlurmAllocation AllocationOf(std::string_view partition, std::string_view account,
                                 std::string_view qos) {
  v1::SlurmAllocation allocation;
  if (partition.find(',') == std::string_view::npos)
    allocation.set_partition(ChosenName(partition));
  allocation.set_account(ChosenName(account));
  allocation.set_qos(ChosenName(qos));
  return allocation;
}

std::vector<std::string> QueueArguments(std::string_view name) {
  std::vector<std::string> arguments = {
      "squeue",     "--me",    "--states=all",
      "--noheader", "--array", fmt::format("--Format={}", Format({&kSeparator, 1}))};
  if (!name.empty()) arguments.push_back(fmt::format("--name={}", name));
  return arguments;
}

absl::StatusOr<std::vector<QueueRow>> ParseQueue(std::string_view output) {
  std::vector<QueueRow> rows;
  for (std::string_view line : Lines(output)) {
    std::optional<QueueRow> row = ParseRow(Split(line, kSeparator));
    if (!row.has_value()) {
      return absl::InternalError(fmt::format(
          "squeue printed a line that is not as asked for: \"{}\"", line.substr(0, 200)));
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

std::vector<std::string> QueueArgumentsForAll(std::string_view separator) {
  return {"squeue",
          "--all",
          "--states=all",
          "--noheader",
          "--array",
          fmt::format("--Format={},UserID:0", Format(separator) + std::string(separator))};
}

std::vector<QueueRow> ParseQueueOfAll(std::string_view output, std::string_view separator) {
  std::vector<QueueRow> rows;
  for (std::string_view line : Lines(output)) {
    std::vector<std::string_view> columns;
    for (size_t at = 0; (at = line.find(separator)) != line.npos;) {
      columns.push_back(line.substr(0, at));
      line.remove_prefix(at + separator.size());
    }
    const auto user_id = ParseNumber<uint32_t>(line);
    std::optional<QueueRow> row = ParseRow(columns);
    if (!row.has_value() || !user_id.has_value()) continue;
    row->user_id = user_id;
    rows.push_back(*std::move(row));
  }
  return rows;
}

std::vector<std::string> ExpandNodeList(std::string_view list) {
  std::vector<std::string> names;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const std::string_view element = list.substr(begin, i - begin);
    begin = i + 1;
    if (element.empty()) continue;
    if (!ExpandElement(element, &names)) return {};
  }
  return names;
}

}  // namespace muster::slurm
