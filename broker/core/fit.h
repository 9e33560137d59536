// Decides whether a cluster could run a job, and if not, why.
#ifndef MUSTER_BROKER_CORE_FIT_H_
#define MUSTER_BROKER_CORE_FIT_H_

#include "broker/core/changes.h"
#include "broker/core/placement/estimate.h"
#include "broker/core/requirements.h"
#include "contract/lacks.h"
#include "contract/place_limits.h"

namespace muster::core {

struct Fit {
  // Lists the verdicts in order: the later, the nearer the cluster is to being right.
  enum class Verdict {
    kNotNamed,   // the job names other clusters
    kOfOthers,   // the job's project may not use the cluster
    kWrongKind,  // the job needs another kind of cluster
    kNoPool,     // no such pool
    kTooLittle,  // the pool's nodes are too small, or too few
    kTooShort,   // the pool's time limit is below the job's
    kRefused,    // facts that its agent has published speak against the job
    kNotNow,     // it could, but the pool takes no jobs at the moment
    kFits,
  };

  Verdict verdict = Verdict::kFits;
  // The thing that it lacks. Valid as long as the requirements and the inventory that were looked
  // at.
  contract::Lack lack = {};

  bool now() const { return verdict == Verdict::kFits; }
  // True if waiting could help.
  bool ever() const { return verdict >= Verdict::kNotNow; }
};

// Reads the cluster's name, kind and inventory. Nodes count whether or not they are up or busy,
// because a job may wait for them.
Fit CheckFit(const Requirements& job, const PutCluster& cluster,
             const contract::PlaceLimits& limits);

// Returns what the job may use there, in the pool that has the most nodes for it. Valid as long as
// the inventory.
placement::Capacity CapacityFor(const Requirements& job, const PutCluster& cluster);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_FIT_H_
