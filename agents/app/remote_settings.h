// The settings of clusters that are other brokers.
#ifndef MUSTER_AGENTS_APP_REMOTE_SETTINGS_H_
#define MUSTER_AGENTS_APP_REMOTE_SETTINGS_H_

#include <vector>

#include "agents/muster/remote.h"
#include "daemon/settings.h"

namespace muster::agents {

// They write into `config`.
std::vector<Setting> RemoteSettings(remote::RemoteConfig* config);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_REMOTE_SETTINGS_H_
