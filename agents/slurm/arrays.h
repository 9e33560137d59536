// Handles the runs of a job array that were submitted together, as an array of Slurm's: which
// array, and which of its tasks.
//
// A list of an array's runs is in run_dir/arrays, on disk before its submission; so whoever meets a
// task knows its run, and whoever looks for a run knows the arrays that it may be in, whatever
// became of the agent or of Slurm's answer. An array's name is its first run's key and a random
// part: no two submissions have the same.
#ifndef MUSTER_AGENTS_SLURM_ARRAYS_H_
#define MUSTER_AGENTS_SLURM_ARRAYS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "sync/mutex.h"

namespace muster::slurm {

// The paths of the files of one array.
class ArrayPaths {
 public:
  ArrayPaths(std::string_view runs_directory, std::string_view name)
      : list_(Directory(runs_directory) + "/" + std::string(name)) {}

  // Its tasks, one a line, by their ids: "ID KEY", where the key is the run's. Earlier releases
  // wrote the key alone, and numbered the lines from 0.
  const std::string& list() const { return list_; }
  // Returns the files that Slurm writes for each task, each named by its id.
  std::string outputs() const { return list_ + ".out"; }
  std::string output(uint32_t task) const { return outputs() + "/" + std::to_string(task); }

  static std::string Directory(std::string_view runs_directory) {
    return std::string(runs_directory) + "/arrays";
  }

 private:
  std::string list_;
};

// Returns whether the name is one of Muster's arrays.
bool IsArrayName(std::string_view name);

struct ArrayPlace {
  std::string array;  // its name
  uint32_t task = 0;  // its id in the array

  friend bool operator==(const ArrayPlace&, const ArrayPlace&) = default;
};

// Any thread may use it. Errors are those of the host's files.
class Arrays {
 public:
  // `root_of` returns the directory that has the files of a run, and for its jobs a copy of the
  // list; null stands for `runs_directory` itself. `host` must outlive this object.
  Arrays(std::string runs_directory, hosts::Host* host,
         std::function<std::string(const std::string& run_key)> root_of = nullptr)
      : runs_directory_(std::move(runs_directory)), host_(*host), root_of_(std::move(root_of)) {}

  // Reads the lists. Call it until it returns OK, before the questions below.
  absl::Status Load();
  // Writes the list of a new array of at most contract::kMaxArrayTasks runs to the disk, and
  // returns the array's name. `tasks` are the ids of its tasks, rising, in the order of the runs.
  absl::StatusOr<std::string> Add(const std::vector<std::string>& run_keys,
                                  const std::vector<uint32_t>& tasks);

  // Returns the paths of the files that the jobs of the array see, of which the run is one.
  ArrayPaths PathsFor(std::string_view array, const std::string& run_key) const {
    return {RootOf(run_key), array};
  }

  // Returns the run of a task; nothing if no list has it.
  std::optional<std::string> RunAt(std::string_view array, uint32_t task) const;
  // Returns its runs; none if there is no such list.
  std::vector<std::string> RunsOf(std::string_view array) const;
  // Returns the ids of its tasks from this one on; none if there is no such list.
  std::vector<uint32_t> TasksFrom(std::string_view array, uint32_t first) const;
  // Returns all arrays with which the run was ever submitted.
  std::vector<ArrayPlace> PlacesOf(std::string_view run_key) const;

  // The run is not asked for any more. With the last of its runs the files of an array go.
  void Forget(std::string_view run_key);

 private:
  struct Task {
    uint32_t id = 0;
    std::string run;
    bool is_held = true;  // not forgotten
  };
  // Tasks by their ids.
  using Array = std::vector<Task>;

  absl::Status Read(const std::vector<std::string>& names) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string RootOf(const std::string& run_key) const {
    return root_of_ == nullptr ? runs_directory_ : root_of_(run_key);
  }
  // Finds, for the lists of an earlier process, the runs that still have their files.
  void FindHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFiles(const std::string& name, const std::string& run_key);
  void Put(const std::string& name, Array tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string runs_directory_;
  hosts::Host& host_;
  const std::function<std::string(const std::string& run_key)> root_of_;

  mutable Mutex mutex_;
  bool is_loaded_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Array, std::less<>> arrays_ ABSL_GUARDED_BY(mutex_);  // by name
  std::multimap<std::string, ArrayPlace, std::less<>> places_
      ABSL_GUARDED_BY(mutex_);  // by run key
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_ARRAYS_H_
