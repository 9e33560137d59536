#include "agents/core/array_gathering.h"

#include <iterator>
#include <utility>

#include "contract/task_array.h"

namespace muster::agents {

std::optional<ArrayMember> ArrayMemberOf(const agent::v1::Assignment& assignment) {
  // A copy of files for each task may take an hour, for which the others would wait.
  if (assignment.run() > 1 || assignment.spec().uploads_size() > 0) return std::nullopt;
  const auto task = contract::FindArrayTask(assignment.spec());
  if (!task.has_value() || task->count < 2) return std::nullopt;
  return ArrayMember{contract::ArrayNumber(assignment.job_id(), *task), task->count};
}

std::optional<OrderedRuns> ArrayGathering::Add(uint64_t order, const std::string& run_key,
                                               const ArrayMember& member, absl::Time now) {
  const auto array = arrays_.try_emplace(member.array).first;
  array->second.runs.emplace(order, run_key);
  array->second.due = now + kArrayPatience;
  array_of_.emplace(order, member.array);
  if (array->second.runs.size() < member.tasks) return std::nullopt;
  return Take(array);
}

void ArrayGathering::Erase(uint64_t order) {
  const auto found = array_of_.find(order);
  if (found == array_of_.end()) return;
  const auto array = arrays_.find(found->second);
  array->second.runs.erase(order);
  if (array->second.runs.empty()) arrays_.erase(array);
  array_of_.erase(found);
}

std::vector<OrderedRuns> ArrayGathering::TakeDue(absl::Time now) {
  std::vector<OrderedRuns> due;
  for (auto array = arrays_.begin(); array != arrays_.end();) {
    const auto next = std::next(array);
    if (array->second.due <= now) due.push_back(Take(array));
    array = next;
  }
  return due;
}

OrderedRuns ArrayGathering::Take(std::map<uint64_t, Array>::iterator array) {
  OrderedRuns runs = std::move(array->second.runs);
  arrays_.erase(array);
  for (const auto& [order, key] : runs) array_of_.erase(order);
  return runs;
}

}  // namespace muster::agents
