#include "broker/logs/block_sums.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "broker/logs/crc32.h"
#include "broker/logs/disk.h"

namespace muster::logs {
namespace {

// Blocks read at a time: few system calls, little memory.
constexpr uint64_t kBlocksAtOnce = 64;

BlockSum RecordAt(std::string_view records, uint64_t index) {
  BlockSum sum;
  const uint64_t begin = index * sizeof(BlockSum);
  if (begin + sizeof(BlockSum) <= records.size()) {
    std::memcpy(&sum, records.data() + begin, sizeof(BlockSum));
  }
  return sum;
}

// Adds the blocks that match; true if all of them did and were full.
bool AddIntact(std::string_view data, std::string_view records, IntactPart* intact) {
  for (uint64_t i = 0; i < kBlocksAtOnce; ++i) {
    const BlockSum sum = RecordAt(records, i);
    const std::string_view block = data.substr(std::min(data.size(), i * kBlockBytes), sum.bytes);
    if (sum.bytes == 0 || sum.bytes > kBlockBytes || block.size() < sum.bytes ||
        Crc32(0, block) != sum.crc) {
      return false;
    }
    intact->bytes += sum.bytes;
    intact->crc = sum.crc;
    if (sum.bytes < kBlockBytes) return false;
  }
  return true;
}

}  // namespace

absl::Status WriteSums(int sums_fd, uint64_t offset, std::string_view data, uint32_t* crc) {
  const uint64_t first_block = offset / kBlockBytes;
  std::vector<BlockSum> sums;
  uint32_t sum = *crc;
  while (!data.empty()) {
    const uint64_t before = offset % kBlockBytes;
    const std::string_view piece = data.substr(0, kBlockBytes - before);
    sum = Crc32(before == 0 ? 0 : sum, piece);
    sums.push_back({.bytes = static_cast<uint32_t>(before + piece.size()), .crc = sum});
    offset += piece.size();
    data.remove_prefix(piece.size());
  }
  const std::string_view records(reinterpret_cast<const char*>(sums.data()),
                                 sums.size() * sizeof(BlockSum));
  size_t written = 0;
  absl::Status status =
      WriteAt(sums_fd, records, first_block * sizeof(BlockSum), kArchive, &written);
  if (status.ok()) *crc = sum;
  return status;
}

absl::StatusOr<IntactPart> CheckSums(int log_fd, int sums_fd) {
  IntactPart intact;
  while (true) {
    const uint64_t block = intact.bytes / kBlockBytes;
    const auto data = ReadAt(log_fd, intact.bytes, kBlocksAtOnce * kBlockBytes, kArchive);
    if (!data.ok()) return data.status();
    const auto records =
        ReadAt(sums_fd, block * sizeof(BlockSum), kBlocksAtOnce * sizeof(BlockSum), kArchive);
    if (!records.ok()) return records.status();
    if (!AddIntact(*data, *records, &intact)) return intact;
  }
}

}  // namespace muster::logs
