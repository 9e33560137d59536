// Makes the parts of a plan: a job's submission, and the answer of sbatch --test-only to it. Pure.
#ifndef MUSTER_AGENTS_SLURM_PLAN_H_
#define MUSTER_AGENTS_SLURM_PLAN_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/check_list.h"
#include "agents/slurm/run_files.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::slurm {

struct StartEstimate {
  absl::Time start;
  std::vector<std::string> nodes;
};

// "Job 25 to start at 1795251029 using 2 processors on nodes n[1-2] in partition debug": the time
// as SLURM_TIME_FORMAT=%s writes it. Nothing if there is no such sentence.
std::optional<StartEstimate> ParseEstimate(std::string_view words);

// `words` are those of Scheduler::EstimateStart. Adds what they mean to the checks, and the
// estimate to the plan.
void TakeEstimate(const absl::StatusOr<std::string>& words, agents::CheckList* checks,
                  v1::JobPlan* plan);

// Returns a command line as a comment that can be pasted into a shell, with its end of line.
// INVALID_ARGUMENT: a word that no shell can be given.
absl::StatusOr<std::string> CommentLine(std::string text, const std::vector<std::string>& words);

// Lists the files that are written before sbatch, and their places.
std::string FilesText(const std::vector<RunFile>& files, const RunPaths& paths);

// Returns batch.sh behind its name, which is alike for all jobs.
std::string BatchScriptText();

// Returns the text that batch.sh starts: the setup, if there is one, then the command or that of
// each role. INVALID_ARGUMENT as above.
absl::StatusOr<std::string> ProgramsText(const v1::JobSpec& spec);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_PLAN_H_
