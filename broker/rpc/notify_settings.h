// The settings of notifications.
#ifndef MUSTER_BROKER_RPC_NOTIFY_SETTINGS_H_
#define MUSTER_BROKER_RPC_NOTIFY_SETTINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "broker/rpc/config.h"
#include "daemon/settings.h"

namespace muster::broker {

// They write into `config`, which outlives them.
std::vector<Setting> NotifySettings(Config* config);

// Reads the file of webhooks, and those that it names. INVALID_ARGUMENT names the setting. To be
// called once all settings are read.
absl::Status FinishNotify(Config* config);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_NOTIFY_SETTINGS_H_
