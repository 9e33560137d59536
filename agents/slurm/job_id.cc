#include "agents/slurm/job_id.h"

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

std::vector<JobId> ExpandJobIds(std::string_view text) {
  if (!text.ends_with(']')) {
    const std::optional<JobId> id = ParseJobId(text);
    return id.has_value() ? std::vector<JobId>{*id} : std::vector<JobId>();
  }
  const size_t open = text.find("_[");
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(text.substr(0, open));
  if (open == std::string_view::npos || !number.has_value()) return {};
  std::string_view set = text.substr(open + 2);
  set.remove_suffix(1);
  // The number of tasks that may run at once is behind it.
  set = set.substr(0, set.find('%'));
  std::vector<JobId> ids;
  for (std::string_view range : Split(set, ',')) {
    const size_t dash = range.find('-');
    const std::optional<uint32_t> first = ParseNumber<uint32_t>(range.substr(0, dash));
    const std::optional<uint32_t> last =
        dash == std::string_view::npos ? first : ParseNumber<uint32_t>(range.substr(dash + 1));
    if (!first.has_value() || !last.has_value() || *last < *first ||
        *last - *first >= kMaxTasksInLine - ids.size()) {
      return {};
    }
    for (uint64_t task = *first; task <= *last; ++task)
      ids.push_back({*number, static_cast<uint32_t>(task)});
  }
  return ids;
}

}  // namespace muster::slurm
