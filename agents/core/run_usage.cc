// The usage of runs on clusters that know it only after the end: asked for beside the reading of
// logs, and told whenever it comes. A run stays until it is known or given up.
#include <utility>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"

namespace muster::agents {

void RunTable::AwaitUsage(const Run& run, const Step& step) {
  const bool was_there = !run.record.external_id.empty();
  if (options_.asks_usage && was_there && !run.told.has_usage()) usage_.Add(run.key(), step.now);
}

void RunTable::AskUsage(const Step& step) {
  std::vector<RunHandle> runs;
  for (const std::string& key : usage_.TakeDue(step.now)) runs.push_back(Handle(*Find(key)));
  if (!runs.empty()) step.out->effects.push_back(DoReadUsage{std::move(runs)});
}

void RunTable::OnUsageRead(UsageRead& read, const Step& step) {
  // Such an answer has cost the cluster nothing.
  const bool counts = !absl::IsFailedPrecondition(read.usage.status());
  if (!counts) GiveUpUsage(step);
  if (read.usage.ok()) {
    for (auto& [key, usage] : *read.usage) {
      if (!usage_.Contains(key)) continue;
      usage_.Erase(key);
      Run& run = *Find(key);
      if (!usage.has_value()) {
        EndUsage(run, step);
        continue;
      }
      agent::v1::RunEvent event;
      *event.mutable_evidence() =
          AgentEvidence(step.wall, "the cluster's accounting has what the run used");
      *event.mutable_usage() = *std::move(usage);
      *run.told.mutable_usage() = event.usage();
      // Its acknowledgement lets the run go if its logs are complete.
      Tell(run, std::move(event), step);
    }
  }
  for (const std::string& key :
       usage_.Answered(step.now, counts ? kUsageInterval : absl::ZeroDuration()))
    EndUsage(*Find(key), step);
}

void RunTable::GiveUpUsage(const Step& step) {
  for (const std::string& key : usage_.TakeAll()) EndUsage(*Find(key), step);
}

// No usage comes any more.
void RunTable::EndUsage(Run& run, const Step& step) {
  if (run.is_acknowledged) LetGo(run, step);
}

}  // namespace muster::agents
