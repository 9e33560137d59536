// Tests whom a host behind SSH trusts, and how it logs in.
#include <stdlib.h>

#include <fstream>
#include <functional>

#include "agents/hosts/host_keys.h"
#include "agents/hosts/ssh_host.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/ssh/host_contract.h"
#include "tests/integration/ssh/sshd.h"

namespace muster::hosts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- host keys

TEST(SshLoginTest, AnUnknownHostKeyIsRefusedWithItsFingerprintAndTheRemedy) {
  const Sshd sshd;
  SshConfig config = sshd.Config();
  config.known_hosts_file = sshd.directory() / "empty";
  std::ofstream(config.known_hosts_file) << "# nobody\n";
  const absl::Status status = ConnectOnce(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  const std::string fingerprint = Shell(fmt::format(
      "ssh-keygen -l -f {} | cut -d' ' -f2 | tr -d '\\n'", sshd.directory() / "host_key"));
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr(fingerprint),
                    HasSubstr(fmt::format("ssh-keyscan -t ed25519 -p {} "
                                          "127.0.0.1 >> {}",
                                          sshd.host().port, config.known_hosts_file))));
}

TEST(SshLoginTest, AChangedHostKeyIsRefusedWithBothFingerprintsAndIsNoReasonToTryAnotherHost) {
  Sshd sshd;
  const Sshd other;
  const auto fingerprint = [&] {
    return Shell(fmt::format("ssh-keygen -l -f {} | cut -d' ' -f2 | tr -d '\\n'",
                             sshd.directory() / "host_key"));
  };
  const std::string old_one = fingerprint();
  sshd.ReplaceHostKey();
  SshConfig config = sshd.Config();
  config.hosts = {sshd.host(), other.host()};
  config.host_keys = {};
  const auto host = HostOf(config);
  const absl::Status status = host->Connect();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("has changed"), HasSubstr(old_one), HasSubstr(fingerprint()),
                    HasSubstr(sshd.known_hosts() + ":1"), HasSubstr("ssh-keygen -R")));
  // The error tells a job only that the host could not be asked.
  EXPECT_TRUE(absl::IsUnavailable(host->Run({.argv = {"true"}}).status()));
}

TEST(SshLoginTest, APinnedKeyIsEnoughInEitherForm) {
  const Sshd sshd;
  SshConfig config = sshd.Config();
  config.known_hosts_file.clear();
  config.host_keys = {sshd.host_key_line()};
  EXPECT_TRUE(ConnectOnce(config).ok());
  config.host_keys = {"SHA256:" + std::string(42, 'A') + "A",
                      Shell(fmt::format("ssh-keygen -l -f {} | cut -d' ' -f2 | tr -d '\\n'",
                                        sshd.directory() / "host_key"))};
  EXPECT_TRUE(ConnectOnce(config).ok());
  config.host_keys.pop_back();
  EXPECT_EQ(ConnectOnce(config).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SshLoginTest, TheKeyThatIsKnownIsAskedForAmongTheHostsOwn) {
  TempDir keys;
  Shell(fmt::format(
      "ssh-keygen -q -t ecdsa -N '' -f {0}/ecdsa; ssh-keygen -q -t rsa -N '' -f {0}/rsa",
      keys.path()));
  const Sshd sshd(fmt::format("HostKey {0}/ecdsa\nHostKey {0}/rsa\n", keys.path()));
  SshConfig config = sshd.Config();
  config.known_hosts_file.clear();
  config.host_keys = {
      Shell(fmt::format("cut -d' ' -f1,2 {}/ecdsa.pub | tr -d '\\n'", keys.path()))};
  const absl::Status status = ConnectOnce(config);
  EXPECT_TRUE(status.ok()) << status;
}

// ---- logins

TEST(SshLoginTest, KeysOfEveryGoodKindLogIn) {
  Sshd sshd;
  for (const std::string type :
       {"ed25519", "ecdsa", "ecdsa -m PEM", "rsa", "rsa -m PEM", "rsa -m PKCS8"}) {
    SshConfig config = sshd.Config();
    config.key_file = sshd.NewUserKey(type);
    const absl::Status status = ConnectOnce(config);
    EXPECT_TRUE(status.ok()) << type << ": " << status;
  }
}

TEST(SshLoginTest, AnRsaKeyLogsInWhereTheServerTakesSha1Only) {
  Sshd old("PubkeyAcceptedAlgorithms ssh-rsa");
  SshConfig config = old.Config();
  config.key_file = old.NewUserKey("rsa");
  EXPECT_TRUE(ConnectOnce(config).ok()) << ConnectOnce(config);
}

TEST(SshLoginTest, AKeyThatOthersCanReadIsRefusedWithPathModeAndRemedy) {
  const Sshd sshd;
  const SshConfig config = sshd.Config();
  ASSERT_EQ(chmod(config.key_file.c_str(), 0640), 0);
  const absl::Status status = ConnectOnce(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr(config.key_file), HasSubstr("0640"),
                                     HasSubstr("chmod 600 " + config.key_file)));
}

