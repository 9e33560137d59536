// The tables of the broker's database, and the migration of older files.
#ifndef MUSTER_BROKER_STORE_SQLITE_SCHEMA_H_
#define MUSTER_BROKER_STORE_SQLITE_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Value of PRAGMA application_id, "MSTR", by which a file of another program is recognised.
inline constexpr int64_t kApplicationId = 0x4d535452;
// The version in PRAGMA user_version.
inline constexpr int64_t kSchemaVersion = 18;

// A run's row id has its job's number, then its own. A job has less than 65,536 runs.
inline constexpr int kRunBits = 16;
inline uint64_t RunRowId(uint64_t job, uint32_t number) { return job << kRunBits | number; }

// Number of ids that a row of job_block stands for.
inline constexpr uint64_t kBlockJobs = 1024;

// Makes the tables of an empty file, with a new instance.
absl::Status CreateSchema(const Database& database);
// FAILED_PRECONDITION: the file is of a newer release, or of another program.
absl::Status CheckSchema(const Database& database);
// Brings a file that CheckSchema accepts to kSchemaVersion. A step is one transaction, or many
// bounded ones; an interrupted step goes on where it was.
absl::Status Migrate(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_SCHEMA_H_
