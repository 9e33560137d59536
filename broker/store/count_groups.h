// Counts jobs in groups.
#ifndef MUSTER_BROKER_STORE_COUNT_GROUPS_H_
#define MUSTER_BROKER_STORE_COUNT_GROUPS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "broker/store/store.h"

namespace muster::store {

class CountGroups {
 public:
  explicit CountGroups(uint64_t limit) : limit_(limit) {}

  // Counts one more job of this group. False: the limit is reached, and the job was not counted.
  bool Add(v1::JobCount group);
  // Returns at most 1000 groups, the largest first.
  JobCounts Take();

 private:
  const uint64_t limit_;
  uint64_t total_ = 0;
  bool is_over_ = false;
  absl::flat_hash_map<std::string, uint64_t> counts_;  // by the bytes of the group
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_COUNT_GROUPS_H_
