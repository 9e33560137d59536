// The errors that all stores give in the same words.
#ifndef MUSTER_BROKER_STORE_ERRORS_H_
#define MUSTER_BROKER_STORE_ERRORS_H_

#include <fmt/format.h>

#include <cstdint>

#include "absl/status/status.h"
#include "contract/errors.h"

namespace muster::store {

inline absl::Status NoSuchJob(uint64_t id) {
  return contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_JOB",
                         fmt::format("there is no job {}", id),
                         {{"job_id", fmt::format("{}", id)}});
}

inline absl::Status DeletedJob(uint64_t id) {
  return contract::Error(
      absl::StatusCode::kNotFound, "JOB_DELETED",
      fmt::format("job {} ended long ago and was deleted; the broker keeps jobs for jobs.retention "
                  "after their end",
                  id),
      {{"job_id", fmt::format("{}", id)}});
}

// Says why a job is not there. `last` is the highest number that a job was ever given.
inline absl::Status NotThere(uint64_t id, uint64_t last) {
  return id > 0 && id <= last ? DeletedJob(id) : NoSuchJob(id);
}

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_ERRORS_H_
