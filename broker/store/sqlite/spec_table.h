// The specs of jobs, each kept once.
//
// A row of table `spec` has the common part of similar jobs: a JobSpec without the name, the
// project, the priority and the labels, which are in the row of each job. Rows are found by the
// SHA-256 of their bytes. A row goes with the last job that refers to it. Owner: the store's writer
// thread.
#ifndef MUSTER_BROKER_STORE_SQLITE_SPEC_TABLE_H_
#define MUSTER_BROKER_STORE_SQLITE_SPEC_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/store/sqlite/database.h"
#include "digest/sha256.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {
class SpecMask;
}

namespace muster::store {

// Adds the parts from the row of its job to a spec that was read. `job` is filled in except for the
// spec.
void PutOwnParts(const v1::Job& job, v1::JobSpec* spec);
// Does the same for those that the mask takes.
void PutOwnParts(const v1::Job& job, const contract::SpecMask& mask, v1::JobSpec* spec);

class SpecTable {
 public:
  // The database must outlive this object.
  absl::Status Prepare(const Database* database);

  // Returns the number of the row that has this spec; the row is inserted if there is none. It runs
  // in the caller's transaction; if that fails, this object must not be used again.
  absl::StatusOr<int64_t> Put(const v1::JobSpec& spec);
  // Does the same for a spec that is already serialised.
  absl::StatusOr<int64_t> PutBytes(const std::string& bytes);
  // Removes the row: no job refers to it any more.
  absl::Status Drop(int64_t row);

 private:
  // Rows that were used lately are remembered, at about 200 B each: most jobs have the spec of an
  // earlier one. When there are too many, all are forgotten, and found in the index again.
  static constexpr size_t kMaxKnown = 10'000;

  // Does PutBytes, by the digest.
  absl::StatusOr<int64_t> Find(const std::string& bytes);
  void Remember(const std::string& digest, int64_t row);

  const Database* database_ = nullptr;
  Sha256 sha256_;
  // The bytes that were put last, which the next job often has. Comparing them costs less than
  // their digest.
  std::string latest_;
  int64_t latest_row_ = 0;                           // 0: none
  absl::flat_hash_map<std::string, int64_t> known_;  // by digest
  absl::flat_hash_map<int64_t, std::string> digests_;

  Statement find_, insert_, drop_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_SPEC_TABLE_H_
