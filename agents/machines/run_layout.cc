#include "agents/machines/run_layout.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "agents/files/disk_room.h"
#include "agents/files/host_trees.h"
#include "agents/files/lay_out.h"
#include "agents/machines/file_status.h"
#include "agents/machines/results_name.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/user_host.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

constexpr mode_t kResultsMode = 0755;

// Makes the directory for results of a job that names no other one.
absl::Status MakeResults(const std::string& work) {
  const std::string path =
      work + "/" + std::filesystem::path(kResultsDirectory).filename().string();
  if (mkdir(path.c_str(), kResultsMode) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat info {};
  if (error != EEXIST || lstat(path.c_str(), &info) != 0)
    return FileError(error, "make the directory", path);
  if (S_ISDIR(info.st_mode)) return absl::OkStatus();
  return ResultsNameIsTaken();
}

}  // namespace

absl::Status RunLayout::Make(FilesLane::Task* task, const FilesLane::Turn& turn) {
  const RunDirectory run(runs_directory_ + "/" + task->run_key);
  const absl::StatusOr<RunFiles> records = run.Read();
  if (!records.ok()) return absl::UnavailableError(records.status().message());
  const RunUser user = records->spec.has_value() ? records->spec->user : RunUser{};
  if (!user.IsOther() && task->bytes > 0 &&
      !files_->cache()->MayHaveRoom(task->bytes, layouts_directory_)) {
    return uploads::NoRoom("a copy", task->bytes, layouts_directory_,
                           files_->cache()->keep_free_bytes());
  }
  const absl::StatusOr<uploads::LocalFiles> files = files_->Fetch(task->brought, turn.patience());
  if (!files.ok()) return files.status();
  task->bytes = uploads::Occupied(files->tree);
  const MutexLock lock(copying_);
  const absl::Status status =
      user.IsOther() ? CopyAs(user, *files, *task, turn) : Copy(*files, *task, turn);
  // Somebody has removed a directory: that is no fault of the job.
  return absl::IsNotFound(status) ? absl::UnavailableError(status.message()) : status;
}

absl::Status RunLayout::CopyAs(const RunUser& user, const uploads::LocalFiles& files,
                               const FilesLane::Task& task, const FilesLane::Turn& turn) {
  if (turn.IsOver()) return absl::CancelledError("nobody wants the files any more");
  UserHost host(user);
  const std::string users = std::filesystem::path(user.directory).parent_path();
  const std::string work = fmt::format("{}/{}", user.directory, kWorkDirectory);
  absl::Status status = uploads::HostTrees(&host, users + "/files", files_->cache())
                            .LayOut(files, work, uploads::kFetchPatience);
  if (status.ok() && task.makes_results) {
    const absl::Status made =
        host.MakeDirectories(fmt::format("{}/{}", user.directory, kResultsDirectory), kResultsMode);
    if (!made.ok() && !absl::IsUnavailable(made)) return ResultsNameIsTaken();
    status = made;
  }
  // The user was good when the run was taken, so that a refusal now passes by as a slow host does.
  if (absl::IsDeadlineExceeded(status) || absl::IsPermissionDenied(status))
    return absl::UnavailableError(status.message());
  if (status.ok()) status = turn.Conclude([] { return absl::OkStatus(); });
  return status;
}

absl::Status RunLayout::Copy(const uploads::LocalFiles& files, const FilesLane::Task& task,
                             const FilesLane::Turn& turn) {
  if (turn.IsOver()) return absl::CancelledError("nobody wants the files any more");
  std::error_code ignored;
  std::filesystem::create_directory(layouts_directory_, ignored);
  // An earlier turn for the same run, which nobody wants any more, may still be at work.
  const std::string layout = fmt::format("{}/{}.{}", layouts_directory_, task.run_key, task.ticket);
  absl::Status status =
      uploads::LayOut(files, files_->cache(), layout, [&] { return turn.IsOver(); });
  if (status.ok() && task.makes_results) status = MakeResults(layout);
  if (status.ok()) {
    status = turn.Conclude(
        [&] { return RunDirectory(runs_directory_ + "/" + task.run_key).TakeWork(layout); });
  }
  if (!status.ok()) std::filesystem::remove_all(layout, ignored);
  return status;
}

}  // namespace muster::machines
