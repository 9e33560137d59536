// Turns the files of a run of the agent's own machine into its working directory: fetched, laid out
// aside, and moved there as a whole.
#ifndef MUSTER_AGENTS_MACHINES_RUN_LAYOUT_H_
#define MUSTER_AGENTS_MACHINES_RUN_LAYOUT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "agents/files/job_files.h"
#include "agents/machines/files_lane.h"
#include "agents/machines/run_user.h"
#include "sync/mutex.h"

namespace muster::machines {

// Any thread may use it.
class RunLayout {
 public:
  // The directories are on the same file system. `files` outlives this.
  RunLayout(uploads::JobFiles* files, std::string layouts_directory, std::string runs_directory)
      : files_(files),
        layouts_directory_(std::move(layouts_directory)),
        runs_directory_(std::move(runs_directory)) {}

  // Implements FilesLane::Work.
  absl::Status Make(FilesLane::Task* task, const FilesLane::Turn& turn);

 private:
  // Does the same as the user, in the user's directory of the run.
  absl::Status CopyAs(const RunUser& user, const uploads::LocalFiles& files,
                      const FilesLane::Task& task, const FilesLane::Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(copying_);
  absl::Status Copy(const uploads::LocalFiles& files, const FilesLane::Task& task,
                    const FilesLane::Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(copying_);

  uploads::JobFiles* const files_;
  const std::string layouts_directory_;
  const std::string runs_directory_;
  // One copy at a time, as each is measured against what the one before left of the disk.
  Mutex copying_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_LAYOUT_H_
