// Counts the jobs that have each spec, so that a spec goes with its last job. An index of jobs by
// spec would cost each submit a row; jobs of one commit that share a spec are one row here. Owner:
// the store's writer thread.
#ifndef MUSTER_BROKER_STORE_SQLITE_SPEC_USES_H_
#define MUSTER_BROKER_STORE_SQLITE_SPEC_USES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"
#include "broker/store/sqlite/spec_table.h"

namespace muster::store {

class SpecUses {
 public:
  // The database must outlive this object.
  absl::Status Prepare(const Database* database);

  // One more job has the spec of this row, or one less.
  void Add(int64_t row) { ++changes_[row]; }
  void Remove(int64_t row) { --changes_[row]; }
  // Writes the counts in the caller's transaction, and drops the specs that no job has any more.
  absl::Status Write(SpecTable* specs);

 private:
  const Database* database_ = nullptr;
  absl::flat_hash_map<int64_t, int64_t> changes_;  // of the current commit, by row
  Statement add_, drop_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_SPEC_USES_H_
