#include "agents/core/log_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::agents {

absl::StatusOr<std::string> LogFile::Read(uint64_t offset, size_t max_bytes) {
  if (remote_ != nullptr) return remote_->Read(path_, offset, max_bytes);
  if (absl::Status status = Open(); !status.ok()) return status;
  std::string bytes;
  if (fd_ < 0) return bytes;
  bytes.resize(max_bytes);
  ssize_t count = 0;
  do {
    count = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    const int error = errno;
    Close();
    return absl::UnavailableError(fmt::format("cannot read {}: {}", path_, std::strerror(error)));
  }
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

absl::StatusOr<uint64_t> LogFile::Size() {
  if (remote_ != nullptr) return remote_->Size(path_);
  if (absl::Status status = Open(); !status.ok()) return status;
  if (fd_ < 0) return uint64_t{0};
  struct stat info {};
  if (::fstat(fd_, &info) != 0) {
    return absl::UnavailableError(fmt::format("cannot stat {}: {}", path_, std::strerror(errno)));
  }
  return static_cast<uint64_t>(info.st_size);
}

absl::Status LogFile::Open() {
  if (fd_ >= 0) return absl::OkStatus();
  // The owner of the run's directory may put anything there; a pipe must not block this thread.
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::FailedPreconditionError(fmt::format("{} is not a plain file", path_));
  }
  fd_ = fd;
  return absl::OkStatus();
}

void LogFile::Close() {
  if (remote_ != nullptr) remote_->Forget(path_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace muster::agents
