// Explains the two readings of a file of jobs that either dialect could have written. Private to
// the client library.
#ifndef MUSTER_CLIENTS_CPP_TWO_READINGS_H_
#define MUSTER_CLIENTS_CPP_TWO_READINGS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/job_file_result.h"

namespace muster::client {

// A remark names at most this many differences; a file has up to 1000 jobs.
inline constexpr size_t kMaxDifferences = 8;

// Returns the differences between the two readings that a user would notice ("memory is 32GB in a
// job file and 32Gi in a task"), each once; empty if there are none. The specs are in the order of
// their documents. That sh runs a job file's script and bash a task's counts only for scripts that
// sh would not understand.
std::vector<std::string> Differences(std::span<const v1::JobSpec> muster,
                                     std::span<const v1::JobSpec> skypilot);

// Returns the remark on a file that was read in one dialect and would be valid in the other one,
// with these differences.
std::string ReadingRemark(std::string_view file, Dialect read_as,
                          const std::vector<std::string>& differences);
// Returns the addition to the error of a file that is invalid in one dialect and valid in the
// other.
std::string OtherReadingHint(std::string_view file, Dialect read_as);

// Returns whether the script has words that only bash understands: [[, source, arrays, pipefail,
// <<<, echo -e, {a,b} and the like.
bool NeedsBash(std::string_view script);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_TWO_READINGS_H_
