// The columns of squeue, by their letters (--format) and their names (--Format), and the values
// that a job has in them. Pure, but for the time zone of the process.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SQUEUE_COLUMNS_H_
#define MUSTER_CLIENTS_CLI_SLURM_SQUEUE_COLUMNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/job_record.h"

namespace muster::cli {

struct SqueueColumn {
  char letter;
  std::string_view heading;
  std::string (*value)(const JobRecord& record, absl::Time now);
};

const SqueueColumn& SqueueColumnOf(char letter);
// All letters, in the order of the columns.
std::string SqueueLetters();

// "JobID:18,Name:.8": the columns of --Format. INVALID_ARGUMENT: a name that muster does not have.
absl::StatusOr<ColumnFormat> ParseLongSqueueFormat(std::string_view text);
// The names that it takes, a sentence's list.
std::string LongSqueueNames();

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
