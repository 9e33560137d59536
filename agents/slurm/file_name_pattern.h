// The names of output files as sbatch writes them: "train-%j.out". Source: sbatch(1), FILENAME
// PATTERN.
#ifndef MUSTER_AGENTS_SLURM_FILE_NAME_PATTERN_H_
#define MUSTER_AGENTS_SLURM_FILE_NAME_PATTERN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::slurm {

struct FileNameValues {
  uint64_t job_id = 0;
  // Of an array's task: the array's own id and the task's index.
  std::optional<uint64_t> array_job_id;
  std::optional<uint32_t> array_task;
  std::string node;  // the first one, without its domain
  std::string user;
  std::string job_name;
};

// %j and %J job, %A array's job (%j if it is none), %a task (4294967294 if it is none, as Slurm has
// it), %N node, %n its number (0), %t the task's rank (0), %s the step ("batch"), %u user, %x job's
// name, %% a '%'. A number of up to 10 after the '%' pads ids with zeros: "%4j". Other letters stay
// as they are, less the '%' if there is a number; so does the whole name, less its backslashes, if
// it holds one.
std::string ExpandFileName(std::string_view pattern, const FileNameValues& values);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_FILE_NAME_PATTERN_H_
