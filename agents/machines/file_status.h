// The agent's small files, with errors that say what could not be done with which file.
#ifndef MUSTER_AGENTS_MACHINES_FILE_STATUS_H_
#define MUSTER_AGENTS_MACHINES_FILE_STATUS_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::machines {

// Makes an error of an errno value, not 0.
absl::Status FileError(int error, std::string_view what, std::string_view path);

// Returns the content; nothing if there is no such file.
absl::StatusOr<std::optional<std::string>> LoadFile(const std::string& path, size_t max_bytes);

// Makes or replaces a small file; content and name are on disk when it returns OK.
absl::Status StoreFile(const std::string& path, const std::string& content, mode_t mode);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_FILE_STATUS_H_
