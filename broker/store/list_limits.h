// Bounds of one page of a list, whatever was asked for. A page that ends early has a token for the
// rest.
#ifndef MUSTER_BROKER_STORE_LIST_LIMITS_H_
#define MUSTER_BROKER_STORE_LIST_LIMITS_H_

#include <cstddef>

namespace muster::store {

// This many jobs are looked at, which keeps a page of a rare filter within a few milliseconds.
inline constexpr int kMaxScannedJobs = 5000;
// This many jobs are sorted for one page, if an index shows that no more can match. This also keeps
// such a page within a few milliseconds.
inline constexpr int kMaxSortedJobs = 2000;
// gRPC takes messages of up to 4 MiB; one job has at most 1 MiB of spec and a little more.
inline constexpr size_t kMaxPageBytes = 2 << 20;

// This many rows are deleted at a time with old jobs, in some 20 ms of the writer's time: runs,
// steps, edits and labels of jobs are rows. A single job with more rows is still deleted at once.
inline constexpr int kMaxDeletedRows = 2000;

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_LIST_LIMITS_H_
