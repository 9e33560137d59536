// Describes what a plan says of a job's start.
#ifndef MUSTER_CLIENTS_CLI_PLAN_OUTLOOK_H_
#define MUSTER_CLIENTS_CLI_PLAN_OUTLOOK_H_

#include "absl/time/time.h"
#include "muster/v1/cluster.pb.h"

namespace muster::cli {

// Returns whether the plan shows an obstacle.
bool HasFailed(const v1::JobPlan& plan);

// Returns whether the cluster expects the job to start at once; false also if the cluster does not
// say.
bool StartsAtOnce(const v1::JobPlan& plan, absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_PLAN_OUTLOOK_H_
