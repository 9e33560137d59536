// Waiting for jobs and passing on their logs.
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

// Waits until all the jobs have ended; they come back whole, in the order of the ids. Says on
// standard error what happens to them. DEADLINE_EXCEEDED: the deadline has passed.
absl::StatusOr<std::vector<v1::Job>> WaitForJobs(Session& session, const std::vector<uint64_t>& ids,
                                                 absl::Time deadline);

// The logs of a job that are passed on.
struct LogChoice {
  uint32_t first_run = 1;    // those of earlier runs are left out
  uint32_t ranks = 1;        // those of the ranks below
  bool is_merged = false;    // standard error goes to our standard output, too
  bool is_labelled = false;  // "(NAME, rank=1) " stands before each line
  std::string name;          // of the job, for the labels
  // Lines of the first run's present logs that are shown at most, the last ones; 0: all.
  uint32_t tail_lines = 0;
};

// The log of one rank of a run.
struct LogPart {
  v1::ReadLogRequest request;
  LogTarget target;
};
// Returns the parts that were chosen, rank 0 first.
std::vector<LogPart> LogParts(uint64_t job, uint32_t run, bool raw, const LogChoice& choice);

// The same for one job whose logs are passed on meanwhile: by default rank 0's standard output to
// ours, and its standard error to ours.
absl::StatusOr<v1::Job> StreamJob(Session& session, uint64_t id, const LogChoice& choice = {});

// Goes on beside the caller to the job's end: says on standard error why it waits, each time that
// the reason changes, and when its cluster or a host of it goes silent and when it is back.
void TellWhatKeepsLogFromComing(Session& session, uint64_t id);

// A job's line and, if it failed, what can be done about it, to standard error.
void NoteEnd(Session& session, const v1::Job& job);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_FOLLOW_H_
