// Following a job as SkyPilot does.
#ifndef MUSTER_CLIENTS_CLI_SKY_FOLLOW_JOB_H_
#define MUSTER_CLIENTS_CLI_SKY_FOLLOW_JOB_H_

#include <cstdint>

#include "clients/cli/follow.h"
#include "clients/cli/verbs.h"
#include "muster/v1/job.pb.h"

namespace muster::cli::sky {

// The logs of the latest run and of those that come after it: both outputs of all ranks on standard
// output, with the rank before each line if there are several. Says so if there are too many.
LogChoice ChoiceFor(Session& session, const v1::Job& job);

// Passes them on to the job's end; returns its code.
int FollowJob(Session& session, uint64_t id, const LogChoice& choice);

}  // namespace muster::cli::sky

#endif  // MUSTER_CLIENTS_CLI_SKY_FOLLOW_JOB_H_
