// What bounds one page of a list, whatever was asked for. A page that ends early has a token for
// the rest.
#ifndef MUSTER_BROKER_STORE_LIST_LIMITS_H_
#define MUSTER_BROKER_STORE_LIST_LIMITS_H_

#include <cstddef>

namespace muster::store {

// Jobs looked at; keeps a page of a rare filter within a few milliseconds.
inline constexpr int kMaxScannedJobs = 5000;
// Jobs sorted for one page, if an index finds no more than so many that may match; keeps such a
// page within a few milliseconds, too.
inline constexpr int kMaxSortedJobs = 2000;
// gRPC takes messages of up to 4 MiB; one job has at most 1 MiB of spec and a little more.
inline constexpr size_t kMaxPageBytes = 2 << 20;

// Rows that the deletion of old jobs takes at a time, some 20 ms of the writer: runs, steps and
// labels of jobs are rows. One job may have more, and is deleted at once all the same.
inline constexpr int kMaxDeletedRows = 2000;

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_LIST_LIMITS_H_
