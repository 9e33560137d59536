#include "agents/slurm/usage.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "agents/core/proto_time.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/history.h"
#include "agents/slurm/states.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

constexpr size_t kUsageColumns = 8;

// "12709888" as --noconvert has it; nothing in the column: no sample was taken.
std::optional<uint64_t> ParseRss(std::string_view text) {
  return text.empty() ? 0 : ParseNumber<uint64_t>(text);
}

// The line of a step comes behind that of its job. One about several tasks, none of which has
// begun, goes to `together`. False: the line cannot be read.
bool AddLine(std::string_view line, std::vector<UsageRow>* rows, std::vector<UsageRow>* together) {
  const std::vector<std::string_view> columns = Split(line, kSeparator);
  if (columns.size() != kUsageColumns || columns[3].empty()) return false;
  // A slurmdbd that is catching up shows the state of the job first, without end, steps and usage.
  const bool has_ended =
      HasEnded(ParseState(columns[3]).phase) && ParseEpoch(columns[7]).has_value();
  const std::optional<uint64_t> rss = ParseRss(columns[6]);
  if (!rss.has_value()) return false;
  if (columns[1].find('.') != std::string_view::npos) {
    if (rows->empty()) return false;
    UsageRow& job = rows->back();
    job.has_ended = job.has_ended && has_ended;
    job.max_rss_bytes = std::max(job.max_rss_bytes, *rss);
    return true;
  }
  // Only a task's id has an index, as in the history.
  const bool is_task = columns[0].find('_') != std::string_view::npos;
  const std::vector<JobId> ids = ExpandJobIds(columns[is_task ? 0 : 1]);
  const std::optional<absl::Duration> user = ParseCpuTime(columns[4]);
  const std::optional<absl::Duration> system = ParseCpuTime(columns[5]);
  if (ids.empty() || !user.has_value() || !system.has_value()) return false;
  if (columns[0].ends_with(']')) rows = together;
  for (const JobId& id : ids) {
    rows->push_back({.job_id = id,
                     .name = std::string(columns[2]),
                     .has_ended = has_ended,
                     .user_cpu = *user,
                     .system_cpu = *system,
                     .max_rss_bytes = *rss});
  }
  return true;
}

}  // namespace

std::optional<v1::ResourceUsage> UsageRow::Usage() const {
  if (user_cpu + system_cpu == absl::ZeroDuration() && max_rss_bytes == 0) return std::nullopt;
  v1::ResourceUsage usage;
  *usage.mutable_user_cpu_time() = agents::ToProto(user_cpu);
  *usage.mutable_system_cpu_time() = agents::ToProto(system_cpu);
  usage.set_max_rss_bytes(max_rss_bytes);
  return usage;
}

std::vector<std::string> UsageArguments(const std::vector<JobId>& ids, absl::Time since) {
  std::set<uint64_t> numbers;
  for (const JobId& id : ids) numbers.insert(id.number);
  return {"sacct",
          "--parsable2",
          "--noheader",
          "--noconvert",
          fmt::format("--delimiter={}", kSeparator),
          "--format=JobID,JobIDRaw,JobName,State,UserCPU,SystemCPU,MaxRSS,End",
          fmt::format("--starttime=uts{}", absl::ToUnixSeconds(since)),
          fmt::format("--jobs={}", fmt::join(numbers, ","))};
}

absl::StatusOr<std::vector<UsageRow>> ParseUsage(std::string_view output) {
  std::vector<UsageRow> rows;
  std::vector<UsageRow> together;
  for (std::string_view line : Lines(output)) {
    if (!AddLine(line, &rows, &together)) {
      return absl::InternalError(fmt::format(
          "sacct printed a line that is not as asked for: \"{}\"", line.substr(0, 200)));
    }
  }
  AddTogether(std::move(together), &rows);
  return rows;
}

std::optional<absl::Duration> ParseCpuTime(std::string_view text) {
  absl::Duration time;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::optional<uint32_t> days = ParseNumber<uint32_t>(text.substr(0, dash));
    if (!days.has_value()) return std::nullopt;
    time += absl::Hours(24) * *days;
    text.remove_prefix(dash + 1);
  }
  if (const size_t dot = text.find('.'); dot != std::string_view::npos) {
    const std::string_view digits = text.substr(dot + 1);
    const std::optional<uint32_t> millis = ParseNumber<uint32_t>(digits);
    if (!millis.has_value() || digits.size() != 3) return std::nullopt;
    time += absl::Milliseconds(*millis);
    text = text.substr(0, dot);
  }
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  absl::Duration unit = parts.size() == 3 ? absl::Hours(1) : absl::Minutes(1);
  for (std::string_view part : parts) {
    const std::optional<uint32_t> number = ParseNumber<uint32_t>(part);
    if (!number.has_value()) return std::nullopt;
    time += unit * *number;
    unit /= 60;
  }
  return time;
}

}  // namespace muster::slurm
