// Jobs and their history as slurmrestd tells them.
#ifndef MUSTER_AGENTS_SLURM_REST_ROWS_H_
#define MUSTER_AGENTS_SLURM_REST_ROWS_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/slurm/details.h"
#include "agents/slurm/history.h"
#include "agents/slurm/queue.h"
#include "agents/slurm/usage.h"

namespace muster::slurm {

// Returns the user's jobs, every task of an array apart; with a name, those that are called so.
// INTERNAL if the answer has no list of jobs, or one of them cannot be read: then it is no proof
// that any job is gone.
absl::StatusOr<std::vector<QueueRow>> RestQueue(const nlohmann::json& answer, std::string_view user,
                                                std::string_view name);
// Returns all users' jobs that have not ended, every task of an array apart. INTERNAL likewise.
absl::StatusOr<std::vector<QueuedJob>> RestWholeQueue(const nlohmann::json& answer);
// One job as slurmctld remembers it, from an answer about it, or about its array. NOT_FOUND: the
// answer is about others.
absl::StatusOr<HistoryRow> RestJob(const nlohmann::json& answer, const JobId& id);
// Returns the user's jobs from accounting, likewise.
absl::StatusOr<std::vector<HistoryRow>> RestHistory(const nlohmann::json& answer,
                                                    std::string_view user);

// Returns the counts of accounting for the user's jobs, likewise.
absl::StatusOr<std::vector<UsageRow>> RestUsage(const nlohmann::json& answer,
                                                std::string_view user);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_ROWS_H_
