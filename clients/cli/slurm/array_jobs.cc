#include "clients/cli/slurm/array_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clients/cpp/slurm/sbatch_array.h"
#include "contract/counted.h"
#include "contract/parts.h"
#include "contract/task_array.h"

namespace muster::cli {
namespace {

using contract::ArrayTask;

// Returns the job's place in its array. Nothing: it is no task.
absl::StatusOr<std::optional<ArrayTask>> TaskOf(client::Client& client, uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  const auto response = client.GetJob(request);
  if (!response.ok()) return response.status();
  return contract::FindArrayTask(response->job().spec());
}

absl::Status NoTask(const JobName& name) {
  return absl::NotFoundError(
      fmt::format("Invalid job id specified: job {} has no task {}", name.number, *name.task));
}

// The tasks of an array are in the order of their ids.
absl::StatusOr<uint64_t> NumberOfTask(client::Client& client, const JobName& name, uint32_t count) {
  uint64_t begin = name.number;
  uint64_t end = name.number + count;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    const auto task = TaskOf(client, middle);
    if (!task.ok()) return task.status();
    if (!task->has_value()) break;
    if ((*task)->id == *name.task) return middle;
    ((*task)->id < *name.task ? begin : end) = (*task)->id < *name.task ? middle + 1 : middle;
  }
  return NoTask(name);
}

void AddRange(uint64_t first, uint64_t end, std::vector<std::string>* ranges) {
  if (first >= end) return;
  ranges->push_back(first + 1 == end ? fmt::format("{}", first)
                                     : fmt::format("{} to {}", first, end - 1));
}

}  // namespace

std::optional<JobName> ParseJobName(std::string_view text) {
  const size_t bar = text.find('_');
  const auto number = contract::ParseNumber<uint64_t>(text.substr(0, bar));
  if (!number.has_value() || *number == 0) return std::nullopt;
  if (bar == text.npos) return JobName{*number, std::nullopt};
  const auto task = contract::ParseNumber<uint32_t>(text.substr(bar + 1));
  if (!task.has_value()) return std::nullopt;
  return JobName{*number, *task};
}

std::vector<uint32_t> ParseTasks(std::string_view text) {
  std::vector<uint32_t> ids;
  if (const auto id = contract::ParseNumber<uint32_t>(text); id.has_value()) return {*id};
  // sbatch takes no number for 0; here that would be somebody's task.
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool is_list = text.size() > 2 && text.starts_with('[') && text.ends_with(']') &&
                       is_digit(text[1]) && is_digit(text[text.size() - 2]);
  if (!is_list) return ids;
  const auto tasks = client::slurm::ParseArray(text);
  if (!tasks.ok()) return ids;
  for (const ArrayTask& task : *tasks) ids.push_back(task.id);
  return ids;
}

std::vector<JobName> ParseJobNames(std::string_view text) {
  const size_t bar = text.find('_');
  const std::optional<JobName> array = ParseJobName(text.substr(0, bar));
  if (!array.has_value()) return {};
  if (bar == text.npos || text.substr(bar + 1) == "*") return {*array};
  std::vector<JobName> names;
  for (const uint32_t task : ParseTasks(text.substr(bar + 1)))
    names.push_back({array->number, task});
  return names;
}

std::string NameOf(const v1::Job& job) {
  const std::optional<ArrayTask> task = contract::FindArrayTask(job.spec());
  if (!task.has_value()) return fmt::format("{}", job.id());
  return fmt::format("{}_{}", contract::ArrayNumber(job.id(), *task), task->id);
}

std::string TaskText(const v1::Job& job) {
  const std::optional<ArrayTask> task = contract::FindArrayTask(job.spec());
  if (!task.has_value()) return "";
  return fmt::format("task {} of the array {}, number {} of its {}", task->id,
                     contract::ArrayNumber(job.id(), *task), task->place + 1,
                     contract::Counted(task->count, "task"));
}

std::string OtherTasksText(const v1::Job& job, std::string_view verb) {
  const std::optional<ArrayTask> task = contract::FindArrayTask(job.spec());
  if (!task.has_value() || task->count < 2) return "";
  const uint64_t array = contract::ArrayNumber(job.id(), *task);
  std::vector<std::string> others;
  AddRange(array, job.id(), &others);
  AddRange(job.id() + 1, array + task->count, &others);
  return fmt::format(
      "job {} is one of the {} tasks of the array {}; the other{}: {}; all of them: muster {} "
      "'{}_*'",
      job.id(), task->count, array, task->count == 2 ? "" : "s", fmt::join(others, ", "), verb,
      array);
}

absl::StatusOr<std::vector<uint64_t>> NumbersOf(client::Client& client,
                                                const std::vector<JobName>& names) {
  std::vector<uint64_t> numbers;
  for (const JobName& name : names) {
    const auto first = TaskOf(client, name.number);
    if (!first.ok() && !absl::IsNotFound(first.status())) return first.status();
    const bool is_array = first.ok() && first->has_value() && (*first)->place == 0;
    if (name.task.has_value()) {
      if (!is_array) return NoTask(name);
      const auto number = NumberOfTask(client, name, (*first)->count);
      if (!number.ok()) return number.status();
      numbers.push_back(*number);
      continue;
    }
    const uint64_t count = is_array ? (*first)->count : 1;
    for (uint64_t i = 0; i < count; ++i) numbers.push_back(name.number + i);
  }
  return numbers;
}

absl::Status ResolveTasks(client::Client& client, std::vector<JobRef>* refs) {
  std::vector<JobRef> resolved;
  for (const JobRef& ref : *refs) {
    if (!ref.task.has_value() && !ref.is_every_task) {
      resolved.push_back(ref);
      continue;
    }
    const auto first = TaskOf(client, ref.job);
    if (!first.ok()) return first.status();
    if (!first->has_value() || (*first)->place > 0) {
      return absl::NotFoundError(
          fmt::format("job {} is {}; write {}", ref.job,
                      first->has_value() ? fmt::format("no array, but a task of the array {}",
                                                       contract::ArrayNumber(ref.job, **first))
                                         : std::string("no job array"),
                      first->has_value() ? contract::ArrayNumber(ref.job, **first) : ref.job));
    }
    const auto numbers = NumbersOf(client, {{ref.job, ref.task}});
    if (!numbers.ok()) return numbers.status();
    for (const uint64_t number : *numbers) {
      JobRef& job = resolved.emplace_back(ref);
      job.job = number;
    }
  }
  *refs = std::move(resolved);
  return absl::OkStatus();
}

}  // namespace muster::cli
