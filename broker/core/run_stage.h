// How far a run has come, as jobs are told of it. Pure.
#ifndef MUSTER_BROKER_CORE_RUN_STAGE_H_
#define MUSTER_BROKER_CORE_RUN_STAGE_H_

#include "muster/v1/job.pb.h"

namespace muster::core {

// Whether the cluster has begun with it: nodes are being prepared for it, or its program runs or
// ran. False: it waits, or has ended without that.
bool HasBegun(const v1::Run& run);

// The state of a job by its latest run. A run that is FINISHING without having begun (its Job is
// being deleted, say) has never been RUNNING, and neither has its job. A job whose cancel was asked
// for ends as CANCELED however its run ends, unless that had succeeded before the cancel reached
// it.
v1::JobState JobStateFor(const v1::Run& run, bool cancel_requested);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RUN_STAGE_H_
