#include "agents/app/machine_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "agents/app/setting_values.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "daemon/settings.h"

namespace muster::agents {
namespace {

constexpr uint64_t kMaxCpus = 100'000;
constexpr uint64_t kMaxGpusOfAType = 1024;  // more than any host has

absl::Status CheckName(const std::string& name) {
  if (contract::ValidateClusterName(name).ok()) return absl::OkStatus();
  return InvalidSetting(fmt::format(
      "\"{}\" is no name of a host; use 1 to 63 of a-z, 0-9 and '-', such as gpu-1", name));
}

// "[USER@]HOST[:PORT]"
absl::Status SetSsh(const std::string& value, machines::HostConfig* host) {
  const size_t at = value.find('@');
  if (at == 0) return InvalidSetting(fmt::format("\"{}\" has no user before its '@'", value));
  if (at != std::string::npos) host->ssh.user = value.substr(0, at);
  const std::string_view rest =
      std::string_view(value).substr(at == std::string::npos ? 0 : at + 1);
  absl::StatusOr<hosts::LoginHost> login = hosts::ParseLoginHost(rest);
  if (!login.ok()) return login.status();
  host->ssh.hosts = {*std::move(login)};
  return absl::OkStatus();
}

absl::Status SetMemory(const std::string& value, machines::HostConfig* host) {
  uint64_t bytes = 0;
  if (absl::Status s = BytesInto(&bytes)(value); !s.ok()) return s;
  if (bytes < contract::kMinMemoryBytes) {
    return InvalidSetting(
        fmt::format("\"{}\" is less than 1Mi; write the unit, as in 512Mi or 256Gi", value));
  }
  host->memory_bytes = bytes;
  return absl::OkStatus();
}

std::vector<Setting> SettingsOf(machines::HostConfig* host) {
  const auto key = [host](const char* name) { return fmt::format("{}.{}", host->name, name); };
  return {
      {key("ssh"), "", [host](const std::string& value) { return SetSsh(value, host); }},
      {key("address"), "", TextInto(&host->address)},
      {key("cpus"), "", NumberInto(1, kMaxCpus, [host](uint64_t n) { host->cpus = n; })},
      {key("memory"), "", [host](const std::string& value) { return SetMemory(value, host); }},
      {.key = key("gpus"),
       .help = "",
       .set = [host](const std::string& value) -> absl::Status {
         auto gpus = ParseGpuCounts(value);
         if (!gpus.ok()) return gpus.status();
         host->gpus = *std::move(gpus);
         return absl::OkStatus();
       },
       .is_mapping = true},
      {.key = key("labels"),
       .help = "",
       .set =
           [host](const std::string& value) {
             host->labels = SplitAtCommas(value);
             return absl::OkStatus();
           },
       .is_list = true},
      {key("cordon"), "", YesInto(&host->cordoned)},
  };
}

}  // namespace

absl::StatusOr<machines::GpuCounts> ParseGpuCounts(std::string_view text) {
  machines::GpuCounts gpus;
  for (const std::string& part : SplitAtCommas(text)) {
    const size_t colon = part.find(':');
    const std::string type = part.substr(0, colon);
    uint32_t count = 0;
    const auto set = NumberInto(1, kMaxGpusOfAType, [&](uint64_t number) { count = number; });
    if (colon == std::string::npos || type.empty() || !set(part.substr(colon + 1)).ok() ||
        std::any_of(gpus.begin(), gpus.end(), [&](const auto& one) { return one.first == type; })) {
      return InvalidSetting(
          fmt::format("\"{}\" is not of the form TYPE:COUNT, e.g. a100:4,h100:2", part));
    }
    gpus.emplace_back(type, count);
  }
  return gpus;
}

absl::StatusOr<std::vector<machines::HostConfig>> ParseMachineHosts(std::string_view text,
                                                                    std::string_view file,
                                                                    const hosts::SshConfig& ssh) {
  const absl::StatusOr<std::vector<std::string>> names = NamesInYaml(text, file, CheckName);
  if (!names.ok()) return names.status();
  if (names->size() > machines::kMaxHosts) {
    return InvalidSetting(fmt::format("{} has {} hosts; one agent has at most {}, so use several",
                                      file, names->size(), machines::kMaxHosts));
  }
  std::vector<machines::HostConfig> hosts(names->size());
  std::vector<Setting> settings;
  for (size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].name = (*names)[i];
    hosts[i].ssh = ssh;
    hosts[i].ssh.hosts = {{.name = hosts[i].name}};
    for (Setting& setting : SettingsOf(&hosts[i])) settings.push_back(std::move(setting));
  }
  if (absl::Status s = ApplyYaml(text, file, "muster-agent", settings); !s.ok()) return s;
  if (hosts.empty()) {
    return InvalidSetting(
        fmt::format("{} names no host; write lines such as gpu1: {{ssh: ada@gpu1.lab}}", file));
  }
  for (machines::HostConfig& host : hosts) {
    if (host.address.empty()) host.address = host.ssh.hosts[0].name;
  }
  return hosts;
}

absl::StatusOr<std::vector<machines::HostConfig>> ReadMachineHosts(const std::string& path,
                                                                   const hosts::SshConfig& ssh) {
  std::ifstream file(path);
  std::stringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.bad()) {
    return InvalidSetting(
        fmt::format("cannot read machines.hosts \"{}\": {}", path, std::strerror(errno)));
  }
  return ParseMachineHosts(text.str(), path, ssh);
}

}  // namespace muster::agents
