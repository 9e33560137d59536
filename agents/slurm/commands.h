// Runs Slurm's commands in their turn, with a clean environment, and bounded.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_SLURM_COMMANDS_H_
#define MUSTER_AGENTS_SLURM_COMMANDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/host.h"
#include "agents/slurm/call_gate.h"
#include "agents/slurm/slurm.h"
#include "sync/mutex.h"

namespace muster::slurm {

// Returns the error of a command that the host did not run, with these words. PERMISSION_DENIED:
// nothing runs as its user; UNAVAILABLE otherwise.
absl::Status CouldNotRun(const absl::Status& why, std::string_view words);

class Commands {
 public:
  // Both must outlive this object. Every command waits at the gate but those that do not ask Slurm.
  Commands(const SlurmConfig& config, hosts::Host* host, CallGate* gate);

  // Returns whether a command is there: it is asked for its version, which is no call to the
  // scheduler.
  absl::Status Check(const std::string& name);
  // Runs a command that asks the scheduler nothing, such as srun --help; it does not wait at the
  // gate.
  absl::StatusOr<hosts::CommandResult> RunUncounted(std::vector<std::string> argv);
  // Runs argv[0] of Slurm to its end.
  absl::StatusOr<hosts::CommandResult> Run(std::vector<std::string> argv);
  // Runs sbatch with the environment that the job is to have.
  absl::StatusOr<hosts::CommandResult> RunSbatch(std::vector<std::string> argv);
  // Returns the output of a command that succeeded; otherwise UNAVAILABLE with what it said, or the
  // error of CouldNotRun.
  absl::StatusOr<std::string> Ask(std::vector<std::string> argv);

  // Returns the environment that sbatch runs with, and passes on to the job. UNAVAILABLE: the host
  // could not be asked who the user is.
  absl::StatusOr<std::map<std::string, std::string>> JobEnvironment();

 private:
  absl::StatusOr<hosts::CommandResult> RunInTurn(hosts::Command command);
  absl::StatusOr<hosts::CommandResult> RunClean(hosts::Command command);
  // Asks for HOME, USER and LOGNAME on the host. UNAVAILABLE: it could not be asked.
  absl::StatusOr<std::map<std::string, std::string>> WhoAmI();

  // These are constant after construction.
  const SlurmConfig config_;
  hosts::Host* const host_;
  CallGate* const gate_;
  std::map<std::string, std::string> job_environment_;
  std::map<std::string, std::string> environment_;

  mutable Mutex mutex_;
  std::optional<std::map<std::string, std::string>> identity_
      ABSL_GUARDED_BY(mutex_);  // once it is known
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_COMMANDS_H_
