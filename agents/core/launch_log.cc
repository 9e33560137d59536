#include "agents/core/launch_log.h"

#include "daemon/log.h"

namespace muster::agents {

void LogLaunch(const Launched& launched) {
  if (launched.outcome.kind == LaunchOutcome::Kind::kLaunched) {
    LogEvent(spdlog::level::debug, "launched",
             {{"run", launched.run_key}, {"external_id", launched.outcome.external_id}});
    return;
  }
  if (launched.outcome.kind == LaunchOutcome::Kind::kDeferred) {
    // The broker is told, too; each try says it again.
    LogEvent(spdlog::level::debug, "launch_deferred",
             {{"run", launched.run_key}, {"why", launched.outcome.evidence.detail()}});
    return;
  }
  const bool refused = launched.outcome.kind == LaunchOutcome::Kind::kRefused;
  LogEvent(
      spdlog::level::warn, refused ? "launch_refused" : "launch_unclear",
      {{"run", launched.run_key},
       {"why", refused ? launched.outcome.failure.message() : launched.outcome.evidence.detail()}});
}

}  // namespace muster::agents
