// Finds where the last lines of a rank's outputs begin: goes backwards from the end, a bounded part
// in each step. With both outputs the lines are counted in the order in which they began.
//
// Belongs to one thread at a time.
#ifndef MUSTER_BROKER_LOGS_TAIL_SEARCH_H_
#define MUSTER_BROKER_LOGS_TAIL_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "broker/logs/archive.h"

namespace muster::logs {

class TailSearch {
 public:
  // `lines` is at least 1. Bytes that come after the first Continue do not count.
  TailSearch(const Archive* archive, RankId rank, absl::Span<const v1::LogStream> streams,
             uint64_t lines);

  // Looks through about `max_bytes` more. True: the search is done.
  absl::StatusOr<bool> Continue(size_t max_bytes);

  // Returns, after the search, the start of the stream's part of the last lines.
  uint64_t Begin(v1::LogStream stream) const;

 private:
  struct Output {
    v1::LogStream stream;
    uint64_t size = 0;
    uint64_t begin = 0;  // begin of the earliest line that counts
  };
  // A stretch of bytes of one output.
  struct Part {
    size_t output = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  absl::Status Start();
  absl::StatusOr<std::vector<OrderMark>> AllMarks() const;
  // Counts the lines that begin in the last bytes of a part, and removes these bytes from it.
  absl::StatusOr<uint64_t> CountBack(Part* part);

  const Archive* const archive_;
  const RankId rank_;
  const uint64_t lines_;
  std::vector<Output> outputs_;
  bool started_ = false;
  uint64_t found_ = 0;
  std::vector<Part> parts_;  // in order, not looked through yet
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_TAIL_SEARCH_H_
