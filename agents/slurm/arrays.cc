#include "agents/slurm/arrays.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/run_files.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::slurm {
namespace {

// A run key is a part of names that have at most 253 bytes; an id has at most 7.
constexpr size_t kMaxListBytes = size_t{contract::kMaxArrayTasks} * 264;

// The mark between the first run's key and the random part.
constexpr std::string_view kArrayMark = ".array-";

std::string NewName(std::string_view first_run) {
  std::random_device device;
  return fmt::format("{}{}{:08x}", first_run, kArrayMark, device());
}

// A list none of whose runs has files was not removed in time if it is this old. A newer list
// stays, because files that were lost in a power cut may be those of runs that are looked for.
constexpr absl::Duration kOldList = absl::Hours(24);

// Compares a task with an id.
struct IsBefore {
  template <typename Task>
  bool operator()(const Task& task, uint32_t id) const {
    return task.id < id;
  }
};

template <typename Array>
bool IsHeld(const Array& array) {
  return std::any_of(array.begin(), array.end(), [](const auto& task) { return task.is_held; });
}

}  // namespace

// Outputs, and files that are still being written, are beside the lists.
bool IsArrayName(std::string_view name) {
  const size_t dot = name.find(kArrayMark);
  return dot != name.npos && name.find('.', dot + 1) == name.npos;
}

absl::Status Arrays::Load() {
  const MutexLock lock(mutex_);
  if (is_loaded_) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> names =
      host_.ListDirectory(ArrayPaths::Directory(runs_directory_));
  if (!names.ok() && names.status().code() != absl::StatusCode::kNotFound) return names.status();
  if (names.ok()) {
    std::erase_if(*names, [](const std::string& name) { return !IsArrayName(name); });
    if (absl::Status status = Read(*names); !status.ok()) return status;
    FindHeld();
  }
  is_loaded_ = true;
  return absl::OkStatus();
}

absl::Status Arrays::Read(const std::vector<std::string>& names) {
  std::vector<hosts::FilePart> parts;
  for (const std::string& name : names)
    parts.push_back({ArrayPaths(runs_directory_, name).list(), 0, kMaxListBytes});
  // One read after the other, not to be bound by what ReadMany holds altogether.
  for (size_t i = 0; i < parts.size(); ++i) {
    const absl::StatusOr<std::string> list = host_.ReadMany({parts[i]}).front();
    if (list.status().code() == absl::StatusCode::kNotFound) continue;
    if (!list.ok()) {
      arrays_.clear();
      places_.clear();
      return list.status();
    }
    Array tasks;
    for (std::string_view line : Lines(*list)) {
      const size_t blank = line.find(' ');
      const auto id = ParseNumber<uint32_t>(line.substr(0, blank));
      const bool has_id = blank != line.npos && id.has_value();
      tasks.push_back({.id = has_id ? *id : static_cast<uint32_t>(tasks.size()),
                       .run = std::string(has_id ? line.substr(blank + 1) : line)});
    }
    Put(names[i], std::move(tasks));
  }
  return absl::OkStatus();
}

void Arrays::FindHeld() {
  for (auto& [name, array] : arrays_) {
    std::vector<std::string> scripts;
    for (const Task& task : array) scripts.push_back(RunPaths(RootOf(task.run), task.run).script());
    const std::vector<absl::StatusOr<hosts::FileInfo>> infos = host_.StatMany(scripts);
    for (size_t i = 0; i < infos.size(); ++i)
      array[i].is_held = infos[i].status().code() != absl::StatusCode::kNotFound;
  }
  std::erase_if(arrays_, [this](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string& name = entry.first;
    if (IsHeld(entry.second)) return false;
    const absl::StatusOr<hosts::FileInfo> list =
        host_.Stat(ArrayPaths(runs_directory_, name).list());
    if (!list.ok() || absl::Now() - list->modify_time < kOldList) return false;
    std::erase_if(places_, [&](const auto& place) { return place.second.array == name; });
    RemoveFiles(name, entry.second.front().run);
    return true;
  });
}

