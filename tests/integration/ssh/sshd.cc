#include "tests/integration/ssh/sshd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "agents/hosts/spawn.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace muster::hosts {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

uint16_t FreePort() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return ntohs(address.sin_port);
}

bool Listens(uint16_t port) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string Shell(const std::string& command) {
  LocalHost host;
  const auto result = host.Run({.argv = {"/bin/sh", "-c", command}, .timeout = kPatience});
  EXPECT_TRUE(result.ok()) << command << "\n" << result.status();
  if (!result.ok()) return {};
  EXPECT_TRUE(result->ok()) << command << "\n" << result->stderr_data;
  return result->stdout_data;
}

std::string UserName() { return getpwuid(geteuid())->pw_name; }

Sshd::Sshd(const std::string& options) : options_(options) {
  if (geteuid() == 0) mkdir("/run/sshd", 0755);  // sshd insists on it
  Shell(fmt::format("ssh-keygen -q -t ed25519 -N '' -f {}", directory_ / "host_key"));
  std::filesystem::create_directory(home());
  NewUserKey("ed25519");
  Start();
  std::ofstream(known_hosts()) << fmt::format("[127.0.0.1]:{} {}\n", port_, host_key_line());
}

Sshd::~Sshd() { Kill(); }

std::string Sshd::host_key_line() const {
  const std::string line = ReadText(directory_ / "host_key.pub");
  return line.substr(0, line.find(' ', line.find(' ') + 1));
}

SshConfig Sshd::Config() const {
  SshConfig config;
  config.hosts = {host()};
  config.user = UserName();
  config.key_file = directory_ / "key1";
  config.known_hosts_file = known_hosts();
  config.min_backoff = absl::Milliseconds(1);
  config.max_backoff = absl::Milliseconds(1);
  return config;
}

std::string Sshd::NewUserKey(const std::string& type, const std::string& options) {
  const std::string path = directory_ / fmt::format("key{}", ++keys_);
  Shell(fmt::format("ssh-keygen -q -t {} -N '' -f {}", type, path));
  std::ofstream(directory_ / "authorized_keys", std::ios::app)
      << fmt::format("environment=\"HOME={}\"{}{} {}", home(), options.empty() ? "" : ",", options,
                     ReadText(path + ".pub"));
  return path;
}

void Sshd::ReplaceHostKey() {
  Kill();
  Shell(fmt::format("rm {0} {0}.pub; ssh-keygen -q -t ed25519 -N '' -f {0}",
                    directory_ / "host_key"));
  Start();
}

void Sshd::Start() {
  // A port that somebody takes in between is rare; another one is tried then.
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (port_ == 0) port_ = FreePort();
    std::ofstream(directory_ / "sshd_config") << fmt::format(
        "{}\nListenAddress 127.0.0.1\nPort {}\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n"
        "PrintMotd no\nPermitUserEnvironment yes\nLogLevel ERROR\n",
        options_, port_, directory_ / "host_key", directory_ / "authorized_keys");
    const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const Fd log(
        open((directory_ / "sshd.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    absl::StatusOr<Child> child =
        Spawn({.argv = {"/usr/sbin/sshd", "-D", "-e", "-f", directory_ / "sshd_config"},
               .env = {"PATH=/usr/local/bin:/usr/bin:/bin"},
               .stdin_fd = null.get(),
               .stdout_fd = log.get(),
               .stderr_fd = log.get(),
               .new_session = true});
    ASSERT_TRUE(child.ok()) << child.status();
    pid_ = child->pid;
    pidfd_ = std::move(child->pidfd);
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline && waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (Listens(port_)) return;
      absl::SleepFor(absl::Milliseconds(10));
    }
    pid_ = -1;
    port_ = 0;
  }
  FAIL() << "sshd does not start: " << ReadText(directory_ / "sshd.log");
}

void Sshd::SignalSessions(int signal) {
  Shell(fmt::format(
      "for p in $(pgrep -x -P {0} sshd); do kill -{1} $p $(pgrep -x -P $p sshd); done; true", pid_,
      signal));
}

void Sshd::KillSessions() { SignalSessions(SIGKILL); }

void Sshd::Kill() {
  if (pid_ < 0) return;
  kill(pid_, SIGSTOP);  // no new sessions while the old ones die
  KillSessions();
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace muster::hosts
