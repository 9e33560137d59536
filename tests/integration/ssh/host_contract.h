// The contract of Host, kept alike by this machine and by hosts behind a real sshd, whatever the
// user's login shell is and says.
#ifndef MUSTER_TESTS_INTEGRATION_SSH_HOST_CONTRACT_H_
#define MUSTER_TESTS_INTEGRATION_SSH_HOST_CONTRACT_H_

#include <memory>
#include <string>

#include "agents/hosts/host.h"
#include "agents/hosts/ssh_host.h"
#include "gtest/gtest.h"
#include "tests/integration/ssh/sshd.h"

namespace muster::hosts {

std::string Message(const absl::Status& status);
// Null, and the test fails, if the settings are refused.
std::unique_ptr<SshHost> HostOf(const SshConfig& config);
// Returns the result of a connection attempt.
absl::Status ConnectOnce(const SshConfig& config);

// Describes one way to a host; the sshd, if any, serves all tests.
struct Way {
  std::string name;
  bool is_ssh = true;
  std::string forced_command = {};  // as the user's key has it; empty: none
  std::string needs = {};           // a program without which the way cannot be tried
};

class HostContractTest : public ::testing::TestWithParam<Way> {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  absl::StatusOr<CommandResult> Sh(const std::string& script) {
    return host_->Run({.argv = {"sh", "-c", script}});
  }

  static Sshd* sshd_;
  std::unique_ptr<Host> host_;
  TempDir dir_;
};

}  // namespace muster::hosts

#endif  // MUSTER_TESTS_INTEGRATION_SSH_HOST_CONTRACT_H_
