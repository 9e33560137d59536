// The settings of the HTTP server.
#ifndef MUSTER_BROKER_RPC_HTTP_SETTINGS_H_
#define MUSTER_BROKER_RPC_HTTP_SETTINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "broker/rpc/config.h"
#include "daemon/settings.h"

namespace muster::broker {

// They write into `config`, which outlives them.
std::vector<Setting> HttpSettings(Config* config);

// INVALID_ARGUMENT: the settings do not fit together. To be called once all of them are read.
absl::Status CheckHttp(const Config& config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_HTTP_SETTINGS_H_
