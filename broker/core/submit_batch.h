// The items of one submit, while they are looked at. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_SUBMIT_BATCH_H_
#define MUSTER_BROKER_CORE_SUBMIT_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/core/fingerprint.h"
#include "broker/core/impl.h"
#include "broker/core/requirements.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::core {

struct Core::Impl::Candidate {
  std::shared_ptr<const v1::JobSpec> spec;
  std::string request_id;
  RequestKey key;
  Fingerprint fingerprint = 0;
  bool is_held = false;
  bool is_remembered = false;  // by its request_id
  uint64_t rerun_of = 0;
  Requirements requirements;
  std::optional<size_t> same_as;  // index of an earlier, equal item of this submit
  uint64_t job = 0;               // 0: not accepted yet

  bool is_new() const { return job == 0 && !same_as; }
};

struct Core::Impl::Batch {
  const std::string& user;
  std::vector<Candidate> candidates = {};
  absl::flat_hash_map<RequestKey, size_t> by_key = {};  // index of the first candidate of each
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SUBMIT_BATCH_H_
