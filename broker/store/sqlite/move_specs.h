// Moves the specs that releases up to schema version 6 kept: one row for each job.
#ifndef MUSTER_BROKER_STORE_SQLITE_MOVE_SPECS_H_
#define MUSTER_BROKER_STORE_SQLITE_MOVE_SPECS_H_

#include "absl/status/statusor.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Moves the specs of the next thousand jobs from table job_spec to table spec. False: there are no
// more. It runs in the caller's transaction; moved specs stay moved.
absl::StatusOr<bool> MoveSomeSpecs(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_MOVE_SPECS_H_
