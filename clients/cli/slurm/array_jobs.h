// Numbers of jobs as Slurm's users write them: an array's number means all its tasks.
#ifndef MUSTER_CLIENTS_CLI_SLURM_ARRAY_JOBS_H_
#define MUSTER_CLIENTS_CLI_SLURM_ARRAY_JOBS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/invocation.h"
#include "clients/cpp/client.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

// "42", or "42_3" for the task 3 of the array 42.
struct JobName {
  uint64_t number = 0;  // from 1
  std::optional<uint32_t> task;
};
// Returns nothing if it is no name of a job.
std::optional<JobName> ParseJobName(std::string_view text);
// The same of several at once: "42_*" is the array, "42_[1-3,7]" four of its tasks. Empty: it is
// no name.
std::vector<JobName> ParseJobNames(std::string_view text);

// The tasks of "5" or "[1-3,7]"; empty: it is neither.
std::vector<uint32_t> ParseTasks(std::string_view text);

// "42_3" for a task of an array, else "42". The job has its spec.
std::string NameOf(const v1::Job& job);

// Returns a note for a user who named this task alone: "job 43 is one of the 4 tasks of the array
// 42; the others: 42, 44 to 45; all of them: muster cancel '42_*'". Empty: there are no others. The
// job has its spec.
std::string OtherTasksText(const v1::Job& job, std::string_view verb);
// "task 5 of the array 42, the 2nd of its 4 tasks"; empty: it is no task.
std::string TaskText(const v1::Job& job);

// Muster's numbers of the jobs that are meant: of an array's number those of all tasks, one after
// the other. A number that no job has stays as it is. NOT_FOUND: the array has no such task, or the
// job is no array.
absl::StatusOr<std::vector<uint64_t>> NumbersOf(client::Client& client,
                                                const std::vector<JobName>& names);

// Puts the jobs that are meant in place of "42_5" and "42_*". NOT_FOUND: the array has no such
// task, or no array has that number.
absl::Status ResolveTasks(client::Client& client, std::vector<JobRef>* refs);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_ARRAY_JOBS_H_
