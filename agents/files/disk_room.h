// Computes the disk space that files take, and makes the error if they do not fit.
//
// Pure; any thread.
#ifndef MUSTER_AGENTS_FILES_DISK_ROOM_H_
#define MUSTER_AGENTS_FILES_DISK_ROOM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/file_tree.pb.h"

namespace muster::uploads {

// Returns the space that a file takes at least: file systems give whole blocks.
uint64_t Occupied(uint64_t size_bytes);
// Returns the space of all entries of a tree.
uint64_t Occupied(const v1::FileTree& tree);

// Makes the RESOURCE_EXHAUSTED of something ("a file") that does not fit into a directory
// ("/state/files").
absl::Status NoRoom(std::string_view what, uint64_t size_bytes, std::string_view directory,
                    uint64_t keep_free_bytes);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_DISK_ROOM_H_
