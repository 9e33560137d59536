// Provides functions of ours to SQL, so that they mean the same there.
#ifndef MUSTER_BROKER_STORE_SQLITE_FUNCTIONS_H_
#define MUSTER_BROKER_STORE_SQLITE_FUNCTIONS_H_

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Lets statements of this connection call:
//   muster_matches(text, pattern)   contract::MatchesPattern
//   muster_label(labels, key)       the value of a label in column job.labels, or NULL
//   muster_exit_code(run)           the exit code in a blob of table run, or NULL
//   muster_failure_class(run)       the failure class in a blob of table run, or NULL
absl::Status AddFunctions(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_FUNCTIONS_H_
