// Waits for jobs and passes their logs on.
#ifndef MUSTER_CLIENTS_CLI_FOLLOW_H_
#define MUSTER_CLIENTS_CLI_FOLLOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/copy_log.h"
#include "clients/cli/terminal.h"
#include "clients/cli/verbs.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::cli {

// Waits until all the jobs have ended, and says on standard error what happens to them. Returns the
// whole jobs, in the order of the ids. DEADLINE_EXCEEDED: the deadline has passed.
absl::StatusOr<std::vector<v1::Job>> WaitForJobs(Session& session, const std::vector<uint64_t>& ids,
                                                 absl::Time deadline);

// The logs of a job that are passed on.
struct LogChoice {
  uint32_t first_run = 1;    // logs of earlier runs are left out
  uint32_t ranks = 1;        // logs of this rank and higher ones are left out
  bool is_merged = false;    // standard error goes to our standard output, too
  bool is_labelled = false;  // "(NAME, rank=1) " stands before each line
  std::string name;          // of the job, for the labels
  // Most lines of the first run's present logs that are shown, the last ones; 0: all.
  uint32_t tail_lines = 0;
};

// The log of one rank of a run.
struct LogPart {
  v1::ReadLogRequest request;
  LogTarget target;
};
// Returns the parts that were chosen, rank 0 first.
std::vector<LogPart> LogParts(uint64_t job, uint32_t run, bool raw, const LogChoice& choice);

// Waits for one job, and passes its logs on meanwhile: by default the two outputs of rank 0 to our
// own.
absl::StatusOr<v1::Job> StreamJob(Session& session, uint64_t id, const LogChoice& choice = {});

// Runs beside the caller until the job's end. Says on standard error why the job waits, each time
// that the reason changes, and when its cluster or a host goes silent or is back.
void TellWhatKeepsLogFromComing(Session& session, uint64_t id);

// Writes a job's line to standard error and, if it failed, what can be done about it.
void NoteEnd(Session& session, const v1::Job& job);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_FOLLOW_H_
