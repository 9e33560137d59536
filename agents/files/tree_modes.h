// The permissions and times of what a job brings along.
#ifndef MUSTER_AGENTS_FILES_TREE_MODES_H_
#define MUSTER_AGENTS_FILES_TREE_MODES_H_

#include <cstdint>

#include "absl/time/time.h"
#include "muster/v1/file_tree.pb.h"

namespace muster::uploads {

inline constexpr uint32_t kDirectoryMode = 0755;

// Of a file.
inline uint32_t ModeOf(const v1::FileTreeEntry& entry) {
  const uint32_t mode = entry.executable() ? 0755 : 0644;
  return entry.owner_only() ? mode & 0700 : mode;
}

// When files that are laid out now are said to have been modified: in whole seconds, and long
// enough ago that nothing that a run writes has the same time, however coarse its file system's
// are.
inline absl::Time BroughtStamp(absl::Time now) {
  return absl::FromUnixSeconds(absl::ToUnixSeconds(now - absl::Hours(1)));
}

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_TREE_MODES_H_
