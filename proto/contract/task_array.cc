#include "contract/task_array.h"

#include <algorithm>
#include <array>
#include <string>

#include "contract/characters.h"
#include "contract/parts.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

struct Variable {
  std::string_view name;
  uint32_t ArrayTask::*value;
  uint32_t most;
};
constexpr std::array kVariables = {
    Variable{"SLURM_ARRAY_TASK_ID", &ArrayTask::id, kMaxArrayTaskId},
    Variable{"SLURM_ARRAY_TASK_COUNT", &ArrayTask::count, kMaxArrayTasks},
    Variable{"SLURM_ARRAY_TASK_MIN", &ArrayTask::min_id, kMaxArrayTaskId},
    Variable{"SLURM_ARRAY_TASK_MAX", &ArrayTask::max_id, kMaxArrayTaskId},
    Variable{"SLURM_ARRAY_TASK_STEP", &ArrayTask::step, kMaxArrayTaskId},
    Variable{"MUSTER_ARRAY_PLACE", &ArrayTask::place, kMaxArrayTasks - 1},
};

std::optional<uint32_t> ValueOf(const v1::JobSpec& spec, const Variable& variable) {
  const auto found = spec.env().find(std::string(variable.name));
  if (found == spec.env().end()) return std::nullopt;
  const auto number = ParseNumber<uint32_t>(found->second);
  return number.has_value() && *number <= variable.most ? number : std::nullopt;
}

}  // namespace

bool IsArrayVariable(std::string_view name) {
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [&](const Variable& variable) { return variable.name == name; });
}

void SetArrayTask(const ArrayTask& task, v1::JobSpec* spec) {
  for (const Variable& variable : kVariables) {
    (*spec->mutable_env())[std::string(variable.name)] = fmt::format("{}", task.*variable.value);
  }
}

std::optional<ArrayTask> FindArrayTask(const v1::JobSpec& spec) {
  if (!spec.slurm().has_batch_script()) return std::nullopt;
  ArrayTask task;
  for (const Variable& variable : kVariables) {
    const std::optional<uint32_t> value = ValueOf(spec, variable);
    if (!value.has_value()) return std::nullopt;
    task.*variable.value = *value;
  }
  return task;
}

void LeaveArray(v1::JobSpec* spec) {
  const std::optional<ArrayTask> task = FindArrayTask(*spec);
  if (!task) return;
  SetArrayTask({.id = task->id, .min_id = task->id, .max_id = task->id}, spec);
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
        fmt::format("a task of a job array has it, a number of at most {}; submit the array "
                    "with muster sbatch --array",
                    variable.most));
  }
}

}  // namespace muster::contract
