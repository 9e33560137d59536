#include "agents/machines/tree_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "agents/hosts/fd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/record.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

// At most this many directories are open at a time, each by one descriptor: a tenth of what a
// process may have by default. Deeper directories come to the top first.
constexpr size_t kMaxOpenDirectories = 100;
// Bounds the kernel's information about an open file, which is some lines.
constexpr size_t kMaxFileInfoBytes = 64 << 10;
// Bytes of a path that is told.
constexpr size_t kMaxToldPathBytes = 4096;

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

Directory NoDirectory() { return {nullptr, closedir}; }

bool IsDirectory(int parent, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat info {};
  return fstatat(parent, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

const char* RemedyOf(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "let the agent's user remove it (chattr -i, chown)";
    case EBUSY:
      return "end what uses it, or unmount it";
    case ENOTEMPTY:
    case EEXIST:
      return "end what still writes there";
    case EROFS:
      return "have its file system writable";
    default:
      return "remove it by hand";
  }
}

class Remover {
 public:
  Remover(std::string path, uint64_t mount, int64_t until_ms)
      : path_(std::move(path)), mount_(mount), until_ms_(until_ms) {}

  TreeRemoval Remove(int parent, const std::string& name) {
    struct stat info {};
    const bool is_there = fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    found_.is_gone = RemoveEntry(parent, name, is_there && S_ISDIR(info.st_mode));
    return std::move(found_);
  }

 private:
  // Returns whether it is not there any more.
  bool RemoveEntry(int parent, const std::string& name, bool is_directory) {
    const size_t above = path_.size();
    path_ += "/" + name;
    const bool is_gone = is_directory ? RemoveDirectory(parent, name) : Unlink(parent, name, 0);
    path_.resize(above);
    if (SteadyMilliseconds() >= until_ms_) found_.is_late = true;
    return is_gone;
  }

  bool Unlink(int parent, const std::string& name, int flags) {
    if (unlinkat(parent, name.c_str(), flags) != 0) return errno == ENOENT || Fail(errno);
    ++found_.steps;
    return true;
  }

  bool RemoveDirectory(int parent, const std::string& name) {
    const hosts::Fd found = Grasp(parent, name);
    if (!found.valid()) return false;
    if (depth_ == kMaxOpenDirectories) return BringUp(parent, name, found.get());
    const Directory directory = Open(found.get());
    if (directory == nullptr) return false;
    if (depth_ == 0) top_ = dirfd(directory.get());
    ++depth_;
    const bool is_empty = Empty(directory.get());
    --depth_;
    return is_empty && Unlink(parent, name, AT_REMOVEDIR);
  }

  // Some file systems pass over entries while others are removed, and the top gets new ones.
  bool Empty(DIR* directory) {
    while (true) {
      const int64_t before = found_.steps;
      const bool is_empty = RemoveEntries(directory);
      if (found_.is_late) return false;
      if (found_.steps == before) return is_empty;
      if (!is_empty && depth_ > 1) return false;
      rewinddir(directory);
    }
  }

  // Returns whether none of those that were read is there any more.
  bool RemoveEntries(DIR* directory) {
    bool is_empty = true;
    while (true) {
      errno = 0;
      const dirent* entry = readdir(directory);
      if (entry == nullptr) return errno == 0 ? is_empty : Fail(errno);
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const int parent = dirfd(directory);
      is_empty = RemoveEntry(parent, name, IsDirectory(parent, *entry)) && is_empty;
      if (found_.is_late) return false;
    }
  }

  // Returns a descriptor of a directory on the mount, only to be looked at. Its owner, who is the
  // caller, may have closed it, as package caches are, so it is opened for the owner.
  hosts::Fd Grasp(int parent, const std::string& name) {
    hosts::Fd found(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!found.valid()) {
      Fail(errno);
      return {};
    }
    struct stat info {};
    if (MountOf(found.get()) != mount_) {
      Say("something is mounted there", "unmount it, its files stay");
    } else if (fstat(found.get(), &info) != 0) {
      Fail(errno);
    } else {
      const std::string self = "/proc/self/fd/" + std::to_string(found.get());
      if ((info.st_mode & S_IRWXU) == S_IRWXU || chmod(self.c_str(), S_IRWXU) == 0) return found;
      Fail(errno);
    }
    return {};
  }

  Directory Open(int found) {
    const int fd = openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    Directory directory(fd < 0 ? nullptr : fdopendir(fd), closedir);
    if (directory != nullptr) return directory;
    Fail(errno);
    if (fd >= 0) close(fd);
    return NoDirectory();
  }

  // Moves a directory that is too deep to be reached to the top, under a name that is its own.
  bool BringUp(int parent, const std::string& name, int found) {
    struct stat info {};
    if (fstat(found, &info) != 0) return Fail(errno);
    const std::string up = "muster-old-work." + std::to_string(info.st_ino);
    if (renameat(parent, name.c_str(), top_, up.c_str()) != 0) return Fail(errno);
    ++found_.steps;
    return true;
  }

  bool Fail(int error) {
    Say(strerror(error), RemedyOf(error));
    return false;
  }

  void Say(const std::string& why, const std::string& remedy) {
    if (!found_.trouble.empty()) return;
    found_.trouble =
        "cannot remove \"" + path_.substr(0, kMaxToldPathBytes) + "\": " + why + "; " + remedy;
  }

  std::string path_;  // of what is looked at
  const uint64_t mount_;
  const int64_t until_ms_;
  size_t depth_ = 0;
  int top_ = -1;  // the directory at depth 0, while it is open
  TreeRemoval found_;
};

}  // namespace

std::string TreeRemoval::Encode() const {
  Record record;
  record.Add("gone", is_gone ? 1 : 0);
  record.Add("late", is_late ? 1 : 0);
  record.Add("steps", steps);
  record.Add("trouble", trouble);
  return record.Encode();
}

std::optional<TreeRemoval> TreeRemoval::Decode(std::string_view bytes) {
  const std::optional<Record> record = Record::Decode(bytes);
  if (!record.has_value()) return std::nullopt;
  return TreeRemoval{.is_gone = record->Number("gone") != 0,
                     .is_late = record->Number("late") != 0,
                     .steps = record->Number("steps"),
                     .trouble = record->Text("trouble")};
}

std::optional<uint64_t> MountOf(int file) {
  std::string info;
  const std::string path = "/proc/self/fdinfo/" + std::to_string(file);
  if (ReadSmallFile(path, kMaxFileInfoBytes, &info) != 0) return std::nullopt;
  constexpr std::string_view kName = "\nmnt_id:";
  const size_t at = info.find(kName);
  if (at == std::string::npos) return std::nullopt;
  return strtoull(info.c_str() + at + kName.size(), nullptr, 10);
}

TreeRemoval RemoveTree(int directory, const std::string& path, const std::string& name,
                       uint64_t mount, int64_t until_ms) {
  return Remover(path, mount, until_ms).Remove(directory, name);
}

}  // namespace muster::machines
