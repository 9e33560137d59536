// The columns of squeue, by their letters (--format) and their names (--Format), and the values
// that a job has in them. Pure, except for the time zone of the process.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SQUEUE_COLUMNS_H_
#define MUSTER_CLIENTS_CLI_SLURM_SQUEUE_COLUMNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/job_record.h"

namespace muster::cli {

// The letters of times that have passed or may pass, which squeue never cuts.
inline constexpr std::string_view kSqueueWhole = "lLM";

// The column's heading. It has the letter, or one of those that stand for a name.
std::string_view SqueueHeading(char letter);
std::string SqueueValue(char letter, const JobRecord& record, absl::Time now);
// All letters, in the order of the columns.
std::string SqueueLetters();
// The names of --Format, with letters that --format does not take for those that have none.
LongNames SqueueLongNames();

// A line of squeue.
struct SqueueRow {
  const JobRecord* record = nullptr;
  std::vector<std::string> values;  // in the order of the format
};
// The rows of the records. Without `each_task`, tasks of an array that wait and whose rows differ
// in nothing else share one: "42_[1-3,7]", "42_[1-9%4]".
std::vector<SqueueRow> SqueueRows(std::span<const JobRecord> records, const ColumnFormat& format,
                                  bool each_task, absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SQUEUE_COLUMNS_H_
