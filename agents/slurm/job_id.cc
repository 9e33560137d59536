#include "agents/slurm/job_id.h"

#include <utility>

#include "agents/slurm/fields.h"
#include "fmt/format.h"

namespace muster::slurm {

std::string JobId::ToString() const {
  return task.has_value() ? fmt::format("{}_{}", number, *task) : std::to_string(number);
}

std::optional<JobId> ParseJobId(std::string_view text) {
  const size_t underscore = text.find('_');
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(text.substr(0, underscore));
  if (!number.has_value() || *number == 0) return std::nullopt;
  JobId id{*number};
  if (underscore == std::string_view::npos) return id;
  id.task = ParseNumber<uint32_t>(text.substr(underscore + 1));
  if (!id.task.has_value()) return std::nullopt;
  return id;
}

std::optional<TaskSet> ParseTaskSet(uint64_t array, std::string_view text) {
  constexpr std::string_view kCut = "...";
  TaskSet set;
  text = text.substr(0, text.find('%'));
  if (text.ends_with(kCut)) {
    set.is_cut = true;
    // The last item may lack its end.
    const size_t comma = text.rfind(',');
    if (comma == std::string_view::npos) return set;
    text = text.substr(0, comma);
  }
  for (std::string_view item : Split(text, ',')) {
    const size_t colon = item.find(':');
    const std::string_view range = item.substr(0, colon);
    const size_t dash = range.find('-');
    const std::optional<uint32_t> first = ParseNumber<uint32_t>(range.substr(0, dash));
    const std::optional<uint32_t> last =
        dash == std::string_view::npos ? first : ParseNumber<uint32_t>(range.substr(dash + 1));
    const std::optional<uint32_t> step =
        colon == std::string_view::npos ? 1 : ParseNumber<uint32_t>(item.substr(colon + 1));
    if (!first.has_value() || !last.has_value() || *last < *first || step.value_or(0) == 0 ||
        (*last - *first) / *step >= kMaxTasksInLine - set.ids.size()) {
      return std::nullopt;
    }
    for (uint64_t task = *first; task <= *last; task += *step)
      set.ids.push_back({array, static_cast<uint32_t>(task)});
  }
  return set;
}

std::vector<JobId> ExpandJobIds(std::string_view text) {
  if (!text.ends_with(']')) {
    const std::optional<JobId> id = ParseJobId(text);
    return id.has_value() ? std::vector<JobId>{*id} : std::vector<JobId>();
  }
  const size_t open = text.find("_[");
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(text.substr(0, open));
  if (open == std::string_view::npos || !number.has_value()) return {};
  std::optional<TaskSet> set = ParseTaskSet(*number, text.substr(open + 2, text.size() - open - 3));
  if (!set.has_value() || set->is_cut) return {};
  return std::move(set->ids);
}

}  // namespace muster::slurm
