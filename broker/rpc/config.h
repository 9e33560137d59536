// The settings of muster-broker.
#ifndef MUSTER_BROKER_RPC_CONFIG_H_
#define MUSTER_BROKER_RPC_CONFIG_H_

#include <string>
#include <vector>

#include "broker/files/file_store.h"
#include "broker/logs/archive.h"
#include "broker/rpc/broker.h"
#include "daemon/settings.h"

namespace muster::broker {

struct Config {
  std::string state_dir;  // required
  bool json_logs = false;
  std::string log_level = "info";  // debug, info, warning, error
  BrokerOptions broker;            // all options except socket_path
  std::string oidc_ca_file;        // read by FinishOidc
  logs::Options logs;
  files::Options files;
};

// Returns every setting; they write into `config`.
std::vector<Setting> SettingsOf(Config* config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CONFIG_H_
