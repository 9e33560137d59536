#include "broker/disk/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::disk {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

int FileDescriptor::Release() { return std::exchange(fd_, -1); }

absl::Status SystemError(int error_number, std::string_view what) {
  const std::string message =
      fmt::format("{}: {}", what, std::generic_category().message(error_number));
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return contract::Error(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                             message + "; make room on the broker's disk");
    case ENOENT:
      return absl::NotFoundError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<FileDescriptor> OpenFile(const std::filesystem::path& path, int flags) {
  constexpr mode_t kOwnerOnly = 0600;
  const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (fd < 0) return SystemError(errno, fmt::format("open {}", path.native()));
  return FileDescriptor(fd);
}

absl::Status WriteAt(int fd, std::string_view data, uint64_t offset, std::string_view what,
                     size_t* written) {
  *written = 0;
  while (*written < data.size()) {
    const ssize_t count = pwrite(fd, data.data() + *written, data.size() - *written,
                                 static_cast<off_t>(offset + *written));
    if (count > 0) {
      *written += static_cast<size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      return SystemError(count == 0 ? ENOSPC : errno, fmt::format("write to {}", what));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t max_bytes,
                                   std::string_view what) {
  std::string data(max_bytes, '\0');
  size_t got = 0;
  while (got < max_bytes) {
    const ssize_t count =
        pread(fd, data.data() + got, max_bytes - got, static_cast<off_t>(offset + got));
    if (count == 0) break;
    if (count > 0) {
      got += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      return SystemError(errno, fmt::format("read from {}", what));
    }
  }
  data.resize(got);
  return data;
}

absl::Status SyncData(int fd, std::string_view what) {
  return fdatasync(fd) == 0 ? absl::OkStatus() : SystemError(errno, fmt::format("sync {}", what));
}

absl::Status SyncDirectory(const std::filesystem::path& directory) {
  const auto fd = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return fd.status();
  return fsync(fd->get()) == 0 ? absl::OkStatus()
                               : SystemError(errno, fmt::format("sync {}", directory.native()));
}

}  // namespace muster::disk
