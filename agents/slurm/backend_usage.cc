// The usage of runs, as Slurm's accounting has it some time after their ends.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/usage.h"

namespace muster::slurm {
namespace {

// Ids wrap around, so the name tells whether it is the same job. The list of an array's tasks may
// be gone already, but arrays of Muster's do not have one id twice in the life of a run.
bool MayBeOf(const UsageRow& row, const std::string& run_key) {
  return row.job_id.task.has_value() ? IsArrayName(row.name) : row.name == run_key;
}

}  // namespace

absl::StatusOr<agents::UsageByRun> SlurmBackend::UsageOf(
    const std::vector<agents::RunHandle>& runs) {
  {
    const MutexLock lock(mutex_);
    if (!keeps_accounting_) return absl::FailedPreconditionError("the cluster keeps no accounting");
  }
  std::map<JobId, std::string> keys;
  std::map<Scheduler*, std::vector<JobId>> ids;
  absl::Time since = absl::Now();
  for (const agents::RunHandle& run : runs) {
    const std::optional<JobId> id = ParseJobId(run.external_id);
    if (!id.has_value()) continue;
    ids[&SchedulerOf(run.run_key)].push_back(*id);
    keys.emplace(*id, run.run_key);
    since = std::min(since, HistoryBegin(run));
  }
  agents::UsageByRun usage;
  absl::Status status;
  bool has_answer = false;
  for (const auto& [scheduler, share] : ids) {
    const absl::StatusOr<std::vector<UsageRow>> rows = scheduler->UsageOf(share, since);
    if (absl::IsFailedPrecondition(rows.status())) return rows.status();
    // A user who cannot be served holds up no other: the runs are asked for again.
    if (!rows.ok()) {
      status.Update(rows.status());
      continue;
    }
    has_answer = true;
    for (const UsageRow& row : *rows) {
      const auto key = keys.find(row.job_id);
      if (key == keys.end() || !row.has_ended || !MayBeOf(row, key->second)) continue;
      usage.insert_or_assign(key->second, row.Usage());
    }
  }
  if (!has_answer && !status.ok()) return status;
  return usage;
}

}  // namespace muster::slurm
