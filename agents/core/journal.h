// Holds the agent's memory: every run it holds and every event that is not acknowledged.
//
// Owner: the agent's core thread. A commit that returned OK survives a power loss; one that failed
// left the journal as it was.
#ifndef MUSTER_AGENTS_CORE_JOURNAL_H_
#define MUSTER_AGENTS_CORE_JOURNAL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/core/agent_core.h"

namespace muster::agents {

class Journal {
 public:
  virtual ~Journal() = default;

  // Returns the content that the journal had when it was opened; once.
  virtual JournalContent TakeContent() = 0;
  // Commits all or nothing. RESOURCE_EXHAUSTED: the disk is full and nothing was changed; try the
  // same again. OUT_OF_RANGE: the changes would grow it beyond its bound; nothing was changed, and
  // waiting does not help. Any other error: what is on disk is not known; stop. Changes that let it
  // shrink are within the bound always.
  virtual absl::Status Commit(const std::vector<JournalChange>& changes) = 0;
  // Returns the share of its bound that is in use, 0 to 1 and, after changes that may pass it,
  // more.
  virtual double FilledShare() const = 0;
};

// More than this is a fault that must not fill the disk. Above what an agent can need: each run's
// spec of up to 1 MiB, four times over for its events and for runs whose logs are on their way. The
// agent takes no new runs long before (Options::hold_back_above).
constexpr uint64_t MaxJournalBytes(uint32_t max_active_runs) {
  return std::max(uint64_t{4} << 30, uint64_t{max_active_runs} * (4 << 20));
}

struct JournalOptions {
  std::string state_dir;  // made if it is missing
  std::string cluster;    // a journal serves one cluster for ever
  uint64_t max_bytes = MaxJournalBytes(1000);
};

// The files are STATE_DIR/journal.db (SQLite), and STATE_DIR/lock against a second agent. Every
// error names the file and the remedy.
//   FAILED_PRECONDITION: another agent uses the directory, or the journal is another cluster's or a
//   later version's. DATA_LOSS: the journal is damaged.
absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(const JournalOptions& options);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_JOURNAL_H_
