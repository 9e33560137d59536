// Writes the files of a run: the user's command, environment and setup travel in them, so that no
// shell ever reads what a user wrote.
#ifndef MUSTER_AGENTS_SLURM_RUN_FILES_H_
#define MUSTER_AGENTS_SLURM_RUN_FILES_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/lease_file.h"
#include "contract/shell_environment.h"
#include "fmt/format.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::slurm {

// The paths of one run's files. README.md in this folder says what is in them.
class RunPaths {
 public:
  RunPaths(std::string_view runs_directory, std::string_view run_key)
      : root_(runs_directory), directory_(root_ + "/" + std::string(run_key)), run_key_(run_key) {}

  // Returns the directory that has all runs of one user.
  const std::string& root() const { return root_; }
  const std::string& run_key() const { return run_key_; }
  const std::string& directory() const { return directory_; }
  // Returns the directory in which the command starts if the job names none: the files that it
  // leaves there are the user's.
  std::string work() const { return directory_ + "/work"; }
  std::string specs() const { return directory_ + "/specs"; }
  // Returns "environment", or a role's.
  std::string environment_of(std::string_view name) const {
    return directory_ + "/env/" + std::string(name);
  }
  std::string meta() const { return directory_ + "/meta"; }
  // Tells batch.sh for which processes the next signal is.
  std::string signal() const { return directory_ + "/signal"; }
  // Written by batch.sh at each start.
  std::string start_note() const { return meta() + "/slurm.json"; }
  // Written by batch.sh: the files that have a batch script's standard error, a line each.
  std::string script_errors() const { return meta() + "/errors"; }
  std::string script() const { return directory_ + "/sbatch/batch.sh"; }
  std::string command_line() const { return directory_ + "/sbatch/command"; }
  std::string claim() const { return directory_ + "/claim"; }
  // Returns a claim without a job's id, taken away.
  std::string dead_claim() const { return claim() + ".dead"; }
  std::string slurm_output() const { return directory_ + "/slurm-logs/slurm.out"; }
  std::string standard_output(uint32_t rank) const { return RankFile(rank, "out"); }
  std::string standard_error(uint32_t rank) const { return RankFile(rank, "err"); }
  // All exit records are in one directory, so that one listing shows which runs have ended.
  std::string exit_record() const { return EndedDirectory(root_) + "/" + run_key_; }

  // The directories that must be there before the files are written and the job is submitted: Slurm
  // fails a job whose output it cannot open, and says nothing but 0:53.
  std::vector<std::string> Directories() const {
    return {directory_,
            specs(),
            directory_ + "/env",
            meta(),
            directory_ + "/sbatch",
            directory_ + "/slurm-logs",
            work()};
  }

  static std::string EndedDirectory(const std::string& runs_directory) {
    return runs_directory + "/ended";
  }
  // Returns the directory of the lease, which containers see, too, whenever its file is renewed.
  static std::string LeaseDirectory(const std::string& runs_directory) {
    return runs_directory + "/lease";
  }
  static std::string LeaseFilePath(const std::string& runs_directory) {
    return fmt::format("{}/{}", LeaseDirectory(runs_directory), agents::kLeaseFileName);
  }

 private:
  std::string RankFile(uint32_t rank, const char* suffix) const {
    return directory_ + "/slurm-logs/rank-" + std::to_string(rank) + "." + suffix;
  }

  std::string root_;
  std::string directory_;
  std::string run_key_;
};

struct RunFile {
  std::string path;
  std::string content;
  uint32_t mode = 0600;
};

// Returns the text of batch.sh.
std::string_view BatchScript();

// The most starts by Slurm of a job that still asks to be requeued after its slurm.timeout.
inline constexpr uint32_t kMaxTimeoutRequeues = 100;

// Returns the files to write before sbatch. `shell` has the variables that a batch script takes
// along from where it was submitted; for `taken_limits`, see LimitsFile. INVALID_ARGUMENT: a
// variable that bash does not let anyone set.
absl::StatusOr<std::vector<RunFile>> MakeRunFiles(
    const agent::v1::Assignment& assignment, std::string_view cluster, const RunPaths& paths,
    uint32_t max_timeout_requeues = kMaxTimeoutRequeues, const contract::ShellVariables& shell = {},
    const std::set<std::string>& taken_limits = {});

// Makes the notes for people: the job as it was asked for, less the values of its environment; who
// runs it, where and since when; and the command line of sbatch. Nothing reads it again.
std::vector<RunFile> MakeRunNotes(const agent::v1::Assignment& assignment, std::string_view cluster,
                                  const RunPaths& paths,
                                  const std::vector<std::string>& sbatch_words,
                                  absl::Time submit_time);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_RUN_FILES_H_
