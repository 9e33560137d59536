// Writes the leases of the runs of a machines cluster: the agent's side of the file that
// supervisors read (agents/core/lease_file.h).
#ifndef MUSTER_AGENTS_MACHINES_LEASES_H_
#define MUSTER_AGENTS_MACHINES_LEASES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sync/mutex.h"

namespace muster::machines {

// Returns the longest time that a process of a run lives after the end of its lease: its supervisor
// looks once in kLeaseLookMs, gives the program the grace, and KILL takes kLeaseKillTimeMs. A
// renewal that reaches the file late, because the agent was stopped between its decision and the
// writing, makes the lease longer by at most kLeaseClockSkewMs. `clocks` is the number of clocks
// that agent and supervisor have, 1 or 2; two of them differ by as much again.
absl::Duration FenceDelay(absl::Duration cancel_grace, int clocks);

// Returns the path of a lease's file on a host where a run has that directory: in the directory of
// the host, above those of all runs.
std::string LeaseFileFor(const std::string& run_directory, const std::string& name);

// The file of the present *term* on this machine. A term is a time without a lapse: when a lease
// has run out, the next renewal begins a new term, with a file of another name. Each run is told
// the file of the term in which it was launched, so that a run that waited through a lapse, and
// that the broker may have given up, never starts. Any thread.
class OwnLease {
 public:
  // The files are in this directory, named "lease." and the number of their first renewal.
  explicit OwnLease(std::string directory) : directory_(std::move(directory)) {}

  // Returns the file for a run that is launched now. Before the first renewal: one that is never
  // there.
  std::string path() const;
  // Lets the lease end `remaining` from now. One call at a time.
  absl::Status Renew(absl::Duration remaining);

 private:
  // Finds the term of an earlier process, if it goes on.
  void Resume(int64_t unix_ms);
  void RemoveOthers(const std::string& kept) const;

  const std::string directory_;
  mutable Mutex mutex_;
  std::string path_ ABSL_GUARDED_BY(mutex_);  // empty: there is no term
  // ---- the renewing thread's
  bool is_resumed_ = false;
  uint64_t number_ = 0;        // of the last renewal; 0: none is known
  int64_t end_unix_ms_ = 0;    // of the term as it is now
  int64_t end_steady_ms_ = 0;  // likewise, since boot; 0: an earlier process began the term
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_LEASES_H_