// Files that cannot be removed cost disk space, not correctness.
void Arrays::RemoveFiles(const std::string& name, const std::string& run_key) {
  const ArrayPaths paths = PathsFor(name, run_key);
  host_.RemoveTree(paths.outputs()).IgnoreError();
  host_.RemoveTree(paths.list()).IgnoreError();
  host_.RemoveTree(ArrayPaths(runs_directory_, name).list()).IgnoreError();
}

void Arrays::Put(const std::string& name, Array tasks) {
  for (const Task& task : tasks) places_.emplace(task.run, ArrayPlace{name, task.id});
  arrays_[name] = std::move(tasks);
}

absl::StatusOr<std::string> Arrays::Add(const std::vector<std::string>& run_keys,
                                        const std::vector<uint32_t>& tasks) {
  const std::string name = NewName(run_keys.front());
  const ArrayPaths paths = PathsFor(name, run_keys.front());
  const ArrayPaths own(runs_directory_, name);
  const bool has_copy = own.list() != paths.list();
  if (absl::Status status = host_.MakeManyDirectories(
          {ArrayPaths::Directory(runs_directory_), paths.outputs()}, hosts::kPrivateDirectory);
      !status.ok()) {
    return status;
  }
  std::string list;
  Array array;
  for (size_t i = 0; i < run_keys.size(); ++i) {
    list += fmt::format("{} {}\n", tasks[i], run_keys[i]);
    array.push_back({.id = tasks[i], .run = run_keys[i]});
  }
  if (absl::Status status =
          host_.WriteFile(own.list(), list, {.mode = hosts::kPrivateFile, .sync = true});
      !status.ok()) {
    return status;
  }
  if (has_copy) {
    if (absl::Status status = host_.WriteFile(paths.list(), list, {.mode = hosts::kPrivateFile});
        !status.ok())
      return status;
  }
  const MutexLock lock(mutex_);
  Put(name, std::move(array));
  return name;
}

std::optional<std::string> Arrays::RunAt(std::string_view array, uint32_t task) const {
  const MutexLock lock(mutex_);
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) return std::nullopt;
  const auto at = std::lower_bound(found->second.begin(), found->second.end(), task, IsBefore{});
  if (at == found->second.end() || at->id != task) return std::nullopt;
  return at->run;
}

std::vector<std::string> Arrays::RunsOf(std::string_view array) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> runs;
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) return runs;
  for (const Task& task : found->second) runs.push_back(task.run);
  return runs;
}

std::vector<uint32_t> Arrays::TasksFrom(std::string_view array, uint32_t first) const {
  const MutexLock lock(mutex_);
  std::vector<uint32_t> ids;
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) return ids;
  const Array& tasks = found->second;
  for (auto at = std::lower_bound(tasks.begin(), tasks.end(), first, IsBefore{}); at != tasks.end();
       ++at) {
    ids.push_back(at->id);
  }
  return ids;
}

std::vector<ArrayPlace> Arrays::PlacesOf(std::string_view run_key) const {
  const MutexLock lock(mutex_);
  std::vector<ArrayPlace> places;
  const auto [first, last] = places_.equal_range(run_key);
  for (auto place = first; place != last; ++place) places.push_back(place->second);
  return places;
}

void Arrays::Forget(std::string_view run_key) {
  std::vector<std::string> done;
  {
    const MutexLock lock(mutex_);
    const auto [first, last] = places_.equal_range(run_key);
    for (auto place = first; place != last; ++place) {
      Array& array = arrays_[place->second.array];
      std::lower_bound(array.begin(), array.end(), place->second.task, IsBefore{})->is_held = false;
      if (!IsHeld(array)) done.push_back(place->second.array);
    }
    for (const std::string& name : done) {
      arrays_.erase(name);
      std::erase_if(places_, [&](const auto& place) { return place.second.array == name; });
    }
  }
  for (const std::string& name : done) RemoveFiles(name, std::string(run_key));
}

}  // namespace muster::slurm
