// The broker's settings and where they come from: flag > environment > file > default.
//
// One table names every setting. "logs.retention" is in the file
//   logs:
//     retention: 30d
// in the environment MUSTER_BROKER_LOGS_RETENTION, and on the command line --logs-retention.
#ifndef MUSTER_BROKER_RPC_CONFIG_H_
#define MUSTER_BROKER_RPC_CONFIG_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "broker/logs/archive.h"
#include "broker/rpc/broker.h"

namespace muster::broker {

struct Config {
  std::string state_dir;  // required
  bool json_logs = false;
  std::string log_level = "info";  // debug, info, warning, error
  BrokerOptions broker;            // but for socket_path
  logs::Options logs;
};

struct Setting {
  std::string_view key;
  std::string_view help;
  // Errors quote the value and show forms that work.
  std::function<absl::Status(Config&, const std::string& value)> set;
};
std::vector<Setting> Settings();

// "logs.retention" as an environment variable and as a flag.
std::string EnvName(std::string_view key);
std::string FlagName(std::string_view key);

// `name` is the file's, for errors: "broker.yaml:3:5: unknown key ...". The text may have 1 MiB.
absl::Status ApplyYaml(std::string_view text, std::string_view name, Config* config);
// `get` as getenv: null if not set.
absl::Status ApplyEnv(const std::function<const char*(const char*)>& get, Config* config);
absl::Status ApplyFlag(std::string_view key, const std::string& value, Config* config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CONFIG_H_
