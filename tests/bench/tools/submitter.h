// Keeps a number of SubmitJob or SubmitJobs calls in flight.
#ifndef MUSTER_TESTS_BENCH_TOOLS_SUBMITTER_H_
#define MUSTER_TESTS_BENCH_TOOLS_SUBMITTER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

struct Submitted {
  uint64_t jobs = 0;
  absl::Duration elapsed;
  Histogram call_times;
};

// Prints {"per_s", "p50_us", "p99_us"}.
void Print(Submitted result);

// Returns the bytes of a small file without the blanks around; empty if none is named.
absl::StatusOr<std::string> Contents(const std::string& path);

// Returns once `load.jobs` are accepted, or after `load.seconds` if that is 0. The first refusal
// ends it.
absl::StatusOr<Submitted> RunSubmits(const Load& load);

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_SUBMITTER_H_
