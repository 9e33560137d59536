// Finds in the end of a log why a run failed.
#ifndef MUSTER_PROTO_CONTRACT_FAILURE_PATTERNS_H_
#define MUSTER_PROTO_CONTRACT_FAILURE_PATTERNS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/v1/job.pb.h"

namespace muster::contract {

// This many bytes of a log's end are read, which is more than 500 long lines.
inline constexpr size_t kMaxLogTailBytes = 256 << 10;
// Bytes of a line that are quoted, as messages travel in a gRPC status and end in a table.
inline constexpr size_t kMaxQuotedLineBytes = 400;

struct LogVerdict {
  // The row of the table, "cuda-out-of-memory", for counting.
  std::string pattern;
  // Its place in the table. The lowest counts of the verdicts on several logs of one run.
  size_t row = 0;
  v1::FailureClass failure_class = v1::FAILURE_CLASS_UNSPECIFIED;
  // True if the fault is of the infrastructure and another try may do better.
  bool retriable = false;
  // The line that led to the verdict, without control characters, cut after kMaxQuotedLineBytes.
  std::string line;
};

// Returns the remedy of a failure with this log_sign; empty if the table does not have the name.
std::string_view RemedyForSign(std::string_view pattern);

// The table, compiled once. May be used by several threads at a time.
//
// The first row that fits any line decides, and a row's first line is quoted: what a program did to
// itself (GPU memory used up, a device assert) stands before what it does to others (NCCL's
// errors), so that the first is never taken for the second and retried.
class FailurePatterns {
 public:
  FailurePatterns();
  ~FailurePatterns();
  FailurePatterns(const FailurePatterns&) = delete;
  FailurePatterns& operator=(const FailurePatterns&) = delete;

  // `log_tail` is the end of one rank's output, in any bytes. Returns nothing if no row fits: a log
  // that tells nothing, or no log at all, is no sign of a fault of the infrastructure.
  // `may_have_gpus`: whether the run may have had GPUs. If it had none, its messages about GPUs are
  // there on purpose, and the rows about faults of GPUs and their drivers do not count.
  std::optional<LogVerdict> Find(std::string_view log_tail, bool may_have_gpus = true) const;

 private:
  struct Table;
  const std::unique_ptr<const Table> table_;
};

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FAILURE_PATTERNS_H_
