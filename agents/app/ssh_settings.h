// The settings of a cluster that is reached over SSH.
#ifndef MUSTER_AGENTS_APP_SSH_SETTINGS_H_
#define MUSTER_AGENTS_APP_SSH_SETTINGS_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "agents/hosts/ssh_config.h"
#include "daemon/settings.h"

namespace muster::agents {

// "SECTION.ssh_hosts" and so on; they write into `ssh`.
std::vector<Setting> SshSettings(std::string_view section, hosts::SshConfig* ssh);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_SSH_SETTINGS_H_
