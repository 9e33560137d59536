// The command's exit codes, for scripts. They are part of its interface: never renumbered.
#ifndef MUSTER_CLIENTS_CLI_EXIT_CODE_H_
#define MUSTER_CLIENTS_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

enum ExitCode : int {
  kOk = 0,
  kError = 1,            // anything that has no code of its own; also: no broker
  kUsage = 2,            // the command line
  kNotAllowed = 4,       // the broker refuses this user
  kTimeOut = 8,          // the time given is over; the jobs go on
  kJobFailed = 10,       // a job that was waited for failed by its own doing
  kJobCanceled = 11,     // ... was canceled
  kInfrastructure = 12,  // ... failed by its cluster's doing: INFRA, PREEMPTED, or lost
  kCannotBePlaced = 13,  // no known cluster can ever run the job, or it names an unknown one
};

ExitCode CodeFor(const absl::Status& status);
// Returns the code for a job that has ended; kOk if it succeeded.
ExitCode CodeFor(const v1::Job& job);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_EXIT_CODE_H_
