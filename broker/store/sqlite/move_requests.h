// A step of the migration to version 11.
#ifndef MUSTER_BROKER_STORE_SQLITE_MOVE_REQUESTS_H_
#define MUSTER_BROKER_STORE_SQLITE_MOVE_REQUESTS_H_

#include "absl/status/statusor.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Moves some rows of table `request` into the rows of their jobs, in the caller's transaction.
// False: none is left.
absl::StatusOr<bool> MoveSomeRequests(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_MOVE_REQUESTS_H_
