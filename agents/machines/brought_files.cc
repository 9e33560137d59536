#include "agents/machines/brought_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "agents/machines/run_records.h"

namespace muster::machines {
namespace {

bool IsSameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

void RemoveUntouched(const std::string& run_directory) {
  const std::string mark = run_directory + "/" + kBroughtFile;
  struct stat marked {};
  if (lstat(mark.c_str(), &marked) != 0) return;
  std::vector<std::string> directories;  // each before what is in it
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(run_directory + "/" + kWorkDirectory, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      directories.push_back(path);
    } else if (IsSameTime(info.st_mtim, marked.st_mtim)) {
      unlink(path.c_str());
    }
  }
  // rmdir leaves alone what is not empty.
  for (auto directory = directories.rbegin(); directory != directories.rend(); ++directory)
    rmdir(directory->c_str());
  unlink(mark.c_str());
}

}  // namespace muster::machines