TEST(SshLoginTest, KeysThatCannotBeUsedSayWhy) {
  const Sshd sshd;
  SshConfig config = sshd.Config();
  const auto message_with = [&](const std::string& path) {
    config.key_file = path;
    const absl::Status status = ConnectOnce(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return Message(status);
  };
  const std::string protected_key = sshd.directory() / "protected";
  Shell("ssh-keygen -q -t ed25519 -N secret -f " + protected_key);
  EXPECT_THAT(message_with(protected_key), HasSubstr("passphrase"));
  EXPECT_THAT(message_with(sshd.directory() / "gone"), HasSubstr("No such file"));
  Shell(fmt::format("cp {0}.pub {0}.copy; chmod 600 {0}.copy", protected_key));
  EXPECT_THAT(message_with(protected_key + ".copy"), HasSubstr("without .pub"));
  std::ofstream(sshd.directory() / "rubbish")
      << "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU=\n-----END\n";
  Shell("chmod 600 " + sshd.directory() / "rubbish");
  EXPECT_THAT(message_with(sshd.directory() / "rubbish"), HasSubstr("cannot be used"));
}

TEST(SshLoginTest, ARefusedLoginNamesTheMethodsAndIsNoReasonToTryAnotherHost) {
  const Sshd sshd;
  const Sshd other;
  SshConfig config = sshd.Config();
  config.hosts = {sshd.host(), other.host()};
  config.key_file = other.Config().key_file;
  const auto host = HostOf(config);
  const absl::Status status = host->Connect();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr(sshd.host().ToString()), HasSubstr(UserName()),
                                     HasSubstr("publickey"), HasSubstr("authorized_keys")));
  EXPECT_TRUE(absl::IsUnavailable(host->Run({.argv = {"true"}}).status()));
}

TEST(SshLoginTest, AHostThatWantsAPasswordGetsNone) {
  const Sshd sshd("AuthenticationMethods password\nPasswordAuthentication yes\n");
  const absl::Status status = ConnectOnce(sshd.Config());
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("no public keys"), HasSubstr("password")));
}

class SshAgent {
 public:
  SshAgent() {
    pid_ = Shell(
        fmt::format("ssh-agent -a {} | sed -n 's/^echo Agent pid \\([0-9]*\\).*/\\1/p'", socket()));
  }
  ~SshAgent() { Shell("kill " + pid_); }
  std::string socket() const { return dir_ / "agent"; }
  void Add(const std::string& key) {
    Shell(fmt::format("SSH_AUTH_SOCK={} ssh-add -q {}", socket(), key));
  }

 private:
  TempDir dir_;
  std::string pid_;
};

TEST(SshLoginTest, TheKeysOfAnAgentLogIn) {
  Sshd sshd;
  const Sshd other;
  SshAgent agent;
  SshConfig config = sshd.Config();
  const std::string key = config.key_file;
  config.key_file.clear();
  config.agent_socket = agent.socket();
  EXPECT_EQ(ConnectOnce(config).code(), absl::StatusCode::kPermissionDenied);
  agent.Add(other.Config().key_file);
  EXPECT_EQ(ConnectOnce(config).code(), absl::StatusCode::kPermissionDenied);
  agent.Add(key);
  EXPECT_TRUE(ConnectOnce(config).ok()) << ConnectOnce(config);
  agent.Add(sshd.NewUserKey("ecdsa"));
  EXPECT_TRUE(ConnectOnce(config).ok());

  setenv("SSH_AUTH_SOCK", agent.socket().c_str(), 1);
  config.agent_socket.clear();
  EXPECT_TRUE(ConnectOnce(config).ok());
  unsetenv("SSH_AUTH_SOCK");
  config.agent_socket = "/no/such/socket";
  const absl::Status status = ConnectOnce(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("/no/such/socket"));
}

TEST(SshLoginTest, AnRsaKeyOfAnAgentLogsIn) {
  Sshd sshd;
  SshAgent agent;
  SshConfig config = sshd.Config();
  agent.Add(sshd.NewUserKey("rsa"));
  config.key_file.clear();
  config.agent_socket = agent.socket();
  EXPECT_TRUE(ConnectOnce(config).ok()) << ConnectOnce(config);
}

TEST(SshLoginTest, SettingsThatCannotWorkAreRefusedByName) {
  unsetenv("SSH_AUTH_SOCK");
  const auto message_of = [](const std::function<void(SshConfig*)>& spoil) {
    SshConfig config;
    config.hosts = {{"login", 22}};
    config.user = "ada";
    config.key_file = "/key";
    config.known_hosts_file = "/known";
    spoil(&config);
    const absl::Status status = SshHost::Create(config).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return Message(status);
  };
  EXPECT_THAT(message_of([](SshConfig* c) { c->hosts.clear(); }), HasSubstr("ssh_hosts"));
  EXPECT_THAT(message_of([](SshConfig* c) { c->user.clear(); }), HasSubstr("ssh_user"));
  EXPECT_THAT(message_of([](SshConfig* c) { c->key_file.clear(); }), HasSubstr("ssh_key"));
  EXPECT_THAT(message_of([](SshConfig* c) { c->known_hosts_file.clear(); }),
              HasSubstr("ssh_known_hosts"));
  EXPECT_THAT(message_of([](SshConfig* c) { c->host_keys = {"ssh-ed25519 AAAA"}; }),
              HasSubstr("no host key"));
}

}  // namespace
}  // namespace muster::hosts
