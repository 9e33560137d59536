// Reading small files whole.
#ifndef MUSTER_PROTO_DAEMON_READ_FILE_H_
#define MUSTER_PROTO_DAEMON_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Returns the bytes of a file; "-" is standard input. INVALID_ARGUMENT: more than max_bytes, or a
// directory; NOT_FOUND, PERMISSION_DENIED and so on: it cannot be read. Messages name the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_READ_FILE_H_
