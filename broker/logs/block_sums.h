// Keeps checksums of a log that has not ended, in a file beside it. After a crash they tell which
// bytes of the log the disk has really kept: after a power cut there may be zeros or old bytes
// where the log was written and not yet synced, and the file's size does not tell.
//
// A log is summed in blocks. Record n of the file, at n * sizeof(BlockSum), says how many bytes of
// block n are summed and what their CRC-32 is. Neither file is synced before the log ends, so
// either may be ahead of the other on disk. Bytes that do not match their record do not count as
// the log's; their pusher sends them again. A record of zeros sums nothing.
//
// The functions are not synchronised: the log's lock is held.
#ifndef MUSTER_BROKER_LOGS_BLOCK_SUMS_H_
#define MUSTER_BROKER_LOGS_BLOCK_SUMS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::logs {

// A block is a page, the unit in which the disk is written. At most this much is given up after a
// crash because the log grew between the writing of the two files.
inline constexpr uint64_t kBlockBytes = 4096;

// The form is in the machine's byte order. Nothing matches on a machine of another byte order, and
// the log begins again.
struct BlockSum {
  uint32_t bytes = 0;  // 0..kBlockBytes
  uint32_t crc = 0;    // of these bytes
};

struct IntactPart {
  uint64_t bytes = 0;  // counted from the log's beginning
  uint32_t crc = 0;    // CRC of the bytes in the last block, to go on from
};

// Sums bytes that were appended at an offset. `crc` is the CRC of the last block's bytes before
// them, and on success the CRC of the last block with them.
absl::Status WriteSums(int sums_fd, uint64_t offset, std::string_view data, uint32_t* crc);

// Returns how much of the log matches its sums. Reads the log, at about 1 ms for each MiB in
// memory.
absl::StatusOr<IntactPart> CheckSums(int log_fd, int sums_fd);

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_BLOCK_SUMS_H_
