// Reads the state from which the core starts, through the writer's connection.
#ifndef MUSTER_BROKER_STORE_SQLITE_RESTORE_H_
#define MUSTER_BROKER_STORE_SQLITE_RESTORE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Requests of jobs that ended before `requests_since` are forgotten.
absl::StatusOr<core::Restored> RestoreFrom(const Database& database, absl::Time requests_since);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_RESTORE_H_
