// Gets the usage of runs on clusters that know it only after the end. It is asked for beside the
// reading of logs and the cleaning up, and told whenever it comes.
#include <utility>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"

namespace muster::agents {

void RunTable::AwaitUsage(const Run& run, const Step& step) {
  const bool was_there = !run.record.external_id.empty();
  if (options_.asks_usage && was_there && !run.told.has_usage()) usage_.Add(run.key(), step.now);
}

RunTable::Run& RunTable::AwaitingUsage(const std::string& run_key) {
  Run* run = Find(run_key);
  return run != nullptr ? *run : leaving_.at(run_key).run;
}

void RunTable::AskUsage(const Step& step) {
  std::vector<RunHandle> runs;
  for (const std::string& key : usage_.TakeDue(step.now))
    runs.push_back(Handle(AwaitingUsage(key)));
  if (!runs.empty()) step.out->effects.push_back(DoReadUsage{std::move(runs)});
}

void RunTable::OnUsageRead(UsageRead& read, const Step& step) {
  // FAILED_PRECONDITION has cost the cluster nothing.
  const bool counts = !absl::IsFailedPrecondition(read.usage.status());
  if (!counts) GiveUpUsage(step);
  if (read.usage.ok()) {
    for (auto& [key, usage] : *read.usage) {
      if (!usage_.Contains(key)) continue;
      if (usage.has_value()) TellUsage(AwaitingUsage(key), *std::move(usage), step);
      usage_.Erase(key);
      DropIfDone(key, step);
    }
  }
  for (const std::string& key :
       usage_.Answered(step.now, counts ? kUsageInterval : absl::ZeroDuration()))
    DropIfDone(key, step);
}

void RunTable::TellUsage(Run& run, v1::ResourceUsage usage, const Step& step) {
  agent::v1::RunEvent event;
  *event.mutable_evidence() =
      AgentEvidence(step.wall, "the cluster's accounting has what the run used");
  *event.mutable_usage() = std::move(usage);
  *run.told.mutable_usage() = event.usage();
  Tell(run, std::move(event), step);
}

void RunTable::GiveUpUsage(const Step& step) {
  for (const std::string& key : usage_.TakeAll()) DropIfDone(key, step);
}

}  // namespace muster::agents
