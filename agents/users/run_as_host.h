// A host as one of its users sees it: commands and scripts run there as that user, by muster-run-as
// (agents/run_as), so that they reach what the user may reach, and nothing else.
#ifndef MUSTER_AGENTS_USERS_RUN_AS_HOST_H_
#define MUSTER_AGENTS_USERS_RUN_AS_HOST_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "agents/hosts/script_host.h"
#include "agents/hosts/ssh_exec.h"

namespace muster::users {

// muster-run-as beside this program.
std::string DefaultRunAsPath();

// Returns what `muster-run-as check WORDS` prints: the work root. FAILED_PRECONDITION, in its
// words: it runs nothing, or nothing as the user that the words name. UNAVAILABLE: the host could
// not be asked, or muster-run-as cannot tell now.
absl::StatusOr<std::string> AskRunAs(hosts::Host* host, const std::string& helper,
                                     const std::vector<std::string>& words);

// All calls are PERMISSION_DENIED, in the words of muster-run-as, if that runs nothing as this
// user.
class RunAsHost : public hosts::ScriptHost {
 public:
  // `host` must outlive this object. `helper` is the path of muster-run-as there.
  RunAsHost(hosts::Host* host, std::string helper, std::string user)
      : host_(*host), helper_(std::move(helper)), user_(std::move(user)) {}
  RunAsHost(std::unique_ptr<hosts::Host> host, std::string helper, std::string user)
      : own_(std::move(host)), host_(*own_), helper_(std::move(helper)), user_(std::move(user)) {}

  std::string Name() const override { return host_.Name() + " for user " + user_; }
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override;

 protected:
  absl::StatusOr<hosts::ExecResult> RunScript(std::string_view body, std::string_view input,
                                              size_t max_stdout_bytes) override;

 private:
  const std::unique_ptr<hosts::Host> own_;  // null: somebody else's
  hosts::Host& host_;
  const std::string helper_;
  const std::string user_;
};

}  // namespace muster::users

#endif  // MUSTER_AGENTS_USERS_RUN_AS_HOST_H_
