#include "agents/machines/file_status.h"

#include <cerrno>
#include <system_error>

#include "agents/machines/small_file.h"
#include "fmt/format.h"

namespace muster::machines {

absl::Status FileError(int error, std::string_view what, std::string_view path) {
  return {absl::ErrnoToStatusCode(error),
          fmt::format("cannot {} \"{}\": {}", what, path, std::generic_category().message(error))};
}

absl::StatusOr<std::optional<std::string>> LoadFile(const std::string& path, size_t max_bytes) {
  std::string content;
  const int error = ReadSmallFile(path, max_bytes, &content);
  if (error == ENOENT) return std::nullopt;
  if (error != 0) return FileError(error, "read", path);
  return content;
}

absl::Status StoreFile(const std::string& path, const std::string& content, mode_t mode) {
  int error = ReplaceSmallFile(path, content, mode);
  if (error == 0) error = SyncFile(path);
  return error == 0 ? absl::OkStatus() : FileError(error, "write", path);
}

}  // namespace muster::machines
