#include "agents/hosts/ssh_config.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"

namespace muster::hosts {
namespace {

absl::Status BadHost(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is no login host; write HOST or HOST:PORT, an IPv6 address in brackets", text));
}

// A shell and ssh-keyscan must read the name exactly as it was meant.
bool IsHostName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '%';
  };
  return !name.empty() && name.size() <= 255 && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), is_good);
}

}  // namespace

std::string LoginHost::ToString() const {
  const bool is_v6 = name.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", name, is_v6 ? "]" : "", port);
}

absl::StatusOr<LoginHost> ParseLoginHost(std::string_view text) {
  LoginHost host;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return BadHost(text);
    host.name = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    host.name = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (!IsHostName(host.name)) return BadHost(text);
  if (rest.empty()) return host;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + 1, end, host.port);
  if (rest[0] != ':' || error != std::errc() || stop != end || host.port == 0) return BadHost(text);
  return host;
}

absl::StatusOr<std::vector<LoginHost>> ParseLoginHosts(std::string_view text) {
  std::vector<LoginHost> hosts;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    absl::StatusOr<LoginHost> host = ParseLoginHost(text.substr(0, comma));
    if (!host.ok()) return host.status();
    hosts.push_back(*std::move(host));
    if (hosts.size() > kMaxLoginHosts) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} login hosts; name the best ones", kMaxLoginHosts));
    }
    if (comma == text.size()) return hosts;
    text.remove_prefix(comma + 1);
  }
}

absl::Status CheckSshConfig(const SshConfig& config) {
  const auto invalid = [](std::string_view text) {
    return absl::InvalidArgumentError(std::string(text));
  };
  if (config.hosts.empty() || config.hosts.size() > kMaxLoginHosts) {
    return invalid(
        fmt::format("ssh_hosts names {} hosts; name 1 to {}", config.hosts.size(), kMaxLoginHosts));
  }
  if (config.user.empty()) return invalid("ssh_user is required; it names the user on the cluster");
  if (config.key_file.empty() && config.agent_socket.empty()) {
    return invalid(
        "nothing to log in with: set ssh_key to a private key's file, or start ssh-agent and "
        "export "
        "SSH_AUTH_SOCK");
  }
  if (config.known_hosts_file.empty() && config.host_keys.empty()) {
    return invalid(
        "no host key is known: set ssh_known_hosts to a file as ssh-keyscan writes it, or "
        "ssh_host_keys to the keys themselves; hosts are never trusted unseen");
  }
  if (config.max_channels < 1 || config.keepalive_limit < 1) {
    return invalid("ssh_max_channels and the keepalive limit must be at least 1");
  }
  return absl::OkStatus();
}

}  // namespace muster::hosts
