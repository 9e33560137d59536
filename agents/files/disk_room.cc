#include "agents/files/disk_room.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/errors.h"
#include "contract/units.h"

namespace muster::uploads {
namespace {

using contract::FormatBytes;

constexpr uint64_t kBlockBytes = 4096;

}  // namespace

uint64_t Occupied(uint64_t size_bytes) {
  return std::max<uint64_t>(1, (size_bytes + kBlockBytes - 1) / kBlockBytes) * kBlockBytes;
}

uint64_t Occupied(const v1::FileTree& tree) {
  uint64_t bytes = kBlockBytes;  // the directory itself
  for (const v1::FileTreeEntry& entry : tree.entries()) bytes += Occupied(entry.size_bytes());
  return bytes;
}

absl::Status NoRoom(std::string_view what, uint64_t size_bytes, std::string_view directory,
                    uint64_t keep_free_bytes) {
  return contract::Error(
      absl::StatusCode::kResourceExhausted, "DISK_FULL",
      fmt::format("No space left on device: {} of {} does not fit into \"{}\", where the agent "
                  "leaves {} free; free disk space there",
                  what, FormatBytes(size_bytes), directory, FormatBytes(keep_free_bytes)));
}

}  // namespace muster::uploads
