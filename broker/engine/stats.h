// The engine's counts of its own work, and the log lines that report them.
#ifndef MUSTER_BROKER_ENGINE_STATS_H_
#define MUSTER_BROKER_ENGINE_STATS_H_

#include <cstdint>

namespace muster::broker {

struct Stats {
  // Holds totals; a change of any of them is worth a log line.
  struct Totals {
    // ---- present values
    uint64_t queued_jobs = 0;
    uint64_t active_runs = 0;
    // ---- counted since the start
    uint64_t succeeded_jobs = 0;  // jobs that ended so
    uint64_t failed_jobs = 0;
    uint64_t canceled_jobs = 0;
    uint64_t retries = 0;  // number of times that a job went back to the queue for another run
    uint64_t dropped_events = 0;  // events of agents that were dropped, because the run is not
                                  // active or the state is illegal
    uint64_t stale_messages = 0;  // messages of agents whose connection was superseded
    uint64_t refused_requests =
        0;  // requests of clients that were refused because a lane of the inbox was full
    uint64_t commits = 0;
    uint64_t committed_rows = 0;

    friend bool operator==(const Totals&, const Totals&) = default;
  };
  // The highest values since the last report.
  struct Peaks {
    uint64_t waiting_agents = 0;  // items of each lane of the inbox
    uint64_t waiting_requests = 0;
    uint64_t waiting_submits = 0;
    uint64_t rows_of_commit = 0;
  };

  Totals totals;
  Peaks peaks;
};

// Writes one line `stats`, and a warning if events were dropped since `before`.
void LogStats(const Stats& stats, const Stats::Totals& before);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_STATS_H_
