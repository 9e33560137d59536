// A real sshd for one test, on a free port of this machine, as whoever runs the test.
#ifndef MUSTER_TESTS_INTEGRATION_SSH_SSHD_H_
#define MUSTER_TESTS_INTEGRATION_SSH_SSHD_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "agents/hosts/fd.h"
#include "agents/hosts/ssh_config.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::hosts {

class Sshd {
 public:
  // Starts it; `options` are more lines of sshd_config.
  explicit Sshd(const std::string& options = "");
  ~Sshd();
  Sshd(const Sshd&) = delete;
  Sshd& operator=(const Sshd&) = delete;

  // Returns the settings that let a client in: this host, its key, a key of the user's.
  SshConfig Config() const;
  LoginHost host() const { return {"127.0.0.1", port_}; }
  std::string known_hosts() const { return directory_ / "known_hosts"; }
  std::string host_key_line() const;  // "ssh-ed25519 AAAA..."
  // HOME of what runs there: the user's own start-up files are none of the test's business.
  std::string home() const { return directory_ / "home"; }
  const TempDir& directory() const { return directory_; }

  // A private key (`type` as ssh-keygen has it) that may log in with these options of
  // authorized_keys: say command="...". Its path.
  std::string NewUserKey(const std::string& type, const std::string& options = "");
  // Makes a host key like the first one.
  void ReplaceHostKey();

  void Start();
  // The listener and all its sessions end at once.
  void Kill();
  // Kills only the sessions; new ones can be made.
  void KillSessions();
  // Stops and continues the processes of all sessions: a host that hangs.
  void SignalSessions(int signal);

 private:
  TempDir directory_;
  const std::string options_;
  uint16_t port_ = 0;
  int keys_ = 0;
  pid_t pid_ = -1;
  Fd pidfd_;
};

// Runs a shell command, and returns its stdout. Fails the test if it does not end with 0.
std::string Shell(const std::string& command);
// Returns the name of the user who runs the test.
std::string UserName();

}  // namespace muster::hosts

#endif  // MUSTER_TESTS_INTEGRATION_SSH_SSHD_H_
