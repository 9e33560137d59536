// Keeps the order in which the bytes of a rank's two outputs came, in a file beside them.
//
// The file is a row of marks. A mark is a place that both outputs had reached when the output that
// had not grown last went on: between two marks only one of them grew, so that an output that grows
// alone costs nothing. Standard output comes before standard error where marks are missing. The
// order is for people: the file is never synced, a mark that does not match its checksum is left
// out, and no byte of a log is ever lost because a mark is.
//
// The functions are not synchronised: the order's lock is held where marks are written.
#ifndef MUSTER_BROKER_LOGS_ORDER_FILE_H_
#define MUSTER_BROKER_LOGS_ORDER_FILE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::logs {

// 1.5 MiB for each rank. Beyond it, bytes have no order. A program that changes its output more
// often than the shipper reads its log has no order, either.
inline constexpr uint64_t kMaxMarks = 65'536;
inline constexpr uint64_t kMarkBytes = 24;

struct OrderMark {
  uint64_t out = 0;  // bytes of standard output
  uint64_t err = 0;  // bytes of standard error

  friend bool operator==(const OrderMark&, const OrderMark&) = default;
};

struct OrderMarks {
  std::vector<OrderMark> marks;
  uint64_t next = 0;  // number of the mark to go on with
};

absl::Status WriteMark(int fd, uint64_t number, const OrderMark& mark);

// Reads up to `max` marks from the one with the number `from`, without those that do not match
// their checksums.
absl::StatusOr<OrderMarks> ReadMarks(int fd, uint64_t from, size_t max);

// Counts the marks before the first one beyond the logs, which a crash has left valid.
absl::StatusOr<uint64_t> CountMarksWithin(int fd, const OrderMark& sizes);

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_ORDER_FILE_H_
