#include "broker/store/sqlite/create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "broker/store/sqlite/database.h"
#include "broker/store/sqlite/schema.h"
#include "contract/errors.h"

namespace muster::store {
namespace {

// Returns nothing if there is no such file.
std::optional<int64_t> SizeOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_size;
}

absl::Status Damaged(const std::string& path, std::string_view what) {
  return contract::Error(
      absl::StatusCode::kDataLoss, "DATABASE_DAMAGED",
      fmt::format("{} {}; put back a backup, or choose another state directory to begin anew", path,
                  what));
}

absl::Status Errno(std::string_view doing, const std::string& path) {
  return contract::Error(absl::StatusCode::kInternal, "STATE_DIRECTORY",
                         fmt::format("{}: could not {}: {}", path, doing, std::strerror(errno)));
}

absl::Status SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Errno("open it", directory);
  const int result = fsync(fd);
  absl::Status status = result == 0 ? absl::OkStatus() : Errno("sync it", directory);
  close(fd);
  return status;
}

// Only the owner may read it, because specs may hold secrets. SQLite gives its other files the same
// mode.
absl::Status MakeEmpty(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Errno("make it", path);
  close(fd);
  return absl::OkStatus();
}

// Leaves a complete, synced file without a journal behind.
absl::Status Build(const std::string& path, const SqliteOptions& options) {
  if (absl::Status status = MakeEmpty(path); !status.ok()) return status;
  auto database = OpenDatabase(path, SQLITE_OPEN_READWRITE, options.vfs);
  if (!database.ok()) return database.status();
  // These two settings hold for the life of the file.
  absl::Status status =
      (*database)->Execute("PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL;");
  if (status.ok()) status = CreateSchema(**database);
  return status;
}

}  // namespace

std::string DatabasePath(const std::string& directory) { return directory + "/broker.db"; }

absl::Status CreateIfMissing(const SqliteOptions& options) {
  const std::string path = DatabasePath(options.directory);
  if (std::optional<int64_t> size = SizeOf(path)) {
    return *size > 0 ? absl::OkStatus() : Damaged(path, "is empty");
  }
  if (SizeOf(path + "-wal").value_or(0) > 0) {
    return Damaged(path, "is gone, though its write-ahead log is still there");
  }
  const std::string unfinished = path + ".new";
  std::remove(unfinished.c_str());
  std::remove((unfinished + "-journal").c_str());
  if (absl::Status status = Build(unfinished, options); !status.ok()) return status;
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) return Errno("rename it", unfinished);
  return SyncDirectory(options.directory);
}

}  // namespace muster::store
