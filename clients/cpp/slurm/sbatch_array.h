// The value of sbatch's --array. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_ARRAY_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_ARRAY_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "contract/task_array.h"

namespace muster::client::slurm {

// Reads "0-15", "1,3,5-7", "1-7:2%4", also in brackets: the tasks by their ids, each once. After
// the '%' is the most tasks at the same time; 0 is no limit. Slips are read as slurmctld reads
// them: what is no number after the '%' is no limit, and a list without any task ("," or "") is no
// array. INVALID_ARGUMENT says what to write instead: it cannot be read, has more than
// contract::kMaxArrayTasks tasks, or an id above contract::kMaxArrayTaskId.
absl::StatusOr<std::vector<contract::ArrayTask>> ParseArray(std::string_view text);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_ARRAY_H_
