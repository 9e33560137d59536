// Collects the facts about a run's ranks, each on a host of its own, and derives the run's state.
// Pure.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_GANG_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_GANG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/machines/host_report.h"

namespace muster::machines {

struct Rank {
  // The rank's host.
  std::string host;
  std::string directory;  // the run's, there
  // The host's report.
  HostStage stage = HostStage::kAbsent;
  std::optional<Started> started = {};
  std::optional<ExitRecord> exit = {};
  std::string vanished = {};       // kVanished: how that was seen
  absl::Time vanished_after = {};  // when it was last known to be there
  absl::Time vanished_at = {};     // when it was found to be gone
  // The host could not start it, and has not.
  std::optional<v1::Failure> refused = {};
  absl::Time refused_at = {};
  // The agent's actions.
  bool start_under_way = false;
  bool start_sent = false;  // the host may have been asked to start it
  bool stop_under_way = false;
  bool stop_told = false;  // the host has been told

  bool HasBegun() const { return stage != HostStage::kAbsent; }
  // It has no processes there, and will have none.
  bool IsOver() const {
    return refused.has_value() || stage == HostStage::kEnded || stage == HostStage::kVanished;
  }
  bool IsRunning() const { return stage == HostStage::kStarted || IsOver(); }
};

// Takes in the host's report. Returns whether that is news. `last_report` is the time of the one
// before.
bool TakeReport(const RankReport& report, absl::Time last_report, absl::Time now, Rank* rank);

// Returns whether a rank has not ended well, so that the others must end.
bool HasFailed(const Rank& rank);

// Returns the end of a run whose ranks are all over. A failure is that of the rank that failed
// first by the hosts' clocks; ranks that were ended because of it do not count. A rank that
// vanished may have done so at any moment since it was last seen, and comes before the failures of
// that time, as it may have caused them. `cancel_asked`: by a user.
agents::Observation GangEnd(const std::string& run_key, const std::vector<Rank>& ranks,
                            bool cancel_asked, absl::Time now);
// Returns the run's progress until then.
agents::Observation GangProgress(const std::string& run_key, const std::vector<Rank>& ranks,
                                 absl::Time now);
// Holds the progress of a run that has not ended, as fields: if two are alike, there is no news.
struct ProgressFacts {
  size_t begun = 0;  // ranks
  size_t over = 0;
  std::string reason;  // the bytes of its reason, without the sentences that are made of it
  bool operator==(const ProgressFacts&) const = default;
};
ProgressFacts FactsOf(v1::StateReason reason, const std::vector<Rank>& ranks);
// Returns the reason that a run has not begun while its files are on their way to its hosts: the
// hosts, and the part of the bytes that has come. `all_bytes`: 0 if nobody knows.
v1::StateReason CopyingReason(const std::vector<std::string>& hosts, uint64_t bytes,
                              uint64_t all_bytes);
// Reports a run of which nobody knows whether it goes on; `why` says since when.
agents::Observation GangLost(const std::string& run_key, const std::vector<Rank>& ranks,
                             const std::string& why, absl::Time now);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_GANG_H_
