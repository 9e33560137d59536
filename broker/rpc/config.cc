#include "broker/rpc/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <utility>

#include "broker/rpc/listen_address.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::broker {
namespace {

// A settings file is a page of text; more is a mistake, and anchors could make it much more.
constexpr size_t kMaxFileBytes = 1 << 20;

absl::Status Invalid(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

template <typename Assign>
auto Duration(absl::Duration least, Assign assign) {
  return [least, assign](Config& config, const std::string& value) -> absl::Status {
    const absl::StatusOr<absl::Duration> duration = contract::ParseDuration(value);
    if (!duration.ok()) return duration.status();
    if (*duration < least) {
      return Invalid(fmt::format("\"{}\" is too short; the least is {}", value,
                                 contract::FormatDuration(least)));
    }
    assign(config, *duration);
    return absl::OkStatus();
  };
}

template <typename Assign>
auto Bytes(Assign assign) {
  return [assign](Config& config, const std::string& value) -> absl::Status {
    const absl::StatusOr<uint64_t> bytes = contract::ParseBytes(value);
    if (!bytes.ok()) return bytes.status();
    assign(config, *bytes);
    return absl::OkStatus();
  };
}

template <typename Assign>
auto Number(uint64_t least, uint64_t most, int base, Assign assign) {
  return [least, most, base, assign](Config& config, const std::string& value) -> absl::Status {
    uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number, base);
    if (error != std::errc() || stop != end || number < least || number > most) {
      return Invalid(base == 8
                         ? fmt::format("\"{}\" is not octal from {:o} to {:o}", value, least, most)
                         : fmt::format("\"{}\" is not a number from {} to {}", value, least, most));
    }
    assign(config, number);
    return absl::OkStatus();
  };
}

absl::Status SetLogFormat(Config& config, const std::string& value) {
  if (value != "text" && value != "json") {
    return Invalid(fmt::format("\"{}\" is not a log format; use text or json", value));
  }
  config.json_logs = value == "json";
  return absl::OkStatus();
}

absl::Status SetLogLevel(Config& config, const std::string& value) {
  if (value != "debug" && value != "info" && value != "warning" && value != "error") {
    return Invalid(fmt::format("\"{}\" is no log level; use debug, info, warning or error", value));
  }
  config.log_level = value;
  return absl::OkStatus();
}

absl::Status SetListen(Config& config, const std::string& value) {
  if (value.empty()) {
    config.broker.listen.clear();
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> address = CheckListenAddress(value);
  if (address.ok()) config.broker.listen = *std::move(address);
  return address.status();
}

absl::Status At(std::string_view name, const YAML::Mark& mark, std::string_view text) {
  return Invalid(fmt::format("{}:{}:{}: {}", name, mark.line + 1, mark.column + 1, text));
}

absl::Status ApplyNode(const YAML::Node& node, const std::string& prefix, std::string_view name,
                       const std::vector<Setting>& settings, Config* config) {
  for (const auto& entry : node) {
    const std::string key = prefix + entry.first.Scalar();
    const YAML::Mark mark = entry.first.Mark();
    if (entry.second.IsMap()) {
      if (key != "logs") return At(name, mark, fmt::format("\"{}\" is not a section", key));
      absl::Status status = ApplyNode(entry.second, key + ".", name, settings, config);
      if (!status.ok()) return status;
      continue;
    }
    bool known = false;
    for (const Setting& setting : settings) {
      if (setting.key != key) continue;
      known = true;
      if (!entry.second.IsScalar()) {
        return At(name, entry.second.Mark(), fmt::format("{} takes one value", key));
      }
      absl::Status status = setting.set(*config, entry.second.Scalar());
      if (!status.ok()) {
        return At(name, entry.second.Mark(), fmt::format("{}: {}", key, ToStd(status.message())));
      }
    }
    if (!known) {
      return At(name, mark,
                fmt::format("unknown key \"{}\"; `muster-broker --help` lists the settings", key));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Setting> Settings() {
  constexpr uint64_t kAny = ~uint64_t{0};
  return {
      {"state_dir", "directory of the database, the logs and the socket (required)",
       [](Config& config, const std::string& value) {
         config.state_dir = value;
         return absl::OkStatus();
       }},
      {"listen", "also serve this loopback address, HOST:PORT; port 0: any free one", SetListen},
      {"socket_mode", "permissions of the socket, octal: who may connect may submit [0600]",
       Number(0600, 0666, 8, [](Config& c, uint64_t n) { c.broker.socket_mode = n; })},
      {"log_format", "text or json [text]", SetLogFormat},
      {"log_level", "debug, info, warning or error [info]", SetLogLevel},
      {"heartbeat_interval", "how often agents give a sign of life [5s]",
       Duration(absl::Seconds(1),
                [](Config& c, absl::Duration d) { c.broker.core.heartbeat_interval = d; })},
      {"request_memory", "how long a request_id outlives its job [1d]",
       Duration(absl::Seconds(1),
                [](Config& c, absl::Duration d) { c.broker.core.request_memory = d; })},
      {"max_queued_jobs", "jobs that may wait; more are refused [10000000]",
       Number(1, kAny, 10, [](Config& c, uint64_t n) { c.broker.core.max_queued_jobs = n; })},
      {"max_streams", "agents (two each), watchers and followers at the same time [10000]",
       Number(1, 1'000'000, 10, [](Config& c, uint64_t n) { c.broker.max_streams = n; })},
      {"logs.max_job_bytes", "log bytes kept for one job [1Gi]",
       Bytes([](Config& c, uint64_t n) { c.logs.max_job_bytes = n; })},
      {"logs.max_total_bytes", "log bytes kept for all jobs [100Gi]",
       Bytes([](Config& c, uint64_t n) { c.logs.max_total_bytes = n; })},
      {"logs.retention", "how long logs are kept after a job's end [30d]",
       Duration(absl::ZeroDuration(), [](Config& c, absl::Duration d) { c.logs.retention = d; })},
  };
}

std::string EnvName(std::string_view key) {
  std::string name = "MUSTER_BROKER_";
  for (const char c : key) name += c == '.' ? '_' : static_cast<char>(toupper(c));
  return name;
}

std::string FlagName(std::string_view key) {
  std::string name = "--";
  for (const char c : key) name += c == '.' || c == '_' ? '-' : c;
  return name;
}

absl::Status ApplyYaml(std::string_view text, std::string_view name, Config* config) {
  if (text.size() > kMaxFileBytes) {
    return Invalid(fmt::format("{} has {} bytes; a settings file may have {}", name, text.size(),
                               kMaxFileBytes));
  }
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return absl::OkStatus();
    if (!root.IsMap()) return At(name, root.Mark(), "the file must consist of `key: value` lines");
    return ApplyNode(root, "", name, Settings(), config);
  } catch (const YAML::Exception& error) {
    return At(name, error.mark, error.msg);
  }
}

absl::Status ApplyEnv(const std::function<const char*(const char*)>& get, Config* config) {
  for (const Setting& setting : Settings()) {
    const std::string name = EnvName(setting.key);
    const char* const value = get(name.c_str());
    if (!value) continue;
    if (absl::Status status = setting.set(*config, value); !status.ok()) {
      return Invalid(fmt::format("{}: {}", name, ToStd(status.message())));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyFlag(std::string_view key, const std::string& value, Config* config) {
  for (const Setting& setting : Settings()) {
    if (setting.key != key) continue;
    if (absl::Status status = setting.set(*config, value); !status.ok()) {
      return Invalid(fmt::format("{}: {}", FlagName(key), ToStd(status.message())));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::broker
