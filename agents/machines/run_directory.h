// The agent's side of a run's directory (run_records.h). No state: every call looks at the disk.
// Errors name the path.
#ifndef MUSTER_AGENTS_MACHINES_RUN_DIRECTORY_H_
#define MUSTER_AGENTS_MACHINES_RUN_DIRECTORY_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/machines/run_records.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::machines {

// The present content of a run's directory.
struct RunFiles {
  std::optional<RunSpec> spec;
  bool claimed = false;
  std::optional<Claim> claim;  // also absent if it was cut by a power failure
  std::optional<Started> started;
  std::optional<ExitRecord> exit;
  bool cancel_asked = false;

  // Returns whether there is any trace of a start. No single file decides, because the run can
  // write to its directory.
  bool HasBegun() const { return claimed || started.has_value() || exit.has_value(); }
};

// Returns "NAME=value" for each.
std::vector<std::string> Variables(const std::map<std::string, std::string>& environment);

// Shows the run key of each directory of a run. Errors: the directory of them all cannot be listed.
absl::Status ForEachRun(const std::string& runs_directory,
                        const std::function<void(const std::string& run_key)>& show);

// The rules that are the same for all runs of a cluster.
struct RunRules {
  absl::Duration cancel_grace;  // between TERM and KILL
  bool limits = true;           // hold runs to the memory and cores that they ask for
  std::string container_tool = {};
};

// Makes the spec that a supervisor gets, for a run whose scripts and work/ are in the `directory`.
RunSpec MakeRunSpec(const agent::v1::Assignment& assignment, const std::string& directory,
                    const std::map<std::string, std::string>& environment, const RunRules& rules);

class RunDirectory {
 public:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;

  bool Exists() const;
  // Returns everything empty if the directory does not exist.
  absl::StatusOr<RunFiles> Read() const;
  absl::StatusOr<std::optional<Started>> ReadStarted() const;
  // Moves a directory of the same file system to the place of work/. The run must not have begun.
  absl::Status TakeWork(const std::string& work) const;
  bool HasWork() const;
  void RemoveWork() const;
  // Makes the directory with its spec, on disk when it returns OK.
  absl::Status Create(const RunSpec& spec) const;
  // Notes that the run is to end.
  absl::Status AskCancel() const;
  // Takes the claim for this process, so that the run counts as canceled since `now_us` and never
  // begins. ALREADY_EXISTS: it has begun.
  absl::Status CloseWithoutStart(int64_t now_us) const;
  // Removes the files that only the backend needs. The files that prove that the run was here, the
  // logs and work/ stay.
  void RemoveBookkeeping() const;
  // Removes the rest; work/ stays, and the claim, if the user has left files there.
  void RemoveLogs() const;

 private:
  std::string path_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_DIRECTORY_H_
