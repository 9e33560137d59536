// Keeps a number of SubmitJob or SubmitJobs calls in flight.
#ifndef MUSTER_TESTS_BENCH_TOOLS_SUBMITTER_H_
#define MUSTER_TESTS_BENCH_TOOLS_SUBMITTER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

struct Submitted {
  uint64_t jobs = 0;
  absl::Duration elapsed;
  Histogram call_times;
};

// Returns once `load.jobs` are accepted, or after `load.seconds` if that is 0. The first refusal
// ends it.
absl::StatusOr<Submitted> RunSubmits(const Load& load);

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_SUBMITTER_H_
