#include "agents/files/lay_out.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "agents/files/disk_room.h"
#include "agents/files/tree_modes.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/file_error.h"

namespace muster::uploads {
namespace {

using hosts::Fd;
using hosts::FileError;

class Layout {
 public:
  Layout(FileCache* cache, const std::string& directory, const std::function<bool()>& is_unwanted)
      : cache_(cache), directory_(directory), is_unwanted_(is_unwanted) {}

  absl::Status Fill(const v1::FileTree& tree) const {
    for (const v1::FileTreeEntry& entry : tree.entries()) {
      absl::Status status = CheckWanted();
      if (!status.ok()) return status;
      if (entry.kind() == v1::FILE_KIND_DIRECTORY) status = MakeDirectories(entry.path() + "/");
      if (entry.kind() == v1::FILE_KIND_FILE) status = MakeFile(entry);
      if (!status.ok()) return status;
    }
    for (const v1::FileTreeEntry& entry : tree.entries()) {
      if (entry.kind() != v1::FILE_KIND_SYMLINK) continue;
      if (absl::Status status = MakeLink(entry); !status.ok()) return status;
    }
    return Sync();
  }

 private:
  std::string PathOf(const std::string& path) const { return directory_ + "/" + path; }

  absl::Status CheckWanted() const {
    return is_unwanted_() ? absl::CancelledError("nobody wants the files any more")
                          : absl::OkStatus();
  }

  // Makes the directories above the last '/' of the path.
  absl::Status MakeDirectories(const std::string& path) const {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string directory = PathOf(path.substr(0, slash));
      if (mkdir(directory.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
        return FileError(errno, "make the directory", directory);
    }
    return absl::OkStatus();
  }

  absl::Status MakeFile(const v1::FileTreeEntry& entry) const {
    if (absl::Status status = MakeDirectories(entry.path()); !status.ok()) return status;
    const std::string path = PathOf(entry.path());
    const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return FileError(errno, "create", path);
    const auto write_all = [&](std::string_view bytes) -> absl::Status {
      if (absl::Status wanted = CheckWanted(); !wanted.ok()) return wanted;
      while (!bytes.empty()) {
        const ssize_t n = write(fd.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return FileError(errno, "write", path);
        bytes.remove_prefix(static_cast<size_t>(n));
      }
      return absl::OkStatus();
    };
    if (absl::Status s = cache_->Read(entry.sha256(), entry.size_bytes(), write_all); !s.ok())
      return s;
    if (fchmod(fd.get(), ModeOf(entry)) != 0) return FileError(errno, "set the mode of", path);
    return absl::OkStatus();
  }

  absl::Status MakeLink(const v1::FileTreeEntry& entry) const {
    if (absl::Status status = MakeDirectories(entry.path()); !status.ok()) return status;
    const std::string path = PathOf(entry.path());
    if (symlink(entry.link_target().c_str(), path.c_str()) == 0) return absl::OkStatus();
    return FileError(errno, "make the link", path);
  }

  // One call serves all: thousands of files, each waited for alone, would take minutes.
  absl::Status Sync() const {
    const Fd fd(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid() || syncfs(fd.get()) != 0) return FileError(errno, "sync", directory_);
    return absl::OkStatus();
  }

  FileCache* const cache_;
  const std::string& directory_;
  const std::function<bool()>& is_unwanted_;
};

}  // namespace

absl::Status LayOut(const LocalFiles& files, FileCache* cache, const std::string& directory,
                    const std::function<bool()>& is_unwanted) {
  const std::string parent = std::filesystem::path(directory).parent_path();
  absl::Status room = cache->MakeRoom(Occupied(files.tree), parent, "a copy");
  if (!room.ok()) return room;
  if (mkdir(directory.c_str(), kDirectoryMode) != 0)
    return FileError(errno, "make the directory", directory);
  absl::Status status = Layout(cache, directory, is_unwanted).Fill(files.tree);
  if (!status.ok()) {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  return status;
}

}  // namespace muster::uploads
