// Holds the parts that a whole simulation shares: time, chance, faults and the history.
#ifndef MUSTER_TESTS_SIM_WORLD_H_
#define MUSTER_TESTS_SIM_WORLD_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "tests/sim/loop.h"
#include "tests/sim/random.h"

namespace muster::sim {

// A bug put in on purpose, to prove that the auditor would see it.
enum class Mutation {
  kNone,
  kReplyBeforeCommit,      // the broker carries out effects, then commits
  kActBeforeJournal,       // the agent carries out effects, then commits
  kTornCommit,             // a crash leaves half of a commit
  kForgetEventPosition,    // the broker's place in an agent's events is not stored
  kForgetRequestIds,       // a restarted broker does not know earlier requests
  kSkipLookups,            // every look-up says "absent" without asking
  kNoLookupGrace,          // one look-up is enough to launch again
  kFenceLies,              // every fence is proved without one
  kForgetLaunchedBefore,   // assignments are repeated without may_have_been_launched
  kDropResentAssignments,  // what a connection must repeat is not sent
  kDropCancellations,      // the agent never learns of cancels
  kDropReleases,           // the agent never hears that what was held may go on
  kWrongExitCode,          // the backend misreads exit codes
  kHearOldConnections,     // the agent obeys what comes late over a connection that it has given up
  kForgetRetryTimes,       // a restarted broker does not know how long jobs are to wait
  kForgetBudgets,          // a restarted broker does not know how many runs a job may have
  kForgetHolds,            // a restarted broker does not know which jobs are held
  kForgetWithdrawals,      // a restarted broker does not know which runs are to come back
  kAllPreemptible,         // a restarted broker takes every job for a preemptible one
  kRetryPlainFailures,     // the backend takes every failure for the cluster's fault
  kForgetLimits,           // a restarted broker does not know what projects may use
  kForgetCordons,          // a restarted broker does not know which clusters are cordoned
  kNodesIgnoreLeases,      // no node stops a run, or keeps it from starting, for its lease
  kLongerLeases,           // agents are given longer leases than the broker counts
  kEarlyFence,             // agents tell a shorter fence delay than their nodes need
  kForgetFailOvers,        // a restarted broker does not know how often jobs have failed over
  kForgetQuotas,           // the broker does not know how many runs a project may have
  kWatchSkips,             // a resumed watch begins one transition too late
};

// A project whose jobs may use one cluster only.
inline constexpr std::string_view kPickyProject = "picky";
inline constexpr std::string_view kPickyCluster = "cluster-a";
// Its quota of active runs.
inline constexpr uint32_t kPickyRuns = 1;

struct MutationName {
  Mutation mutation;
  std::string_view name;
};
inline constexpr MutationName kMutations[] = {
    {Mutation::kReplyBeforeCommit, "reply-before-commit"},
    {Mutation::kActBeforeJournal, "act-before-journal"},
    {Mutation::kTornCommit, "torn-commit"},
    {Mutation::kForgetEventPosition, "forget-event-position"},
    {Mutation::kForgetRequestIds, "forget-request-ids"},
    {Mutation::kSkipLookups, "skip-lookups"},
    {Mutation::kNoLookupGrace, "no-lookup-grace"},
    {Mutation::kFenceLies, "fence-lies"},
    {Mutation::kForgetLaunchedBefore, "forget-launched-before"},
    {Mutation::kDropResentAssignments, "drop-resent-assignments"},
    {Mutation::kDropCancellations, "drop-cancellations"},
    {Mutation::kDropReleases, "drop-releases"},
    {Mutation::kWrongExitCode, "wrong-exit-code"},
    {Mutation::kHearOldConnections, "hear-old-connections"},
    {Mutation::kForgetRetryTimes, "forget-retry-times"},
    {Mutation::kForgetBudgets, "forget-budgets"},
    {Mutation::kForgetHolds, "forget-holds"},
    {Mutation::kForgetWithdrawals, "forget-withdrawals"},
    {Mutation::kAllPreemptible, "all-preemptible"},
    {Mutation::kRetryPlainFailures, "retry-plain-failures"},
    {Mutation::kForgetLimits, "forget-limits"},
    {Mutation::kForgetCordons, "forget-cordons"},
    {Mutation::kNodesIgnoreLeases, "nodes-ignore-leases"},
    {Mutation::kLongerLeases, "longer-leases"},
    {Mutation::kEarlyFence, "early-fence"},
    {Mutation::kForgetFailOvers, "forget-fail-overs"},
    {Mutation::kForgetQuotas, "forget-quotas"},
    {Mutation::kWatchSkips, "watch-skips"},
};

// The events, one line for each step. Costs nothing unless it is wanted.
class History {
 public:
  explicit History(bool wanted) : wanted_(wanted) {}

  template <typename... Args>
  void Note(const Loop& loop, fmt::format_string<Args...> format, Args&&... args) {
    if (!wanted_) return;
    lines_.push_back(fmt::format(
        "{:10.4f}  {}", absl::ToDoubleSeconds(loop.now() - absl::FromUnixSeconds(1'800'000'000)),
        fmt::format(format, std::forward<Args>(args)...)));
  }
  const std::vector<std::string>& lines() const { return lines_; }
  bool wanted() const { return wanted_; }

 private:
  const bool wanted_;
  std::vector<std::string> lines_;
};

struct World {
  World(uint64_t seed, Mutation mutation, bool wants_history)
      : random(seed), mutation(mutation), history(wants_history) {}

  // Returns whether a fault of this probability strikes now; never once the faults are over. The
  // draw is made in any case.
  bool Strikes(double probability) { return random.Chance(probability * intensity) && faults; }
  bool Has(Mutation wanted) const { return mutation == wanted; }
  // Counts something that is to happen in some seed, or the simulation does not test it.
  void Count(std::string_view what) { ++counts[what]; }

  Loop loop;
  Random random;
  const Mutation mutation;
  History history;
  bool faults = true;      // off in the quiet at the end
  double intensity = 1.0;  // of this seed: 0 (none) to 3
  std::map<std::string_view, uint64_t> counts;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_WORLD_H_
