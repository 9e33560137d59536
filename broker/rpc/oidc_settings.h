// The settings of the identity provider.
#ifndef MUSTER_BROKER_RPC_OIDC_SETTINGS_H_
#define MUSTER_BROKER_RPC_OIDC_SETTINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "broker/rpc/config.h"
#include "daemon/settings.h"

namespace muster::broker {

std::vector<Setting> OidcSettings(Config* config);

// Reads oidc.ca_file, and looks at the settings together. INVALID_ARGUMENT: one needs another, or
// the file cannot be read or has no certificate.
absl::Status FinishOidc(Config* config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_OIDC_SETTINGS_H_
