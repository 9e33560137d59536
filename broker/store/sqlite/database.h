// Opens the broker's database; errors carry the remedies that its operator needs.
#ifndef MUSTER_BROKER_STORE_SQLITE_DATABASE_H_
#define MUSTER_BROKER_STORE_SQLITE_DATABASE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/sqlite.h"

namespace muster::store {

// `flags` are as in sqlite3_open_v2; a `vfs` of null means the default one.
absl::StatusOr<std::unique_ptr<Database>> OpenDatabase(const std::string& path, int flags,
                                                       const char* vfs);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_DATABASE_H_
