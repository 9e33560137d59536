#include "tests/integration/ssh/host_contract.h"

#include <unistd.h>

#include <vector>

#include "agents/hosts/local_host.h"
#include "agents/hosts/ssh_host.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Returns how a login shell of that kind handles a command.
std::string LoginShell(const std::string& shell) {
  return fmt::format("exec {} -c \\\"$SSH_ORIGINAL_COMMAND\\\"", shell);
}

const std::vector<Way>& Ways() {
  static const auto& ways = *new std::vector<Way>{
      {.name = "Local", .is_ssh = false},
      {.name = "Ssh"},
      {.name = "SshThroughDash", .forced_command = LoginShell("/bin/dash")},
      {.name = "SshThroughCsh", .forced_command = LoginShell("/bin/tcsh"), .needs = "/bin/tcsh"},
      {.name = "SshWithNoise",
       .forced_command =
           "echo Welcome; echo; echo careful >&2; printf 'no newline'; printf oops >&2; " +
           LoginShell("/bin/sh")},
      // /bin/sh is bash here, as on Red Hat's systems.
      {.name = "SshWithBashAsSh",
       .forced_command = "c=$(printf %s \\\"$SSH_ORIGINAL_COMMAND\\\" | sed 's|/bin/sh|/bin/bash "
                         "--posix|'); exec /bin/sh -c \\\"$c\\\""},
  };
  return ways;
}

}  // namespace

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

std::unique_ptr<SshHost> HostOf(const SshConfig& config) {
  absl::StatusOr<std::unique_ptr<SshHost>> host = SshHost::Create(config);
  EXPECT_TRUE(host.ok()) << host.status();
  return host.ok() ? *std::move(host) : nullptr;
}

absl::Status ConnectOnce(const SshConfig& config) { return HostOf(config)->Connect(); }

Sshd* HostContractTest::sshd_ = nullptr;

void HostContractTest::SetUpTestSuite() { sshd_ = new Sshd(); }
void HostContractTest::TearDownTestSuite() { delete sshd_; }

void HostContractTest::SetUp() {
  const Way& way = GetParam();
  if (!way.needs.empty() && access(way.needs.c_str(), X_OK) != 0) {
    GTEST_SKIP() << way.needs << " is not installed";
  }
  if (!way.is_ssh) {
    host_ = std::make_unique<LocalHost>();
    return;
  }
  SshConfig config = sshd_->Config();
  if (!way.forced_command.empty()) {
    config.key_file =
        sshd_->NewUserKey("ed25519", fmt::format("command=\"{}\"", way.forced_command));
  }
  absl::StatusOr<std::unique_ptr<SshHost>> host = SshHost::Create(config);
  ASSERT_TRUE(host.ok()) << host.status();
  ASSERT_TRUE((*host)->Connect().ok()) << (*host)->Connect();
  host_ = *std::move(host);
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostContractTest, ::testing::ValuesIn(Ways()),
                         [](const auto& info) { return info.param.name; });

}  // namespace muster::hosts
