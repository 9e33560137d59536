// The usage of runs, as Slurm's accounting has it some time after their ends.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/usage.h"

namespace muster::slurm {

absl::StatusOr<agents::UsageByRun> SlurmBackend::UsageOf(
    const std::vector<agents::RunHandle>& runs) {
  {
    const std::lock_guard lock(mutex_);
    if (!keeps_accounting_) return absl::FailedPreconditionError("the cluster keeps no accounting");
  }
  // Without the lists of arrays a task could not be told from a job of somebody else's.
  if (absl::Status loaded = arrays_.Load(); !loaded.ok()) return loaded;
  std::map<JobId, std::string> keys;
  std::vector<JobId> ids;
  absl::Time since = absl::Now();
  for (const agents::RunHandle& run : runs) {
    const std::optional<JobId> id = ParseJobId(run.external_id);
    if (!id.has_value()) continue;
    ids.push_back(*id);
    keys.emplace(*id, run.run_key);
    since = std::min(since, HistoryBegin(run));
  }
  agents::UsageByRun usage;
  if (ids.empty()) return usage;
  const absl::StatusOr<std::vector<UsageRow>> rows = scheduler_->UsageOf(ids, since);
  if (!rows.ok()) return rows.status();
  for (const UsageRow& row : *rows) {
    const auto key = keys.find(row.job_id);
    // Ids wrap around: the name tells whether it is the same job.
    if (key == keys.end() || !row.has_ended || RunOf(row.name, row.job_id) != key->second) continue;
    usage.insert_or_assign(key->second, row.Usage());
  }
  return usage;
}

}  // namespace muster::slurm
