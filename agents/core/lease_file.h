// Describes the file by which the nodes of a cluster learn how long the leases of its runs last,
// and the rule by which they obey it.
//
// The agent writes one file for each place that its nodes can read. It holds one line:
//   muster-lease 1 NUMBER REMAINING_MS END_UNIX_MS
// NUMBER rises with each renewal, REMAINING_MS is the time from the writing to the end, and
// END_UNIX_MS the end by the clock of the one who wrote it. The file gets its name by a rename, so
// that nobody reads half of it.
//
//   no file, or its end is over --> a run is not started
//   a run has started           --> its lease ends at the end that the file told at the start
//   a new NUMBER is seen        --> it ends REMAINING_MS later, by the steady clock of the node
//   the end is over             --> TERM, the grace, KILL; the run has ended with its lease
//
// Pure functions; any thread. No library but the standard one.
#ifndef MUSTER_AGENTS_CORE_LEASE_FILE_H_
#define MUSTER_AGENTS_CORE_LEASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agents {

// The name of the file in each place.
inline constexpr std::string_view kLeaseFileName = "lease";
// File names begin with this; each term, a time without a lapse, has a file of its own.
inline constexpr std::string_view kLeasePrefix = "lease.";
// No file is longer: it has five words, three of them numbers of at most 20 digits.
inline constexpr size_t kMaxLeaseFileBytes = 128;
// The time between two looks of a node at the file. A look is one small read, and a shorter time
// would only make the time to a fail-over shorter by as much.
inline constexpr int64_t kLeaseLookMs = 1000;
// The clocks of a cluster's nodes and of its agent's machine may differ by at most this. NTP and
// chrony keep them within milliseconds; a clock that is further away than this is broken.
inline constexpr int64_t kLeaseClockSkewMs = 5000;
// The grace between TERM and KILL for a run whose lease has ended, where the cluster has no grace
// of its own: what Muster's clusters give to canceled runs by default.
inline constexpr int64_t kLeaseKillGraceMs = 10'000;
// The time that processes take to go after KILL: the kernel closes their files and frees their
// memory first.
inline constexpr int64_t kLeaseKillTimeMs = 5000;

// No lease is longer than this, because the broker gives none that is.
inline constexpr int64_t kMaxLeaseMs = 24LL * 60 * 60 * 1000;

// The content of the file.
struct LeaseFile {
  uint64_t number = 0;
  int64_t remaining_ms = 0;
  int64_t end_unix_ms = 0;
};

// Returns the line.
std::string FormatLeaseFile(const LeaseFile& lease);
// Returns nothing if the text is no such line. A negative REMAINING_MS is an error, too.
std::optional<LeaseFile> ParseLeaseFile(std::string_view text);

// Returns the next content of a file. `last_number` is the number that was written or found last; 0
// if none. Numbers follow the clock, so that an agent that finds no file has higher ones than the
// one before it.
LeaseFile NextLease(uint64_t last_number, int64_t unix_ms, int64_t remaining_ms);

// Returns whether a node whose clock shows `unix_ms` may start a run. It may not if there is no
// file, if the lease is over, or if the end is so far away that the clocks differ by more than
// kLeaseClockSkewMs.
bool MayStartUnderLease(const std::optional<LeaseFile>& lease, int64_t unix_ms);

// The lease of one run on its node, from the start of its program on.
class NodeLease {
 public:
  // `lease` has let the run start. `steady_ms` is the node's steady clock, which also counts the
  // time of a machine that sleeps; `unix_ms` is its wall clock.
  NodeLease(const LeaseFile& lease, int64_t steady_ms, int64_t unix_ms);

  // Takes a look at the file and returns whether the lease is over. Once it is, it stays over: a
  // renewal that is seen only then comes too late. A file that is not there, or cannot be read,
  // renews nothing. The wall clock decides alone only where it is beyond the end by more than
  // kLeaseClockSkewMs: nobody looked for a while.
  bool Over(const std::optional<LeaseFile>& lease, int64_t steady_ms, int64_t unix_ms);

  // Returns the time by the steady clock at which the lease ends, as far as is known.
  int64_t end_steady_ms() const { return end_steady_ms_; }

 private:
  uint64_t number_;
  int64_t end_steady_ms_;
  int64_t end_unix_ms_;
  bool over_ = false;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LEASE_FILE_H_
