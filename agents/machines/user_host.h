// This machine as one of its users sees it: commands and scripts run as that user, by muster-run-as
// (agents/run_as), so that they reach what the user may reach, and nothing else.
#ifndef MUSTER_AGENTS_MACHINES_USER_HOST_H_
#define MUSTER_AGENTS_MACHINES_USER_HOST_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agents/hosts/local_host.h"
#include "agents/hosts/script_host.h"
#include "agents/machines/run_user.h"

namespace muster::machines {

// UNAVAILABLE, with the words of muster-run-as: it does not run programs as this user now.
class UserHost : public hosts::ScriptHost {
 public:
  explicit UserHost(RunUser user) : user_(std::move(user)) {}

  std::string Name() const override { return "this machine for user " + user_.name; }
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override;

 protected:
  absl::StatusOr<hosts::ExecResult> RunScript(std::string_view body, std::string_view input,
                                              size_t max_stdout_bytes) override;

 private:
  const RunUser user_;
  hosts::LocalHost local_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_USER_HOST_H_
