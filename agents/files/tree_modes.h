// The permissions of files and directories that a job brings along.
#ifndef MUSTER_AGENTS_FILES_TREE_MODES_H_
#define MUSTER_AGENTS_FILES_TREE_MODES_H_

#include <cstdint>

#include "muster/v1/file_tree.pb.h"

namespace muster::uploads {

inline constexpr uint32_t kDirectoryMode = 0755;

// Returns the mode of a file.
inline uint32_t ModeOf(const v1::FileTreeEntry& entry) {
  const uint32_t mode = entry.executable() ? 0755 : 0644;
  return entry.owner_only() ? mode & 0700 : mode;
}

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_TREE_MODES_H_
