// A job that is a task of a job array, as Slurm's users know arrays. To the broker its tasks are
// plain jobs: they are accepted in one call, so that their numbers follow one another, and the
// first one's number stands for the array. A task's environment tells which task it is.
#ifndef MUSTER_PROTO_CONTRACT_TASK_ARRAY_H_
#define MUSTER_PROTO_CONTRACT_TASK_ARRAY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// One call of SubmitJobs takes as many jobs. Each task is a job with a spec of its own, and all of
// them come in one message; Slurm's own default (MaxArraySize) allows 1001.
inline constexpr uint32_t kMaxArrayTasks = 10'000;
// The highest id of a task that any Slurm allows (MaxArraySize is at most 4000001).
inline constexpr uint32_t kMaxArrayTaskId = 4'000'000;

struct ArrayTask {
  uint32_t id = 0;      // SLURM_ARRAY_TASK_ID, 0 to kMaxArrayTaskId
  uint32_t count = 1;   // SLURM_ARRAY_TASK_COUNT, 1 to kMaxArrayTasks
  uint32_t min_id = 0;  // SLURM_ARRAY_TASK_MIN
  uint32_t max_id = 0;  // SLURM_ARRAY_TASK_MAX
  uint32_t step = 1;    // SLURM_ARRAY_TASK_STEP, at least 1
  uint32_t place = 0;   // MUSTER_ARRAY_PLACE: how many tasks come before it, 0 to count - 1
  // MUSTER_ARRAY_LIMIT: the most tasks at the same time, 0 to kMaxArrayTaskId. 0: all may run.
  uint32_t limit = 0;
};

// The number of the array, which a task finds in its environment as soon as its job has a number.
inline constexpr std::string_view kArrayJobVariable = "SLURM_ARRAY_JOB_ID";

// Returns whether a task has the variable in its env; no other job's env may set it.
bool IsArrayVariable(std::string_view name);

// Puts the task into the env of a batch script.
void SetArrayTask(const ArrayTask& task, v1::JobSpec* spec);
// Returns nothing if the job is no task of an array, or a value that tells it is out of its range:
// the id, the count and the place. Other values may be missing, in a part of a spec.
std::optional<ArrayTask> FindArrayTask(const v1::JobSpec& spec);
// Makes a task the only one of an array of its own, under the id that it had: sbatch --array=3
// makes the same of task 3. Its array's other tasks are not submitted with it, so that the numbers
// around its job's are those of other jobs. Earlier releases accepted a count of 0; such a task may
// leave its array, too. Other specs stay as they are.
void LeaveArray(v1::JobSpec* spec);
// Returns a copy that has left its array.
std::shared_ptr<const v1::JobSpec> WithoutArray(v1::JobSpec spec);
// Returns the number of the array, which is the number of its first task's job.
inline uint64_t ArrayNumber(uint64_t job_id, const ArrayTask& task) { return job_id - task.place; }

// "1-3,7", or "1-13:2" for many tasks that are as far apart, as squeue writes them; the ids rise.
std::string TaskRanges(const std::vector<uint32_t>& ids);

// Adds what is wrong with the variables of a task: only a batch script may have them, and then all.
void CheckArrayTask(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_TASK_ARRAY_H_
