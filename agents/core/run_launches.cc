// Runs on their way to a launch: alone, or with all tasks of their array.
#include <optional>
#include <utility>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"

namespace muster::agents {

void RunTable::AwaitLaunch(Run& run, const Step& step) {
  const std::optional<ArrayMember> member =
      options_.gathers_arrays ? ArrayMemberOf(*run.record.assignment) : std::nullopt;
  if (!member.has_value()) {
    launch_queue_.Add(run.record.order, run.key(), run.brings_files());
    return;
  }
  if (auto whole = gathering_.Add(run.record.order, run.key(), *member, step.now))
    launch_queue_.AddTogether(*std::move(whole), /*has_files=*/false);
}

// The tasks of an array go together again: they were looked up one by one.
void RunTable::LaunchAgain(Run& run, const Step& step) {
  constexpr std::string_view kWhy = "the cluster does not know the run; launching it again";
  if (!options_.gathers_arrays || !ArrayMemberOf(*run.record.assignment).has_value())
    return StartLaunch(run, kWhy, step);
  run.absent_since = absl::InfiniteFuture();
  agent::v1::RunEvent event;
  *event.mutable_evidence() = AgentEvidence(step.wall, kWhy);
  Change(run, std::move(event), v1::RUN_STATE_LAUNCHING, step);
  AwaitLaunch(run, step);
}

}  // namespace muster::agents
