// Finds where the last lines of a rank's outputs begin, from the end backwards, a bounded part of
// it at a time. With both outputs the lines are counted in the order in which they began.
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
  // `lines` is at least 1. Bytes after the first Continue do not count.
  TailSearch(const Archive* archive, RankId rank, absl::Span<const v1::LogStream> streams,
             uint64_t lines);

  // Looks through about `max_bytes` more. True: it is done.
  absl::StatusOr<bool> Continue(size_t max_bytes);

  // Once it is done: where the stream's part of the last lines begins.
  uint64_t Begin(v1::LogStream stream) const;

 private:
  struct Output {
    v1::LogStream stream;
    uint64_t size = 0;
    uint64_t begin = 0;  // of the earliest line that counts
  };
  // Bytes of one output that follow each other.
  struct Part {
    size_t output = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  absl::Status Start();
  absl::StatusOr<std::vector<OrderMark>> AllMarks() const;
  // Counts the lines that begin in the last bytes of a part, and takes these from it.
  absl::StatusOr<uint64_t> CountBack(Part* part);

  const Archive* const archive_;
  const RankId rank_;
  const uint64_t lines_;
  std::vector<Output> outputs_;
  bool started_ = false;
  uint64_t found_ = 0;
  std::vector<Part> parts_;  // not looked through yet, in order
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_TAIL_SEARCH_H_
