// The agent's memory: every run it holds and every event that the broker has not acknowledged.
//
// Owner: the agent's core thread. A commit that returned OK survives a power loss; one that failed
// left the journal as it was.
#ifndef MUSTER_AGENTS_CORE_JOURNAL_H_
#define MUSTER_AGENTS_CORE_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/core/agent_core.h"

namespace muster::agent {

class Journal {
 public:
  virtual ~Journal() = default;

  // What it held when it was opened; once.
  virtual JournalContent TakeContent() = 0;
  // All or nothing. RESOURCE_EXHAUSTED: the disk is full and nothing was changed; try the same
  // again. Any other error: what is on disk is not known; stop.
  virtual absl::Status Commit(const std::vector<JournalChange>& changes) = 0;
};

struct JournalOptions {
  std::string state_dir;  // made if it is missing
  std::string cluster;    // a journal serves one cluster for ever
  // A thousand runs with specs of 1 MiB, four times over: more is a fault that must not fill the
  // disk.
  uint64_t max_bytes = uint64_t{4} << 30;
};

// STATE_DIR/journal.db (SQLite), and STATE_DIR/lock against a second agent. Every error names the
// file and the remedy.
//   FAILED_PRECONDITION: another agent uses the directory, or the journal is another cluster's or a
//   later version's. DATA_LOSS: the journal is damaged.
absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(const JournalOptions& options);

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_JOURNAL_H_
