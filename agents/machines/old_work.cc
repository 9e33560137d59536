#include "agents/machines/old_work.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "agents/hosts/fd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/record.h"
#include "agents/machines/run_files.h"
#include "agents/machines/run_user.h"
#include "agents/machines/tree_removal.h"

namespace muster::machines {
namespace {

// Returns the last change of a directory's entries, or of its inode.
int64_t ChangedMicroseconds(const std::string& directory) {
  struct stat info {};
  if (lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return INT64_MAX;
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000 + info.st_mtim.tv_nsec / 1000;
}

// Forgotten: what the agent needs of a run is gone. One without a claim may have yet to start in
// files that were laid out for it.
bool IsForgotten(const std::string& directory) {
  for (const char* name : {kSpecFile, kStartedFile, kCancelFile}) {
    if (IsThere(directory + "/" + name)) return false;
  }
  return IsThere(directory + "/" + kClaimFile);
}

// Lists the runs' names, in the order of their turns.
std::error_code ListRuns(const std::string& runs_directory, const std::string& after,
                         std::vector<std::string>* names) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(runs_directory, error), end;
       !error && entry != end; entry.increment(error))
    names->push_back(entry->path().filename().string());
  std::sort(names->begin(), names->end());
  std::rotate(names->begin(), std::upper_bound(names->begin(), names->end(), after), names->end());
  return error;
}

// One round, or a part of it.
class Sweep {
 public:
  Sweep(std::string runs_directory, int64_t before_us, int64_t until_ms)
      : runs_directory_(std::move(runs_directory)), before_us_(before_us), until_ms_(until_ms) {}

  OldWork Go(const std::string& after) {
    std::vector<std::string> names;
    const std::error_code error = ListRuns(runs_directory_, after, &names);
    if (error)
      found_.trouble = "cannot list \"" + runs_directory_ + "\": " + strerror(error.value());
    if (!error && !FindMount()) return std::move(found_);
    for (const std::string& name : names) {
      LookAt(runs_directory_ + "/" + name);
      if (SteadyMilliseconds() < until_ms_) continue;
      found_.last = name;
      // One that only looked, or cannot remove what is next, had better wait.
      found_.is_more = steps_ > 0;
      break;
    }
    return std::move(found_);
  }

 private:
  bool FindMount() {
    const hosts::Fd runs(open(runs_directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::optional<uint64_t> mount = MountOf(runs.get());
    mount_ = mount.value_or(0);
    if (mount.has_value()) return true;
    found_.trouble = "cannot tell what is mounted below \"" + runs_directory_ +
                     "\", so that nothing is removed there; Linux 3.15 or newer tells it in /proc";
    return false;
  }

  void LookAt(const std::string& directory) {
    if (ChangedMicroseconds(directory) >= before_us_ ||
        !(IsThere(directory + "/" + kWorkDirectory) || IsThere(directory + "/" + kUserFile)) ||
        !IsForgotten(directory))
      return;
    const std::optional<RunUser> user = ReadRunUser(directory);
    const TreeRemoval removal =
        user.has_value() ? RemoveUsers(directory, *user) : RemoveWork(directory);
    steps_ += removal.steps;
    if (!removal.trouble.empty()) {
      ++found_.stuck;
      if (found_.trouble.empty()) found_.trouble = removal.trouble;
    }
    if (!removal.is_gone) return;
    ++found_.removed;
    // One whose output was kept only for these files has nothing left.
    if (!IsThere(directory + "/" + kStdoutFile)) RemoveRunLogs(directory);
  }

  TreeRemoval RemoveUsers(const std::string& directory, const RunUser& user) const {
    const int64_t left_ms = std::max<int64_t>(until_ms_ - SteadyMilliseconds(), 1);
    return RemoveUserDirectory(directory, user, static_cast<int>(left_ms));
  }

  TreeRemoval RemoveWork(const std::string& directory) const {
    const hosts::Fd run(open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!run.valid()) return {.trouble = "cannot open \"" + directory + "\": " + strerror(errno)};
    return RemoveTree(run.get(), directory, kWorkDirectory, mount_, until_ms_);
  }

  const std::string runs_directory_;
  const int64_t before_us_;
  const int64_t until_ms_;
  uint64_t mount_ = 0;  // of the runs' directory
  int64_t steps_ = 0;
  OldWork found_;
};

}  // namespace

std::string OldWork::Encode() const {
  Record record;
  record.Add("removed", removed);
  record.Add("more", is_more ? 1 : 0);
  record.Add("last", last);
  record.Add("stuck", stuck);
  record.Add("trouble", trouble);
  return record.Encode();
}

std::optional<OldWork> OldWork::Decode(std::string_view bytes) {
  const std::optional<Record> record = Record::Decode(bytes);
  if (!record.has_value()) return std::nullopt;
  return OldWork{.removed = record->Number("removed"),
                 .is_more = record->Number("more") != 0,
                 .last = record->Text("last"),
                 .stuck = record->Number("stuck"),
                 .trouble = record->Text("trouble")};
}

OldWork RemoveOldWork(const std::string& runs_directory, const std::string& after,
                      int64_t before_us, int64_t until_ms) {
  return Sweep(runs_directory, before_us, until_ms).Go(after);
}

}  // namespace muster::machines
