// What the engine counts of itself, and the lines of the log that tell it.
#ifndef MUSTER_BROKER_ENGINE_STATS_H_
#define MUSTER_BROKER_ENGINE_STATS_H_

#include <cstdint>

namespace muster::broker {

struct Stats {
  // A change of any of these is worth a line.
  struct Totals {
    // as it is now
    uint64_t queued_jobs = 0;
    uint64_t active_runs = 0;
    // since the start
    uint64_t retries = 0;           // jobs that went back to the queue for another run
    uint64_t dropped_events = 0;    // of agents, of runs that are not active or to illegal states
    uint64_t stale_messages = 0;    // of agents whose connection was superseded
    uint64_t refused_requests = 0;  // of clients, because a lane of the inbox was full
    uint64_t commits = 0;
    uint64_t committed_rows = 0;

    friend bool operator==(const Totals&, const Totals&) = default;
  };
  // The most at once since the last report.
  struct Peaks {
    uint64_t waiting_agents = 0;  // items of each lane of the inbox
    uint64_t waiting_requests = 0;
    uint64_t waiting_submits = 0;
    uint64_t rows_of_commit = 0;
  };

  Totals totals;
  Peaks peaks;
};

// One line `stats`, and a warning if events were dropped since `before`.
void LogStats(const Stats& stats, const Stats::Totals& before);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_STATS_H_
