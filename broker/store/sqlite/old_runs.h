// Mends runs as earlier releases stored them.
#ifndef MUSTER_BROKER_STORE_SQLITE_OLD_RUNS_H_
#define MUSTER_BROKER_STORE_SQLITE_OLD_RUNS_H_

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Writes the runs again whose reason is a sentence without a code. It runs in the caller's
// transaction.
absl::Status TakeOverReasons(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_OLD_RUNS_H_
