// Reads and writes the name of a job in Slurm: a number, or a task of an array.
#ifndef MUSTER_AGENTS_SLURM_JOB_ID_H_
#define MUSTER_AGENTS_SLURM_JOB_ID_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::slurm {

// A task has the array's number, which is the first one's, and its index: the numbers that tasks
// have of their own are not known before they start.
struct JobId {
  uint64_t number = 0;                // 0: none
  std::optional<uint32_t> task = {};  // none: a job that is no array's

  bool is_set() const { return number != 0; }
  // Returns "123" or "123_4", as Slurm prints it, and as its commands take it.
  std::string ToString() const;

  friend auto operator<=>(const JobId&, const JobId&) = default;
};

// Returns nothing if the text is no id, or 0.
std::optional<JobId> ParseJobId(std::string_view text);

// One line of Slurm's may name so many tasks; MaxArraySize is at most 4,000,001.
inline constexpr size_t kMaxTasksInLine = 4'000'001;
// The tasks of an array that Slurm has not told apart yet.
struct TaskSet {
  std::vector<JobId> ids;  // rising
  // The end of the list was cut off: more of the tasks behind the last one may be in the set.
  bool is_cut = false;
};
// Reads "0,4-7,9-21:3%2": ids, ranges, steps, and how many tasks may run at once; "7,10,1...%2" is
// cut off, in the middle of an id. Nothing if the text is none, or names more than kMaxTasksInLine.
std::optional<TaskSet> ParseTaskSet(uint64_t array, std::string_view text);
// Expands Slurm's word for such a set in a list of jobs, "123_[0,4-7%2]", or one id. Empty if the
// text is none, or is cut off.
std::vector<JobId> ExpandJobIds(std::string_view text);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_JOB_ID_H_
