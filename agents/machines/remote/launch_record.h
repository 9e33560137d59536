// The agent's own record of a run on hosts over SSH, in a directory of its own (runs/<run key> in
// the agent's state directory):
// - assignment: what to run, and its place in the queue. On disk before the agent says that it has
//   the run; removed when the broker has the end.
// - placement: which hosts the run has. On disk before any of them is asked to start it, so that no
//   other host ever is.
// - begun: the ranks that hosts have said to have begun. A host without a trace of one of them does
//   not get it again.
// - refused: why ranks could not be started. On disk before the others are ended for it.
//
// The class has no state: every call looks at the disk. Errors name the path.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_LAUNCH_RECORD_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_LAUNCH_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/machines/scheduling/hosts.h"
#include "agents/machines/scheduling/request.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::machines {

// One rank's place.
struct PlacedRank {
  std::string host;       // its name
  std::string directory;  // the run's, there
  NodeAllocation node;    // `host` in it counts only while the agent runs
  // The names of its GPUs at that time, with commas; empty also in a record of an older agent.
  std::string devices = {};

  friend bool operator==(const PlacedRank&, const PlacedRank&) = default;
};

// FAILED_PRECONDITION: the host has no longer the GPUs that the rank was given there, and says
// which; without them it would run on the processor alone.
absl::Status CheckDevices(const PlacedRank& rank, const Capacity& capacity);

struct LaunchFiles {
  std::shared_ptr<const agent::v1::Assignment> assignment;  // null: none
  uint64_t order = 0;
  std::vector<PlacedRank> placement;  // empty: none
  std::set<size_t> begun;
  std::map<size_t, v1::Failure> refused;
  absl::Time refused_at = absl::InfinitePast();  // the last one
  // The time of the last word of a host that is written down here, or of the choice of the
  // hosts.
  absl::Time last_word = absl::InfinitePast();
};

class LaunchRecord {
 public:
  explicit LaunchRecord(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Returns everything empty if the directory does not exist.
  absl::StatusOr<LaunchFiles> Read() const;
  absl::Status Create(const agent::v1::Assignment& assignment, uint64_t order) const;
  absl::Status Place(const std::vector<PlacedRank>& placement) const;
  // Restores the state before Place. An OK is not durable: a placement that comes back after a
  // crash was never made use of.
  absl::Status Unplace() const;
  absl::Status SetBegun(const std::set<size_t>& ranks) const;
  absl::Status SetRefused(const std::map<size_t, v1::Failure>& ranks) const;
  // Removes all but the placement, which leads to the run's output.
  void RemoveBookkeeping() const;
  void Remove() const;

 private:
  std::string PathOf(const char* name) const { return path_ + "/" + name; }

  std::string path_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_LAUNCH_RECORD_H_
