// Reads what a run itself has left about its end, before that end is reported: the last lines of
// its logs if it failed, TAO's status.json if its job asks for that.
//
// Owner: the thread that observes. Every call may block for as long as the host takes; bounds
// below.
#ifndef MUSTER_AGENTS_CORE_END_READER_H_
#define MUSTER_AGENTS_CORE_END_READER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/core/log_evidence.h"
#include "agents/core/status_json.h"
#include "agents/core/steady_time.h"
#include "agents/hosts/host.h"
#include "contract/failure_patterns.h"

namespace muster::agent {

struct EndReaderOptions {
  // Of a run with many ranks, so many files are read: the rank that failed first, then the lowest.
  // 16 ranks; what goes wrong on one shows on all. Together 8 MiB at most.
  size_t max_files = 32;
  // One round of observations may spend so long on it; the ends that are left over come with the
  // next round.
  absl::Duration max_round = absl::Seconds(10);
  // An end whose files cannot be read, or whose status.json lacks its last entry, is reported as it
  // is in this round: file servers lag, and login hosts go away.
  int max_tries = 3;
};

class EndReader {
 public:
  // The backend outlives it. Logs are read on the backend's log host, or on this machine.
  explicit EndReader(Backend* backend, EndReaderOptions options = {});

  // Completes the failures among the observations, and leaves out the ends that are held back: the
  // backend tells of them again.
  void Complete(const std::vector<RunHandle>& runs, ObserveOutcome* outcome);

 private:
  // An error: it is worth another try. OK: all has been read, or there is nothing to read.
  absl::Status Read(const RunHandle& run, Observation* seen);
  absl::Status ReadStatus(const RunHandle& run, Observation* seen);
  // The newest status.json that this run has written; nothing if there is none.
  absl::StatusOr<std::optional<StatusFile>> FindStatus(const std::string& directory,
                                                       absl::Time since);
  absl::StatusOr<std::vector<LogEnd>> ReadLogs(const RunHandle& run, const Observation& seen);

  Backend& backend_;
  const EndReaderOptions options_;
  const SteadyTime time_;
  const contract::FailurePatterns patterns_;
  const std::unique_ptr<hosts::Host> local_host_;  // null: the backend has one
  hosts::Host& host_;
  std::map<std::string, int> tries_;  // by run key; of the ends that are held back
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_END_READER_H_
