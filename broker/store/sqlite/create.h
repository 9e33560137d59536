// The broker's database file: found whole, or made whole.
#ifndef MUSTER_BROKER_STORE_SQLITE_CREATE_H_
#define MUSTER_BROKER_STORE_SQLITE_CREATE_H_

#include <string>

#include "absl/status/status.h"
#include "broker/store/sqlite/sqlite_store.h"

namespace muster::store {

std::string DatabasePath(const std::string& directory);

// Makes the database if there is none: under another name, and renames it once it is complete, so
// that an empty or incomplete file under its own name is always damage. DATA_LOSS: the file is
// empty, or it is gone and has left its WAL.
absl::Status CreateIfMissing(const SqliteOptions& options);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_CREATE_H_
