// Makes submissions: what Slurm is given, and what its answer means.
#ifndef MUSTER_AGENTS_SLURM_SUBMIT_H_
#define MUSTER_AGENTS_SLURM_SUBMIT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/hosts/host.h"
#include "agents/slurm/arrays.h"
#include "agents/slurm/run_files.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::slurm {

// GPU types as slurm.conf spells them, by their lower-case form: Slurm compares them with case,
// Muster without.
using GpuTypes = std::map<std::string, std::string>;

// A batch job, in sbatch's terms.
struct Submission {
  // "--name=value" or "--name". Each is an argument of its own, so no value can be read as another
  // option or as shell text.
  std::vector<std::string> options;
  // A bash script on the cluster's shared file system.
  std::string script;
  // The arguments of the script.
  std::vector<std::string> arguments;
};

// Returns the words that follow "sbatch" on its command line.
std::vector<std::string> SbatchArguments(const Submission& submission);

// Describes an array of runs with the same options: what it is called, where its files are, the ids
// of its tasks, which rise, and how many may run at the same time (0 means all).
struct TaskArray {
  std::string name;
  ArrayPaths paths;
  std::vector<uint32_t> tasks;
  uint32_t limit = 0;
};

// Returns the run's job. `after` is the Slurm job whose end, however it comes, the run waits for.
// `array` is the job of all its runs, of which this is the first. INVALID_ARGUMENT names the field
// of the spec that Slurm could not be given.
absl::StatusOr<Submission> MakeSubmission(const agent::v1::Assignment& assignment,
                                          const RunPaths& paths, const GpuTypes& gpu_types,
                                          std::optional<uint64_t> after = std::nullopt,
                                          const TaskArray* array = nullptr);

// Returns whether the run may be a task of an array of Slurm's: if it is a task of a job array, and
// does not wait for jobs by their name. No other run may be one, whatever the two have in common:
// the number of an array's last task is the array's, so its `scancel $SLURM_JOB_ID` ends all of
// them.
bool MayBeTask(const v1::JobSpec& spec);

// Returns whether the run waits for the task of another array that has the same id (aftercorr).
bool WaitsForSameTask(const v1::JobSpec& spec);

// The spec's time limit as Slurm counts it; 0 if it has none.
uint64_t TimeLimitMinutes(const v1::JobSpec& spec);

// The facts after a submission. `result` is an error if sbatch was not run to its end, or not let
// through the gate.
struct SubmitOutcome {
  agents::LaunchOutcome::Kind kind = agents::LaunchOutcome::Kind::kUnclear;
  uint64_t job_id = 0;  // kLaunched
  v1::Failure failure;  // kRefused
  // With kRefused, no more jobs may be submitted now; others make room when they end.
  bool is_full = false;
  // With kDeferred, nobody has waited for a turn, so a pause is due.
  bool needs_pause = false;
  std::string words;  // what was said, for the evidence
  // With kUnclear, the answer is an error that no table holds. The cluster does not have the job,
  // once a look-up has shown that. Slurm's own words for it, a line.
  std::string unknown_words;
};
SubmitOutcome ClassifySubmit(const absl::StatusOr<hosts::CommandResult>& result);
// Returns the limit that sbatch names on a line before the refusal; without a code if none.
v1::StateReason LimitIn(std::string_view stderr_text);
// Classifies Slurm's own error for a submission. `limit`: as LimitIn has it.
SubmitOutcome ClassifyError(std::string_view slurm_words, const v1::StateReason& limit,
                            std::string all_words);
// Returns the outcome of a job that nobody was asked to take, since it cannot be said there.
SubmitOutcome NotSent(std::string words);
// Returns the outcome of a submission that nobody was asked for, and that may go later.
SubmitOutcome NobodyAsked(std::string_view words);
// Returns the outcome after an error that kept the answer from coming, which tells whether anybody
// was asked at all.
SubmitOutcome NoAnswer(const absl::Status& status);

// Returns the failure for a refusal in words that no table holds.
v1::Failure UnknownRefusal(std::string_view slurm_words);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_SUBMIT_H_
