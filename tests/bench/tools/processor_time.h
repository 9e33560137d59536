// Processor time, so that the machine's other work is not counted.
#ifndef MUSTER_TESTS_BENCH_TOOLS_PROCESSOR_TIME_H_
#define MUSTER_TESTS_BENCH_TOOLS_PROCESSOR_TIME_H_

#include <time.h>

#include <functional>

namespace muster::bench {

// Returns milliseconds of this thread's processor time.
inline double MillisecondsOf(const std::function<void()>& work) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  const double start = now();
  work();
  return now() - start;
}

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_PROCESSOR_TIME_H_
