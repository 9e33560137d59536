// Adds the ends of a failed run's logs to what its cluster says of the end. Pure.
#ifndef MUSTER_AGENTS_CORE_LOG_EVIDENCE_H_
#define MUSTER_AGENTS_CORE_LOG_EVIDENCE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agents/core/backend.h"
#include "contract/failure_patterns.h"

namespace muster::agents {

// Only so many last lines of a log count: output from long before the end did not end the program.
inline constexpr size_t kMaxEvidenceLines = 500;
// These are the limits of v1::Failure and v1::FailureQuote.
inline constexpr int kMaxQuotes = 8;
inline constexpr size_t kMaxQuoteBytes = 512;

// The end of one log.
struct LogEnd {
  std::string name;  // "rank-0.err"
  std::string text;  // any bytes; at most contract::kMaxLogTailBytes count
  bool is_stderr = false;
};

// Returns whether the logs may say why the run failed: its own program ended it, or memory ran out,
// or the backend says so. A time limit is one, whatever a log says.
bool MayLogsTell(const Observation& seen);

// Returns the last `max_lines` lines.
std::string_view LastLines(std::string_view text, size_t max_lines);

// Refines the failure by the first row of the table that fits any of the logs: its class, whether
// another run may do better, what to do, the sign, and the line that says so. The code stays what
// the cluster says. Logs that tell nothing, or that are not there, leave the failure as it is, with
// the last words of the first stderr that has any quoted, or else of the first stdout. If the run
// has no GPUs, the rows about faults of GPUs do not count.
void RefineByLogs(const contract::FailurePatterns& patterns, const std::vector<LogEnd>& logs,
                  bool may_have_gpus, v1::Failure* failure);

// Adds a quote if there is room for it: without control characters, cut after kMaxQuoteBytes.
void AddQuote(std::string_view source, std::string_view text, v1::Failure* failure);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LOG_EVIDENCE_H_
