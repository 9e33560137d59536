// The file of the hosts that a machines agent reaches over SSH:
//
//   gpu1: {ssh: gpu1.lab, gpus: {h100: 4}}
//   gpu2: {ssh: ada@gpu2.lab:2222, address: 10.0.0.2, labels: [fast-disk], cordon: yes}
#ifndef MUSTER_AGENTS_APP_MACHINE_HOSTS_H_
#define MUSTER_AGENTS_APP_MACHINE_HOSTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/hosts/ssh_config.h"
#include "agents/machines/host_config.h"

namespace muster::agents {

// "h100:4,a100:2", in the order in which it says so; empty: none.
absl::StatusOr<machines::GpuCounts> ParseGpuCounts(std::string_view text);

// `ssh`: what all hosts have in common. INVALID_ARGUMENT "FILE:LINE:COLUMN: ..." names the setting
// and the remedy.
absl::StatusOr<std::vector<machines::HostConfig>> ParseMachineHosts(std::string_view text,
                                                                    std::string_view file,
                                                                    const hosts::SshConfig& ssh);
// INVALID_ARGUMENT also if the file cannot be read.
absl::StatusOr<std::vector<machines::HostConfig>> ReadMachineHosts(const std::string& path,
                                                                   const hosts::SshConfig& ssh);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_MACHINE_HOSTS_H_
