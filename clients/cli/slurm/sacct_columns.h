// The columns of sacct and the values that a job has in them. Pure, except for the time zone of the
// process.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SACCT_COLUMNS_H_
#define MUSTER_CLIENTS_CLI_SLURM_SACCT_COLUMNS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "clients/cli/slurm/job_record.h"

namespace muster::cli {

// A column: its name, its width in a table, and its value.
struct SacctColumn {
  std::string_view name;
  size_t width;
  std::string (*value)(const JobRecord& record, absl::Time now);
  bool left = false;  // its values begin at the left
};

// Returns all columns of sacct 22.05 and 24.11, in the order of their names. A value that
// Muster does not know, such as the memory and processor time that were used, is the one that sacct
// prints for a job of which it knows nothing.
std::span<const SacctColumn> SacctColumns();

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SACCT_COLUMNS_H_
