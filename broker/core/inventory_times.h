// The times that the broker adds to what an agent tells of its cluster: since when each thing is as
// it is. An agent tells what is, and its next inventory does not know the last one.
#ifndef MUSTER_BROKER_CORE_INVENTORY_TIMES_H_
#define MUSTER_BROKER_CORE_INVENTORY_TIMES_H_

#include "absl/time/time.h"
#include "muster/v1/cluster.pb.h"

namespace muster::core {

// Sets Pool.unavailable_since and ClusterIssue.since. Things that `before` has already keep
// their times; new ones have begun `now`. The first inventory of a cluster does not tell since
// when its issues are there, and a new pool does not tell since when it is closed: those get no
// time.
void KeepTimes(const v1::Inventory& before, absl::Time now, v1::Inventory* inventory);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_INVENTORY_TIMES_H_
