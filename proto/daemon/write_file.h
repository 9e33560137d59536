// Writing small files whole.
#ifndef MUSTER_PROTO_DAEMON_WRITE_FILE_H_
#define MUSTER_PROTO_DAEMON_WRITE_FILE_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Puts a file with these bytes and this mode into the place of what is there, if anything, so that
// a reader sees the old bytes or the new ones, also after a crash. An OK means that they are on
// disk. Errors name the path.
absl::Status WriteFileWhole(const std::string& path, std::string_view bytes, mode_t mode);

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_WRITE_FILE_H_
