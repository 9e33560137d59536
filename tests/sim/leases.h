// Simulates the leases of one cluster: the agent's file, the way to the nodes, and the nodes, whose
// clocks differ. The nodes follow the rule that they follow in truth (agents/core/lease_file.h).
#ifndef MUSTER_TESTS_SIM_LEASES_H_
#define MUSTER_TESTS_SIM_LEASES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agents/core/lease_file.h"
#include "tests/sim/world.h"

namespace muster::sim {

// The longest time that a run takes to end once it is told to.
inline constexpr absl::Duration kLongestStop = absl::Seconds(3);

class SimLeases {
 public:
  explicit SimLeases(World* world);

  // Is the delay that the agent tells of. A renewal that comes late is bounded by the clocks, too.
  static absl::Duration FenceDelay() {
    return absl::Milliseconds(agents::kLeaseClockSkewMs + agents::kLeaseLookMs) + kLongestStop;
  }

  // ---- the agent
  // The lease ends `remaining` from now, if that reaches the nodes, which takes `travel`.
  void Renew(absl::Duration remaining, absl::Duration travel);
  // Returns whether the agent knows of a lease that goes on.
  bool AreLive() const;
  // The run is launched in the present term, see machines/leases.h.
  void NoteLaunch(const std::string& run_key) { terms_[run_key] = term_; }

  // ---- the nodes
  // True: the run starts now. Also if it keeps no lease.
  bool MayStart(const std::string& run_key);
  // Takes a look for a run that has started.
  bool IsOver(const std::string& run_key);

 private:
  int64_t UnixMs() const { return absl::ToUnixMillis(world_.loop.now()); }
  int64_t NodeUnixMs() const { return UnixMs() + skew_ms_; }
  int64_t NodeSteadyMs() const;
  // Returns the file of that term as the nodes see it.
  std::optional<agents::LeaseFile> FileOf(uint64_t term) const;

  World& world_;
  // ---- the agent's
  uint64_t number_ = 0;
  uint64_t term_ = 0;  // the number of its first renewal
  int64_t end_unix_ms_ = 0;
  std::map<std::string, uint64_t> terms_;  // of runs, by run key
  // ---- the nodes'
  int64_t skew_ms_;  // of their clocks
  double drift_;     // of their steady clocks
  std::optional<agents::LeaseFile> file_;
  uint64_t file_term_ = 0;
  std::map<std::string, agents::NodeLease> leases_;  // of runs that have started
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_LEASES_H_
