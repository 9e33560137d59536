#include "contract/task_array.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "contract/characters.h"
#include "contract/parts.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

struct Variable {
  std::string_view name;
  uint32_t ArrayTask::*value;
  uint32_t least;
  uint32_t most;
  bool may_be_absent = false;  // it is `least` then
  bool tells_task = false;     // whoever reads a part of the env finds the task by these
};
constexpr Variable kId{"SLURM_ARRAY_TASK_ID", &ArrayTask::id, 0, kMaxArrayTaskId, false, true};
constexpr Variable kCount{
    "SLURM_ARRAY_TASK_COUNT", &ArrayTask::count, 1, kMaxArrayTasks, false, true};
constexpr Variable kPlace{
    "MUSTER_ARRAY_PLACE", &ArrayTask::place, 0, kMaxArrayTasks - 1, false, true};
constexpr Variable kLimit{"MUSTER_ARRAY_LIMIT", &ArrayTask::limit, 0, kMaxArrayTaskId, true};
constexpr std::array kVariables = {
    kId,
    kCount,
    Variable{"SLURM_ARRAY_TASK_MIN", &ArrayTask::min_id, 0, kMaxArrayTaskId},
    Variable{"SLURM_ARRAY_TASK_MAX", &ArrayTask::max_id, 0, kMaxArrayTaskId},
    Variable{"SLURM_ARRAY_TASK_STEP", &ArrayTask::step, 1, kMaxArrayTaskId},
    kPlace,
    kLimit,
};

std::optional<uint32_t> ValueOf(const v1::JobSpec& spec, const Variable& variable) {
  const auto found = spec.env().find(variable.name);
  if (found == spec.env().end())
    return variable.may_be_absent ? std::optional(variable.least) : std::nullopt;
  const auto number = ParseNumber<uint32_t>(found->second);
  const bool is_in_range =
      number.has_value() && *number >= variable.least && *number <= variable.most;
  return is_in_range ? number : std::nullopt;
}

}  // namespace

bool IsArrayVariable(std::string_view name) {
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [&](const Variable& variable) { return variable.name == name; });
}

void SetArrayTask(const ArrayTask& task, v1::JobSpec* spec) {
  for (const Variable& variable : kVariables) {
    const std::string name(variable.name);
    if (variable.may_be_absent && task.*variable.value == variable.least) {
      spec->mutable_env()->erase(name);
    } else {
      (*spec->mutable_env())[name] = fmt::format("{}", task.*variable.value);
    }
  }
}

std::optional<ArrayTask> FindArrayTask(const v1::JobSpec& spec) {
  if (!spec.slurm().has_batch_script()) return std::nullopt;
  ArrayTask task;
  for (const Variable& variable : kVariables) {
    const std::optional<uint32_t> value = ValueOf(spec, variable);
    const bool is_told = value.has_value();
    if (!is_told && (variable.tells_task || spec.env().contains(variable.name)))
      return std::nullopt;
    task.*variable.value = value.value_or(variable.least);
  }
  if (task.place >= task.count) return std::nullopt;
  return task;
}

void LeaveArray(v1::JobSpec* spec) {
  if (!spec->slurm().has_batch_script()) return;
  const std::optional<uint32_t> id = ValueOf(*spec, kId);
  if (id) SetArrayTask({.id = *id, .min_id = *id, .max_id = *id}, spec);
}

std::shared_ptr<const v1::JobSpec> WithoutArray(v1::JobSpec spec) {
  LeaveArray(&spec);
  return std::make_shared<const v1::JobSpec>(std::move(spec));
}

std::string TaskRanges(const std::vector<uint32_t>& ids) {
  // squeue itself writes fewer, or those close together, one by one.
  constexpr size_t kLeastSteps = 6;
  constexpr uint32_t kLeastSpan = 11;
  const uint32_t step = ids.size() < 2 ? 1 : ids[1] - ids[0];
  const bool is_even = std::adjacent_find(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
                         return b - a != step;
                       }) == ids.end();
  if (step > 1 && is_even && ids.size() >= kLeastSteps && ids.back() - ids.front() >= kLeastSpan)
    return fmt::format("{}-{}:{}", ids.front(), ids.back(), step);
  std::string text;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ids[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ids[end - 1]);
    begin = end;
  }
  return text;
}

void CheckArrayTask(const v1::JobSpec& spec, FieldErrors* errors) {
  const bool is_task = std::any_of(spec.env().begin(), spec.env().end(),
                                   [](const auto& one) { return IsArrayVariable(one.first); });
  if (!is_task) return;
  if (!spec.slurm().has_batch_script()) {
    errors->Add(
        "env",
        "only a batch script can be a task of a job array; submit it with muster sbatch --array");
    return;
  }
  for (const Variable& variable : kVariables) {
    if (ValueOf(spec, variable).has_value()) continue;
    errors->Add(
        fmt::format("env[{}]", Quoted(variable.name)),
        fmt::format("a task of a job array has it, a number of {} to {}; submit the array with "
                    "muster sbatch --array",
                    variable.least, variable.most));
  }
  const std::optional<uint32_t> count = ValueOf(spec, kCount), place = ValueOf(spec, kPlace);
  if (count && place && *place >= *count) {
    errors->Add(fmt::format("env[{}]", Quoted(kPlace.name)),
                fmt::format("is {}, in an array of {} (SLURM_ARRAY_TASK_COUNT): the first place is "
                            "0; submit the array with muster sbatch --array",
                            *place, *count));
  }
}

}  // namespace muster::contract
