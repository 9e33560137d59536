// The settings of the identity providers.
#ifndef MUSTER_BROKER_RPC_OIDC_SETTINGS_H_
#define MUSTER_BROKER_RPC_OIDC_SETTINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "broker/rpc/config.h"
#include "daemon/settings.h"

namespace muster::broker {

std::vector<Setting> OidcSettings(Config* config);

// Reads the files with CAs, looks at the settings together, and gives the broker its identity
// providers. INVALID_ARGUMENT: a setting needs another, two providers are alike, or a file cannot
// be read or has no certificate.
absl::Status FinishOidc(Config* config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_OIDC_SETTINGS_H_
