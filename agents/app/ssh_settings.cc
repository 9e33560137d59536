#include "agents/app/ssh_settings.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "agents/app/setting_values.h"

namespace muster::agents {
namespace {

// More are no use to one agent, and no sshd allows them by default.
constexpr uint64_t kMaxChannels = 64;

}  // namespace

std::vector<Setting> SshSettings(std::string_view section, hosts::SshConfig* ssh) {
  const auto key = [section](std::string_view name) { return fmt::format("{}.{}", section, name); };
  return {
      {key("ssh_hosts"),
       "login hosts HOST[:PORT],... in the order in which they are tried [this machine, no SSH]",
       [ssh](const std::string& value) -> absl::Status {
         absl::StatusOr<std::vector<hosts::LoginHost>> hosts = hosts::ParseLoginHosts(value);
         if (hosts.ok()) ssh->hosts = *std::move(hosts);
         return hosts.status();
       }},
      {key("ssh_user"), "the user on those hosts (required with ssh_hosts)", TextInto(&ssh->user)},
      {key("ssh_key"), "file of the private key, readable only by its owner [ssh-agent's keys]",
       AbsolutePathInto(&ssh->key_file)},
      {key("ssh_known_hosts"), "file of the hosts' keys, as ssh-keyscan writes it",
       AbsolutePathInto(&ssh->known_hosts_file)},
      {key("ssh_host_keys"),
       "the hosts' keys themselves: \"ssh-ed25519 AAAA...\" or SHA256:...,...",
       [ssh](const std::string& value) {
         ssh->host_keys = SplitAtCommas(value);
         return absl::OkStatus();
       }},
      {key("ssh_connect_timeout"), "time limit of a connection to one host [10s]",
       DurationInto(&ssh->connect_timeout)},
      {key("ssh_keepalive"), "silence after which a host is asked for a sign of life [15s]",
       DurationInto(&ssh->keepalive_interval)},
      {key("ssh_max_channels"), "commands at the same time; sshd's MaxSessions is 10 [8]",
       NumberInto(1, kMaxChannels,
                  [ssh](uint64_t number) { ssh->max_channels = static_cast<int>(number); })},
  };
}

}  // namespace muster::agents
