// Reads Slurm's memory of jobs that have left its queue: accounting (sacct), or slurmctld itself
// (scontrol show job).
#ifndef MUSTER_AGENTS_SLURM_HISTORY_H_
#define MUSTER_AGENTS_SLURM_HISTORY_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/slurm/job_id.h"
#include "agents/slurm/states.h"
#include "muster/v1/job.pb.h"

namespace muster::slurm {

struct HistoryRow {
  JobId job_id;
  std::string name;
  SlurmState state;
  int exit_code = 0;
  int signal = 0;
  bool exit_is_known = true;  // false: neither of the two was told
  std::string node_list;      // empty: it never had nodes
  std::optional<absl::Time> start_time;
  std::optional<absl::Time> end_time;
  v1::SlurmAllocation allocation;
  bool from_accounting = true;  // false: from scontrol

  // Returns "FAILED 0:53", as sacct prints it.
  std::string Words() const;
  // A submission that slurmctld refused for its node configuration leaves a job that has failed and
  // never had nodes.
  bool WasRefused() const { return state.phase == JobPhase::kFailed && node_list.empty(); }
};

// One sacct gets at most this many job ids, an argument list that any system takes.
inline constexpr size_t kMaxIdsPerHistoryCall = 500;

// Adds the rows of lines about several tasks, but for tasks that have a row already.
template <typename Row>
void AddTogether(std::vector<Row> together, std::vector<Row>* rows) {
  std::set<std::pair<JobId, std::string>> told;
  for (const Row& row : *rows) told.emplace(row.job_id, row.name);
  for (Row& row : together) {
    if (!told.contains({row.job_id, row.name})) rows->push_back(std::move(row));
  }
}

// Asks by id; for tasks about the whole of their array, which tells whether the rest of it is
// known. Without a window sacct shows today only, so `since` is always given.
std::vector<std::string> HistoryArguments(const std::vector<JobId>& ids, absl::Time since);
// Asks by name; the answer has every job, also those that a used id or a requeue left. A job that
// was never eligible (held, waiting for another) is not shown, also not after its end.
std::vector<std::string> HistoryArguments(std::string_view name, absl::Time since);

// INTERNAL with the line if one cannot be read. A line about several tasks of an array becomes a
// row for each that has no line of its own: accounting keeps the tasks in the line that have been
// started since.
absl::StatusOr<std::vector<HistoryRow>> ParseHistory(std::string_view output);

// Returns "scontrol --oneliner show job ID".
std::vector<std::string> ShowJobArguments(const JobId& id);
// Returns nothing if it is not a job as scontrol shows it. A task's output has no id that names it
// alone, so the caller knows which one it has asked for.
std::optional<HistoryRow> ParseShowJob(std::string_view output);

// Returns whether sacct says that this cluster keeps no accounting at all.
bool IsAccountingDisabled(std::string_view stderr_text);
// Returns whether a command says that slurmctld does not know the job id (any more).
bool IsUnknownJob(std::string_view stderr_text);
// Returns whether a command says that the job has ended, so that there is nothing left to do to it.
bool HasEndedAlready(std::string_view stderr_text);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_HISTORY_H_
