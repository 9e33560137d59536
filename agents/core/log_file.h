// One growing file, read from any offset, that need not exist yet.
//
// Owner: the log shipper's thread.
#ifndef MUSTER_AGENTS_CORE_LOG_FILE_H_
#define MUSTER_AGENTS_CORE_LOG_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "agents/core/remote_logs.h"

namespace muster::agents {

class LogFile {
 public:
  // Opens a file on this machine, or one among `remote`, which must outlive this object.
  explicit LogFile(std::string path, RemoteLogs* remote = nullptr)
      : path_(std::move(path)), remote_(remote) {}
  LogFile(LogFile&& other) noexcept
      : path_(std::move(other.path_)), remote_(other.remote_), fd_(std::exchange(other.fd_, -1)) {}
  ~LogFile() { Close(); }

  // Up to `max_bytes` from `offset`; fewer, or none, at the end. A file that does not exist is
  // empty. Errors name the file: it cannot be read, or it is not a plain file (a link or a pipe in
  // its place is not followed).
  absl::StatusOr<std::string> Read(uint64_t offset, size_t max_bytes);

  // Returns its bytes now, or 0 if it does not exist. Errors as for Read.
  absl::StatusOr<uint64_t> Size();

  // Gives the descriptor back; the next Read opens the file anew, and so sees what a file server
  // has held back. Never open if it is remote.
  void Close();
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  absl::Status Open();

  std::string path_;
  RemoteLogs* remote_;
  int fd_ = -1;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LOG_FILE_H_
