// A login host that is reached over SSH.
//
// Programs start as Host says, whatever the user's login shell is and says. Files are handled by
// scripts (script_host.h) rather than by SFTP: many login hosts have none, and SFTP's answers do
// not tell a full disk from any other failure, nor can libssh2 1.10 replace a file in one step.
// README.md in this folder says what the host must have.
//
// A host that cannot be asked for any reason is UNAVAILABLE in every call, also a wrong host key or
// a refused login: it says nothing about the program or the file. Connect tells the reasons apart.
#ifndef MUSTER_AGENTS_HOSTS_SSH_HOST_H_
#define MUSTER_AGENTS_HOSTS_SSH_HOST_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/remote_script.h"
#include "agents/hosts/script_host.h"
#include "agents/hosts/ssh_config.h"
#include "agents/hosts/ssh_link.h"
#include "agents/hosts/ssh_talk.h"

namespace muster::hosts {

class SshHost : public ScriptHost {
 public:
  // INVALID_ARGUMENT: see CheckSshConfig. Connects at the first call.
  static absl::StatusOr<std::unique_ptr<SshHost>> Create(SshConfig config);

  // Connects unless that is done. UNAVAILABLE: no host can be reached; FAILED_PRECONDITION: host
  // key, key file or agent; PERMISSION_DENIED: no host lets the user in. Each with the remedy.
  absl::Status Connect() { return link_.Connect(); }
  // Every call under way, and every later one, is answered with UNAVAILABLE. Once.
  void Stop() { link_.Stop(); }
  // Returns the host that is connected to, "name:port"; empty if there is none.
  std::string host_in_use() const { return link_.host_in_use(); }

  std::string Name() const override;
  // Tries all hosts at the same time, on connections of their own.
  std::optional<LoginReport> TryLogins() override;
  absl::StatusOr<CommandResult> Run(const Command& command) override;
  // Starts a program to talk with, without waiting for it; its time and the length of its output
  // have no limit, and `stdin_data` does not count. INVALID_ARGUMENT: it cannot be run anywhere.
  absl::StatusOr<std::unique_ptr<SshTalk>> Talk(const Command& command, TalkListener listener);

 private:
  explicit SshHost(SshConfig config);

  absl::StatusOr<ExecResult> RunScript(std::string_view body, std::string_view input,
                                       size_t max_stdout_bytes) override;

  const SshConfig config_;
  SshLink link_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_HOST_H_
