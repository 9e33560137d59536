// System calls on files, with absl::Status. Any thread.
#ifndef MUSTER_BROKER_DISK_FILES_H_
#define MUSTER_BROKER_DISK_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::disk {

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }

 private:
  int Release();

  int fd_ = -1;
};

// RESOURCE_EXHAUSTED with ErrorInfo DISK_FULL for a full disk or quota, NOT_FOUND for a missing
// file, INTERNAL with the system's words for the rest. `what` says what failed: "write to /x/y".
absl::Status SystemError(int error_number, std::string_view what);

// `flags` as for open(2); new files are readable by their owner alone.
absl::StatusOr<FileDescriptor> OpenFile(const std::filesystem::path& path, int flags);
// `what`, in the three functions below, is the file in an error's words: "the log archive".
// `written` is set even with an error, which may come after some bytes.
absl::Status WriteAt(int fd, std::string_view data, uint64_t offset, std::string_view what,
                     size_t* written);
// Returns up to `max_bytes`; fewer at the end of the file.
absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t max_bytes,
                                   std::string_view what);
absl::Status SyncData(int fd, std::string_view what);
// Makes names in the directory durable.
absl::Status SyncDirectory(const std::filesystem::path& directory);

}  // namespace muster::disk

#endif  // MUSTER_BROKER_DISK_FILES_H_
