// Runs one seed: a broker, some clusters with their agents, clients, and a plan of faults that
// follows from the seed.
#ifndef MUSTER_TESTS_SIM_SIMULATION_H_
#define MUSTER_TESTS_SIM_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/world.h"

namespace muster::sim {

struct Verdict {
  uint64_t seed = 0;
  std::string violation;                        // empty: all invariants held
  std::vector<std::string> history;             // if it was wanted
  std::map<std::string_view, uint64_t> counts;  // of faults and odd paths
  size_t jobs = 0;
  absl::Duration virtual_time;

  bool ok() const { return violation.empty(); }
};

Verdict Simulate(uint64_t seed, Mutation mutation, bool wants_history);

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIMULATION_H_
