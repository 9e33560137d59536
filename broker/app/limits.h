// Bounds of one request, whatever it asks for.
#ifndef MUSTER_BROKER_APP_LIMITS_H_
#define MUSTER_BROKER_APP_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "contract/task_array.h"

namespace muster::broker {

inline constexpr int kMaxJobsPerCall = 1000;  // jobs to watch, change or run again
// One call submits at most this many jobs, because an array comes whole.
inline constexpr int kMaxSubmitsPerCall = contract::kMaxArrayTasks;
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;
inline constexpr size_t kMaxReasonBytes = 256;  // bound for cancels, holds, releases and updates
inline constexpr uint64_t kMaxCountedJobs = 1'000'000;

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_LIMITS_H_
