// What a job shows of its latest run.
#ifndef MUSTER_BROKER_STORE_JOB_VIEW_H_
#define MUSTER_BROKER_STORE_JOB_VIEW_H_

#include "muster/v1/job.pb.h"

namespace muster::store {

// Fills in exit, failure and, while the job is pending, the reason.
void ShowLatestRun(const v1::Run& run, v1::Job* job);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_JOB_VIEW_H_
