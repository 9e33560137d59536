// The settings of muster-broker.
#ifndef MUSTER_BROKER_RPC_CONFIG_H_
#define MUSTER_BROKER_RPC_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/files/file_store.h"
#include "broker/logs/archive.h"
#include "broker/rpc/broker.h"
#include "daemon/settings.h"

namespace muster::broker {

// The settings of an identity provider.
struct OidcIssuer {
  std::string name;  // of an entry of oidc.issuers; empty: the single form
  oidc::VerifierOptions options;
  std::string ca_file;
  bool has_scopes = false;  // the setting names them
};

struct Config {
  std::string state_dir;  // required
  bool json_logs = false;
  std::string log_level = "info";        // debug, info, warning, error
  BrokerOptions broker;                  // all options except socket_path
  std::optional<absl::Duration> lease;   // read by FinishLease; nothing: a minute, or longer
  OidcIssuer oidc;                       // the single form; read by FinishOidc
  std::vector<OidcIssuer> oidc_issuers;  // the list; likewise
  std::string webhook_file;              // read by FinishNotify
  logs::Options logs;
  files::Options files;
};

// Returns every setting; they write into `config`.
std::vector<Setting> SettingsOf(Config* config);

// Sets the length of leases. INVALID_ARGUMENT if they are too short beside heartbeats. To be called
// once all settings are read.
absl::Status FinishLease(Config* config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CONFIG_H_
