// Chooses clusters within one round of placement.
//
// Within a round clusters only fill up, so that the rank of a cluster for a group of jobs only
// falls. A group that is served therefore has its clusters ranked once, and each of its later jobs
// looks again only at the clusters that have got runs since and would still be first.
//
// Owner: the core's thread, for one round.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_CHOICE_H_
#define MUSTER_BROKER_CORE_PLACEMENT_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/core/cluster.h"
#include "broker/core/groups.h"
#include "broker/core/placement/estimate.h"

namespace muster::core::placement {

class Choices {
 public:
  explicit Choices(absl::Time now) : now_(now) {}

  struct Choice {
    Cluster* cluster;
    Estimate estimate;
  };
  // Returns the best of the clusters that may have the job now: they take runs, and have room or a
  // place to wait. Nothing: there is none. `turn`: that of the job, which is one of the group. Each
  // ranking is taken from the budget, as a check of one group against one cluster.
  std::optional<Choice> Best(const Group& group, const Turn& turn,
                             const std::vector<Cluster*>& fits, int64_t* budget);
  // Must be called when the clusters that fit the group, or their inventories, have changed.
  void Forget(const Group& group) { ranked_.erase(group.id); }

 private:
  struct Candidate {
    Rank rank;
    size_t place = 0;   // in the order of names
    uint64_t seen = 0;  // Cluster::load_version that the rank is right for
    Cluster* cluster = nullptr;
    Capacity capacity;
    Estimate estimate;
  };
  static bool IsWorse(const Candidate& a, const Candidate& b);
  // The clusters as they are for jobs of one priority: some keep room for those of a higher one.
  struct Ranked {
    int32_t priority = 0;
    std::vector<Candidate> heap;  // the best first
  };
  std::vector<Candidate> RankAll(const Group& group, const Turn& turn,
                                 const std::vector<Cluster*>& fits, int64_t* budget) const;
  void RankAgain(const Group& group, const Turn& turn, Candidate* candidate) const;

  const absl::Time now_;
  absl::flat_hash_map<uint32_t, Ranked> ranked_;
};

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_CHOICE_H_
