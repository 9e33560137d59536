#include "agents/core/ssh_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "contract/text.h"
#include "contract/units.h"

namespace muster::agent {
namespace {

// More are no use to one agent, and no sshd allows them by default.
constexpr uint64_t kMaxChannels = 64;

absl::Status Invalid(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

std::function<absl::Status(const std::string&)> PathInto(std::string* out) {
  return [out](const std::string& value) {
    if (!value.starts_with('/')) {
      return Invalid(fmt::format("\"{}\" is not an absolute path", value));
    }
    *out = value;
    return absl::OkStatus();
  };
}

// "KEY,KEY"; a key has no comma.
std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

absl::Status SetDuration(const std::string& value, absl::Duration* out) {
  const absl::StatusOr<absl::Duration> duration = contract::ParseDuration(value);
  if (!duration.ok()) return duration.status();
  if (*duration <= absl::ZeroDuration()) return Invalid("0 is too short");
  *out = *duration;
  return absl::OkStatus();
}

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
      {key("ssh_key"), "file of the private key, for nobody else to read [ssh-agent's keys]",
       PathInto(&ssh->key_file)},
      {key("ssh_known_hosts"), "file of the hosts' keys, as ssh-keyscan writes it",
       PathInto(&ssh->known_hosts_file)},
      {key("ssh_host_keys"),
       "the hosts' keys themselves: \"ssh-ed25519 AAAA...\" or SHA256:...,...",
       [ssh](const std::string& value) {
         ssh->host_keys = SplitAtCommas(value);
         return absl::OkStatus();
       }},
      {key("ssh_connect_timeout"), "a connection to one host is given up after this [10s]",
       [ssh](const std::string& value) { return SetDuration(value, &ssh->connect_timeout); }},
      {key("ssh_keepalive"), "a silent host is asked for a sign of life after this [15s]",
       [ssh](const std::string& value) { return SetDuration(value, &ssh->keepalive_interval); }},
      {key("ssh_max_channels"), "commands at the same time; sshd's MaxSessions is 10 [8]",
       NumberInto(1, kMaxChannels,
                  [ssh](uint64_t number) { ssh->max_channels = static_cast<int>(number); })},
  };
}

}  // namespace muster::agent
