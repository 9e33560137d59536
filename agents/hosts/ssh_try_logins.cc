// Each login host on its own, for preflights.
#include <future>
#include <utility>

#include "agents/hosts/event.h"
#include "agents/hosts/host_keys.h"
#include "agents/hosts/ssh_host.h"
#include "agents/hosts/ssh_key_file.h"
#include "agents/hosts/ssh_session.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

std::string KeyName(const SshConfig& config) {
  if (!config.key_file.empty()) return fmt::format("SSH key {}", config.key_file);
  return fmt::format("SSH keys of the agent at {}",
                     config.agent_socket.empty() ? "SSH_AUTH_SOCK" : config.agent_socket);
}

absl::Status CheckKey(const SshConfig& config) {
  if (!config.key_file.empty()) return ReadKeyFile(config.key_file).status();
  if (!config.agent_socket.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "there is neither a key file nor an ssh-agent; set ssh_key, or SSH_AUTH_SOCK");
}

// Returns the steps to a login, in their order.
std::string FiveSteps(const SshConfig& config, const LoginHost& host) {
  const std::string key = config.key_file.empty() ? "KEY" : config.key_file;
  const std::string known_hosts =
      config.known_hosts_file.empty() ? "KNOWN_HOSTS" : config.known_hosts_file;
  return fmt::format(
      "1. ssh-keygen -t ed25519 -N '' -f {0}, unless there is a key; 2. ssh-copy-id -i {0}.pub -p "
      "{1} {2}@{3}; 3. ssh-keyscan -p {1} {3} >> {4}, compared with what the site publishes; 4. "
      "chmod 600 {0}; 5. ssh -i {0} -p {1} -o BatchMode=yes {2}@{3} true, which must say nothing",
      key, host.port, config.user, host.name, known_hosts);
}

std::string Remedy(const SshConfig& config, const LoginHost& host, const WayIn& way) {
  switch (way.reached) {
    case WayIn::Reached::kNothing:
      return fmt::format(
          "check the name, the port, the network, and that sshd runs there: ssh -p {} {}@{} true",
          host.port, config.user, host.name);
    case WayIn::Reached::kHost:
      // An error about a host's key already says what to do.
      return absl::IsUnavailable(way.status)
                 ? fmt::format("see what sshd says: ssh -v -p {} {}@{} true", host.port,
                               config.user, host.name)
                 : "compare the fingerprint with what the site publishes, and only then do what "
                   "the "
                   "message says";
    case WayIn::Reached::kHostKey:
      return FiveSteps(config, host);
    case WayIn::Reached::kUser:
      return {};
  }
  return {};
}

WayIn TryWay(const SshConfig& config, const absl::StatusOr<HostKeys>& host_keys,
             const LoginHost& host, int stop_fd) {
  WayIn way;
  way.name = host.ToString();
  if (host_keys.ok()) {
    way.status = SshSession::Open(config, *host_keys, host, stop_fd, &way.reached).status();
  } else {
    way.reached = WayIn::Reached::kHost;
    way.status = host_keys.status();
  }
  way.remedy = Remedy(config, host, way);
  return way;
}

}  // namespace

std::optional<LoginReport> SshHost::TryLogins() {
  LoginReport report;
  report.key = KeyName(config_);
  report.key_is = CheckKey(config_);
  const absl::StatusOr<HostKeys> host_keys = HostKeys::Load(config_);
  // Each bounds its time by itself.
  const Event never;
  std::vector<std::future<WayIn>> tries;
  for (const LoginHost& host : config_.hosts) {
    tries.push_back(std::async(std::launch::async,
                               [&] { return TryWay(config_, host_keys, host, never.fd()); }));
  }
  for (std::future<WayIn>& one : tries) report.ways.push_back(one.get());
  return report;
}

}  // namespace muster::hosts
