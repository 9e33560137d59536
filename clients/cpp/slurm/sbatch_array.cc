#include "clients/cpp/slurm/sbatch_array.h"

#include <algorithm>
#include <optional>
#include <set>

#include "contract/parts.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::ParseNumber;

// "1-7:2"; of a single number it and itself.
struct TaskRange {
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t step = 1;
};

std::optional<TaskRange> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const size_t colon = text.find(':');
  const auto first = ParseNumber<uint32_t>(text.substr(0, dash));
  if (!first.has_value()) return std::nullopt;
  if (dash == text.npos) return TaskRange{*first, *first};
  const auto last = ParseNumber<uint32_t>(text.substr(dash + 1, colon - dash - 1));
  if (!last.has_value() || *last < *first) return std::nullopt;
  if (colon == text.npos) return TaskRange{*first, *last};
  const auto step = ParseNumber<uint32_t>(text.substr(colon + 1));
  if (!step.has_value() || *step == 0) return std::nullopt;
  return TaskRange{*first, *last, *step};
}

absl::Status BadArray(const std::string& text) { return absl::InvalidArgumentError(text); }

}  // namespace

absl::StatusOr<std::vector<contract::ArrayTask>> ParseArray(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  uint32_t limit = 0;
  if (const size_t percent = text.find('%'); percent != text.npos) {
    const auto number = ParseNumber<uint32_t>(text.substr(percent + 1));
    if (!number.has_value() || *number > contract::kMaxArrayTaskId) {
      return BadArray(fmt::format("after the '%' use the most tasks at the same time, 1 to {}",
                                  contract::kMaxArrayTaskId));
    }
    limit = *number;
    text = text.substr(0, percent);
  }
  std::set<uint32_t> ids;
  uint32_t step = 1;
  for (std::string_view part : contract::Split(text, ',')) {
    const std::optional<TaskRange> range = ParseRange(part);
    if (!range.has_value() || range->last > contract::kMaxArrayTaskId) {
      return BadArray(fmt::format("use ids of 0 to {}, as in 0-15, 1,3,5-7 or 1-7:2",
                                  contract::kMaxArrayTaskId));
    }
    if (range->step > 1) step = range->step;
    for (uint64_t id = range->first; id <= range->last; id += range->step) {
      ids.insert(static_cast<uint32_t>(id));
      if (ids.size() > contract::kMaxArrayTasks) {
        return BadArray(fmt::format("use at most {} tasks; submit the others with another --array",
                                    contract::kMaxArrayTasks));
      }
    }
  }
  std::vector<contract::ArrayTask> tasks;
  for (uint32_t id : ids) {
    tasks.push_back({.id = id,
                     .count = static_cast<uint32_t>(ids.size()),
                     .min_id = *ids.begin(),
                     .max_id = *ids.rbegin(),
                     .step = step,
                     .place = static_cast<uint32_t>(tasks.size()),
                     .limit = limit});
  }
  return tasks;
}

}  // namespace muster::client::slurm
