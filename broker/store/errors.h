// The errors that every store gives in the same words.
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

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_ERRORS_H_
