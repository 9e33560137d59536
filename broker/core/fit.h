// Whether a cluster could run a job, and why not.
#ifndef MUSTER_BROKER_CORE_FIT_H_
#define MUSTER_BROKER_CORE_FIT_H_

#include "broker/core/changes.h"
#include "broker/core/requirements.h"
#include "contract/lacks.h"

namespace muster::core {

struct Fit {
  // In the order of how near the cluster is to being right.
  enum class Verdict {
    kNotNamed,   // the job names other clusters
    kWrongKind,  // the job needs another kind of cluster
    kNoPool,     // no such pool
    kTooLittle,  // the pool's nodes are too small, or too few
    kTooShort,   // the pool's time limit is below the job's
    kRefused,    // what its agent has published speaks against the job
    kNotNow,     // it could, but the pool takes no jobs at the moment
    kFits,
  };

  Verdict verdict = Verdict::kFits;
  // What it lacks. Holds as long as the requirements and the inventory that were looked at.
  contract::Lack lack = {};

  bool now() const { return verdict == Verdict::kFits; }
  // Whether waiting could help.
  bool ever() const { return verdict >= Verdict::kNotNow; }
};

// Reads the cluster's name, kind and inventory. Nodes count whether or not they are up or busy: the
// cluster's own queue is the place to wait for them.
Fit CheckFit(const Requirements& job, const PutCluster& cluster);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_FIT_H_
