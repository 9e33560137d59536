// Finds the users of this machine that jobs run as, if they run as their users.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_MACHINES_RUN_USERS_H_
#define MUSTER_AGENTS_MACHINES_RUN_USERS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "agents/machines/machines.h"
#include "agents/machines/run_user.h"
#include "agents/machines/scheduling/request.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

class RunUsers {
 public:
  // FAILED_PRECONDITION: nothing can run as another user here, or the agent's own files are open to
  // others; it says what to do.
  static absl::StatusOr<std::unique_ptr<RunUsers>> Create(const MachinesConfig& config,
                                                          const std::string& state_dir);

  // Returns the user of a run, by the map alone.
  absl::StatusOr<RunUser> UserOf(const std::string& muster_user, std::string_view run_key) const;
  // Returns why nothing of that user of Muster runs here, also by the word of muster-run-as.
  std::optional<Misfit> RefusalOf(const std::string& muster_user) const;
  // Returns whether programs could run as users now.
  absl::Status Probe() const;
  // Returns the directory below which each user has one.
  const std::string& work_root() const { return work_root_; }

 private:
  RunUsers(const MachinesConfig& config, std::string work_root)
      : helper_(config.run_as_helper),
        supervisor_(config.supervisor_path),
        map_(config.run_as_map),
        work_root_(std::move(work_root)) {}

  const std::string helper_;
  const std::string supervisor_;
  const std::string map_;
  const std::string work_root_;
};

// This machine as the user sees it; as the agent does if the run has no other user.
std::unique_ptr<hosts::Host> HostFor(const RunUser& user);

// Returns the line of a check that says as whom jobs run.
v1::ClusterCheck UsersLine(const RunUsers& users);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_USERS_H_
