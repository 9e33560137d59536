#include "broker/engine/stats.h"

#include <fmt/format.h>

#include "daemon/log.h"

namespace muster::broker {

void LogStats(const Stats& stats, const Stats::Totals& before) {
  const auto& [totals, peaks] = stats;
  const auto text = [](uint64_t number) { return fmt::format("{}", number); };
  LogEvent(spdlog::level::info, "stats",
           {{"queued_jobs", text(totals.queued_jobs)},
            {"active_runs", text(totals.active_runs)},
            {"succeeded_jobs", text(totals.succeeded_jobs)},
            {"failed_jobs", text(totals.failed_jobs)},
            {"canceled_jobs", text(totals.canceled_jobs)},
            {"retries", text(totals.retries)},
            {"dropped_events", text(totals.dropped_events)},
            {"stale_messages", text(totals.stale_messages)},
            {"refused_requests", text(totals.refused_requests)},
            {"commits", text(totals.commits)},
            {"committed_rows", text(totals.committed_rows)},
            {"most_waiting_agents", text(peaks.waiting_agents)},
            {"most_waiting_requests", text(peaks.waiting_requests)},
            {"most_waiting_submits", text(peaks.waiting_submits)},
            {"most_rows_of_commit", text(peaks.rows_of_commit)}});
  if (totals.dropped_events > before.dropped_events) {
    LogEvent(spdlog::level::warn, "agent_events_dropped",
             {{"count", text(totals.dropped_events - before.dropped_events)}});
  }
}

}  // namespace muster::broker
