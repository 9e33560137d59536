// The file calls of LocalHost.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include "agents/hosts/fd.h"
#include "agents/hosts/file_error.h"
#include "agents/hosts/local_host.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Two writers of one file, in whatever processes, must not share a temporary file.
std::string TemporaryName(const std::string& path) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}.{:016x}.tmp", path, random());
}

absl::Status WriteAll(int fd, std::string_view content, std::string_view path) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "write", path);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status WriteNewFile(const std::string& path, std::string_view content,
                          const WriteOptions& options) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return FileError(errno, "create", path);
  if (fchmod(fd.get(), options.mode) != 0) return FileError(errno, "set the mode of", path);
  if (absl::Status status = WriteAll(fd.get(), content, path); !status.ok()) return status;
  if (options.sync && fsync(fd.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "open", path);
  if (fsync(fd.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

absl::StatusOr<Fd> OpenForReading(const std::string& path, int flags = 0) {
  // O_NONBLOCK: a named pipe without a writer must not hang the agent.
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  if (!fd.valid() && errno == ELOOP && (flags & O_NOFOLLOW) != 0) return NotRegularError(path);
  if (!fd.valid()) return FileError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) {
    return NotRegularError(path);
  }
  return fd;
}

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t max_bytes,
                                   const std::string& path) {
  // The size is a hint only: files grow, and those in /proc have none.
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(errno, "stat", path);
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  size_t chunk = std::min<uint64_t>(max_bytes, size > offset ? size - offset + 1 : 4096);
  std::string data;
  while (data.size() < max_bytes) {
    const size_t have = data.size();
    data.resize(std::min(max_bytes, have + chunk));
    const ssize_t n =
        pread(fd, data.data() + have, data.size() - have, static_cast<off_t>(offset + have));
    data.resize(have + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "read", path);
    if (n == 0) break;
    chunk = 64 << 10;
  }
  return data;
}

FileType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  if (S_ISLNK(mode)) return FileType::kSymlink;
  return FileType::kOther;
}

absl::Status MakeWithParents(const std::string& name, uint32_t mode) {
  size_t end = 0;
  do {
    end = name.find('/', end + 1);
    const std::string prefix = name.substr(0, end);
    if (mkdir(prefix.c_str(), mode) == 0) {
      if (chmod(prefix.c_str(), mode) != 0) return FileError(errno, "set the mode of", prefix);
      continue;
    }
    const int error = errno;
    struct stat info;
    if (stat(prefix.c_str(), &info) != 0) {
      // It is there, and cannot be looked at: a mount whose server is away, say.
      const bool is_there = error == EEXIST && errno != ENOENT;
      return is_there ? FileError(errno, "look at", prefix)
                      : FileError(error, "make the directory", prefix);
    }
    if (!S_ISDIR(info.st_mode)) return FileError(ENOTDIR, "make the directory", prefix);
  } while (end != std::string::npos);
  return absl::OkStatus();
}

}  // namespace

std::string LocalHost::Name() const { return "this machine"; }

absl::Status LocalHost::WriteFile(std::string_view path, std::string_view content,
                                  const WriteOptions& options) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  const std::string target(path);
  const std::string temporary = TemporaryName(target);
  absl::Status status = WriteNewFile(temporary, content, options);
  if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) {
    status = FileError(errno, "replace", target);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return options.sync ? SyncDirectory(DirectoryOf(target)) : absl::OkStatus();
}

absl::StatusOr<std::string> LocalHost::ReadFileRange(std::string_view path, uint64_t offset,
                                                     size_t max_bytes) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = CheckRange(offset, max_bytes); !status.ok()) return status;
  const std::string name(path);
  const absl::StatusOr<Fd> fd = OpenForReading(name);
  if (!fd.ok()) return fd.status();
  return ReadAt(fd->get(), offset, max_bytes, name);
}

absl::StatusOr<std::string> LocalHost::ReadFile(std::string_view path, size_t max_bytes) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = CheckRange(0, max_bytes); !status.ok()) return status;
  const std::string name(path);
  const absl::StatusOr<Fd> fd = OpenForReading(name);
  if (!fd.ok()) return fd.status();
  absl::StatusOr<std::string> data = ReadAt(fd->get(), 0, max_bytes + 1, name);
  if (data.ok() && data->size() > max_bytes) {
    return FileTooLongError(path, max_bytes);
  }
  return data;
}

absl::Status LocalHost::MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) {
  for (const std::string& path : paths) {
    if (absl::Status status = CheckPath(path); !status.ok()) return status;
    if (absl::Status status = MakeWithParents(path, mode); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<FileInfo> LocalHost::Stat(std::string_view path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  const std::string name(path);
  struct stat info;
  if (lstat(name.c_str(), &info) != 0) return FileError(errno, "stat", path);
  return FileInfo{.type = TypeOf(info.st_mode),
                  .size = static_cast<uint64_t>(info.st_size),
                  .mode = info.st_mode & 07777,
                  .modify_time = absl::TimeFromTimespec(info.st_mtim)};
}

absl::StatusOr<std::vector<std::string>> LocalHost::ListDirectory(std::string_view path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  const std::string name(path);
  std::error_code error;
  std::filesystem::directory_iterator entry(name, error);
  std::vector<std::string> names;
  while (!error && entry != std::filesystem::directory_iterator()) {
    if (names.size() == kMaxDirectoryEntries) {
      return DirectoryTooLongError(path);
    }
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) return FileError(error.value(), "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status LocalHost::RemoveTree(std::string_view path) {
  if (absl::Status status = CheckRemovable(path); !status.ok()) return status;
  std::error_code error;
  std::filesystem::remove_all(std::string(path), error);
  if (error) return FileError(error.value(), "remove", path);
  return absl::OkStatus();
}

absl::Status LocalHost::RemoveManyTrees(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (absl::Status status = RemoveTree(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LocalHost::RemoveEmptyDirectories(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (absl::Status status = CheckPath(path); !status.ok()) return status;
    rmdir(path.c_str());
  }
  return absl::OkStatus();
}

std::vector<absl::StatusOr<FileInfo>> LocalHost::StatMany(const std::vector<std::string>& paths) {
  std::vector<absl::StatusOr<FileInfo>> infos;
  for (const std::string& path : paths) infos.push_back(Stat(path));
  return infos;
}

std::vector<absl::StatusOr<std::string>> LocalHost::ReadMany(const std::vector<FilePart>& parts) {
  const absl::Status refused = CheckParts(parts);
  std::vector<absl::StatusOr<std::string>> contents;
  for (const FilePart& part : parts) {
    absl::Status status = refused.ok() ? CheckPath(part.path) : refused;
    if (!status.ok()) {
      contents.push_back(status);
      continue;
    }
    const absl::StatusOr<Fd> fd = OpenForReading(part.path, O_NOFOLLOW);
    contents.push_back(fd.ok() ? ReadAt(fd->get(), part.offset, part.max_bytes, part.path)
                               : fd.status());
  }
  return contents;
}

absl::Status LocalHost::WriteMany(const std::vector<NewFile>& files) {
  for (const NewFile& file : files) {
    if (absl::Status status = WriteFile(file.path, file.content, file.options); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::hosts
