// What our SQL calls of our own code, so that it means the same there.
#ifndef MUSTER_BROKER_STORE_SQLITE_FUNCTIONS_H_
#define MUSTER_BROKER_STORE_SQLITE_FUNCTIONS_H_

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Lets statements of this connection call:
//   muster_matches(text, pattern)     contract::MatchesPattern
//   muster_label(labels, key)         the value of a label in column job.labels; NULL: it is not
//   there muster_exit_code(run)             of a blob of table run; NULL: it has none
//   muster_failure_class(run)         likewise
absl::Status AddFunctions(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_FUNCTIONS_H_
