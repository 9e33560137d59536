#include "clients/cpp/slurm/sbatch_array.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>

#include "contract/parts.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::ParseNumber;

// Holds "1-7:2"; a single number has itself at both ends.
struct TaskRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t step = 1;
};

// Takes a number from the front as slurmctld does (strtol): blanks and a sign may come before it,
// and a text without digits is 0. Numbers that are too large become the largest one.
int64_t TakeNumber(std::string_view* text) {
  size_t at = std::min(text->find_first_not_of(" \t"), text->size());
  const bool has_sign = at < text->size() && ((*text)[at] == '+' || (*text)[at] == '-');
  const bool is_negative = has_sign && (*text)[at] == '-';
  if (has_sign) ++at;
  const std::string_view digits =
      text->substr(at, std::min(text->find_first_not_of("0123456789", at), text->size()) - at);
  if (digits.empty()) return 0;
  text->remove_prefix(at + digits.size());
  const int64_t number = ParseNumber<int64_t>(digits).value_or(std::numeric_limits<int64_t>::max());
  return is_negative ? -number : number;
}

// Takes the character from the front if it is there.
bool Take(char wanted, std::string_view* text) {
  if (!text->starts_with(wanted)) return false;
  text->remove_prefix(1);
  return true;
}

// One part of the list. slurmctld does not ask whether brackets match, and takes no number for 0.
std::optional<TaskRange> ParseRange(std::string_view text) {
  text = text.substr(0, text.find('%'));
  Take('[', &text);
  const int64_t first = TakeNumber(&text);
  Take(']', &text);
  int64_t last = first;
  int64_t step = 1;
  if (Take('-', &text)) {
    last = TakeNumber(&text);
    Take(']', &text);
    if (Take(':', &text)) {
      step = TakeNumber(&text);
      Take(']', &text);
    }
  }
  if (!text.empty() || first < 0 || last < first || step <= 0) return std::nullopt;
  return TaskRange{static_cast<uint64_t>(first), static_cast<uint64_t>(last),
                   static_cast<uint64_t>(step)};
}

absl::Status BadArray(const std::string& text) { return absl::InvalidArgumentError(text); }

}  // namespace

absl::StatusOr<std::vector<contract::ArrayTask>> ParseArray(std::string_view text) {
  uint32_t limit = 0;
  // Text that is no number, a number that is not above 0, and one that no array reaches set no
  // limit.
  if (const size_t percent = text.find('%'); percent != text.npos) {
    std::string_view number = text.substr(percent + 1);
    const int64_t most = TakeNumber(&number);
    if (most > 0 && most <= contract::kMaxArrayTaskId) limit = static_cast<uint32_t>(most);
  }
  std::set<uint32_t> ids;
  uint32_t step = 1;
  for (std::string_view part : contract::Split(text, ',')) {
    if (part.empty()) continue;
    const std::optional<TaskRange> range = ParseRange(part);
    if (!range.has_value() || range->last > contract::kMaxArrayTaskId) {
      return BadArray(fmt::format("use ids of 0 to {}, as in 0-15, 1,3,5-7 or 1-7:2",
                                  contract::kMaxArrayTaskId));
    }
    if (range->step > contract::kMaxArrayTaskId)
      return BadArray(fmt::format("use a step of 1 to {}", contract::kMaxArrayTaskId));
    if (range->step > 1) step = static_cast<uint32_t>(range->step);
    for (uint64_t id = range->first; id <= range->last; id += range->step) {
      ids.insert(static_cast<uint32_t>(id));
      if (ids.size() > contract::kMaxArrayTasks) {
        return BadArray(
            fmt::format("use at most {} tasks, as many as one call of the broker takes "
                        "(SubmitJobs); submit the "
                        "others with another --array",
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
