// Reads Slurm's queue: what squeue is asked, and what it answers.
#ifndef MUSTER_AGENTS_SLURM_QUEUE_H_
#define MUSTER_AGENTS_SLURM_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/slurm/job_id.h"
#include "agents/slurm/states.h"
#include "muster/v1/job.pb.h"

namespace muster::slurm {

// Returns what Slurm has chosen, by its own words: "(null)" and the like are no names, and a list
// of partitions is what a job that waits may get.
v1::SlurmAllocation AllocationOf(std::string_view partition, std::string_view account,
                                 std::string_view qos);

// One job, or one task of an array.
struct QueueRow {
  JobId job_id;
  std::string name;
  SlurmState state;
  std::string reason;
  std::string node_list;  // Slurm's short form, "n[1-4]"; empty before the start
  std::optional<absl::Time> submit_time;
  std::optional<absl::Time> start_time;  // of a pending job: Slurm's guess, if it has one
  std::optional<absl::Time> end_time;    // of a running job: when its time limit ends it
  v1::SlurmAllocation allocation;
  uint32_t restarts = 0;  // how often Slurm has put it back and started it again
  // The owner of the job; nothing if it was not asked for.
  std::optional<uint32_t> user_id = {};
  // The row stands for an array, in place of tasks whose list slurmrestd has cut off: those from
  // this id on that no other row names may be in it.
  std::optional<uint32_t> unnamed_from = {};
};

// All jobs of the user in any state, ended ones too as long as slurmctld remembers them; with a
// name, only those that are called so. To be run with SLURM_TIME_FORMAT=%s.
std::vector<std::string> QueueArguments(std::string_view name = {});

// INTERNAL with the line if one cannot be read: then the answer is no proof that any job is gone.
absl::StatusOr<std::vector<QueueRow>> ParseQueue(std::string_view output);

// Does the same for all users, who may call their jobs anything, even what looks like a line of
// others: `separator`, which none of them can know, parts the columns. A line of another form is
// somebody's name, and is left out.
std::vector<std::string> QueueArgumentsForAll(std::string_view separator);
std::vector<QueueRow> ParseQueueOfAll(std::string_view output, std::string_view separator);

// "n[1-2,7],gpu" as n1, n2, n7, gpu. Empty if the text is none, or names more than kMaxNodes.
inline constexpr size_t kMaxNodes = 10000;
std::vector<std::string> ExpandNodeList(std::string_view list);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_QUEUE_H_
