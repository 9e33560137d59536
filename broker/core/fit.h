// Whether a cluster could run a job, and why not: in words, and in numbers where there are any.
#ifndef MUSTER_BROKER_CORE_FIT_H_
#define MUSTER_BROKER_CORE_FIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "broker/core/changes.h"
#include "broker/core/requirements.h"
#include "muster/v1/cluster.pb.h"

namespace muster::core {

struct Fit {
  // In the order of how near the cluster is to being right.
  enum class Verdict {
    kNotNamed,   // the job names other clusters
    kWrongKind,  // the job needs another kind of cluster
    kNoPool,     // no such pool
    kTooLittle,  // the pool's nodes are too small, or too few
    kTooShort,   // the pool's time limit is below the job's
    kRefused,    // its agent refused the job when it was submitted
    kNotNow,     // it could, but the pool takes no jobs at the moment
    kFits,
  };

  Verdict verdict = Verdict::kFits;
  std::string lacks = "";  // e.g. `pool "gpu" has 2 nodes with 8 GPUs of type h100, 4 are needed`;
                           // empty if it fits
  // What it is that it lacks, where it is one thing: in the units of v1::Shortage.
  struct Shortage {
    std::string resource;
    uint64_t requested = 0;
    uint64_t available = 0;
  };
  std::optional<Shortage> shortage = std::nullopt;
  const v1::Pool* pool = nullptr;  // of kNotNow, in the cluster's inventory

  bool now() const { return verdict == Verdict::kFits; }
  // Whether waiting could help.
  bool ever() const { return verdict >= Verdict::kNotNow; }
};

// Reads the cluster's name, kind and inventory. Nodes count whether or not they are up or busy: the
// cluster's own queue is the place to wait for them.
Fit CheckFit(const Requirements& job, const PutCluster& cluster);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_FIT_H_
