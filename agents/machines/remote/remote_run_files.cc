#include "agents/machines/remote/remote_run_files.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "agents/core/host_run_files.h"
#include "agents/hosts/ssh_host.h"
#include "agents/machines/own_run_files.h"
#include "agents/machines/remote/host_directory.h"
#include "agents/machines/remote/launch_record.h"
#include "agents/machines/run_records.h"
#include "contract/errors.h"
#include "contract/run_key.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::RankOfRun;

absl::Status NobodyKnowsWhere(const RankOfRun& of, const std::vector<HostConfig>& hosts) {
  std::string names;
  for (const HostConfig& host : hosts) names += (names.empty() ? "" : ", ") + host.name;
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "RUN_HAS_NO_FILES",
      fmt::format("rank {} of run {} has not been on any of the cluster's hosts ({}), as far as "
                  "agent and broker know; if it is still in the queue, try again when it runs",
                  of.rank, of.run_key, names));
}

absl::Status NotConfigured(const RankOfRun& of, const std::string& host) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "HOST_NOT_CONFIGURED",
      fmt::format("rank {} of run {} was on host {}, which is not in the file of hosts "
                  "(machines.hosts) any more; put it back there to copy from it",
                  of.rank, of.run_key, host),
      {{"host", host}});
}

// Nothing: the agent's records do not know, or not any more.
std::optional<PlacedRank> FindPlacement(const LaunchFiles& files, const RankOfRun& of) {
  if (of.rank >= files.placement.size()) return std::nullopt;
  return files.placement[of.rank];
}

absl::StatusOr<std::unique_ptr<hosts::SshHost>> Reach(const HostConfig& host) {
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> ssh = hosts::SshHost::Create(host.ssh);
  if (ssh.ok()) return ssh;
  return absl::FailedPreconditionError(
      ToAbsl(fmt::format("host {} (settings machines.ssh_..., and the file of hosts): {}",
                         host.name, ToStd(ssh.status().message()))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenRemoteRunFiles(
    const MachinesConfig& config, const std::string& runs_directory, const RankOfRun& of) {
  // It becomes part of paths.
  if (absl::Status s = contract::RunKey::Parse(of.run_key).status(); !s.ok()) return s;
  const absl::StatusOr<std::vector<HostConfig>> hosts = config.read_hosts();
  if (!hosts.ok()) return absl::FailedPreconditionError(hosts.status().message());
  const absl::StatusOr<LaunchFiles> files =
      LaunchRecord(fmt::format("{}/{}", runs_directory, of.run_key)).Read();
  if (!files.ok()) return files.status();
  const std::optional<PlacedRank> placed = FindPlacement(*files, of);
  const std::string name = placed.has_value() ? placed->host : of.node;
  if (name.empty()) return NobodyKnowsWhere(of, *hosts);
  const auto host = std::find_if(hosts->begin(), hosts->end(),
                                 [&](const HostConfig& known) { return known.name == name; });
  if (host == hosts->end()) return NotConfigured(of, name);
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> ssh = Reach(*host);
  if (!ssh.ok()) return ssh.status();
  agents::RunPlace place = {.host_title = fmt::format("host {}", name),
                            .root = {},
                            .directory = fmt::format("{}/{}", of.run_key, kWorkDirectory)};
  // It had a host, and the agent needs none of its files any more.
  if (files->assignment == nullptr) place.gone = WorkIsGone(config.keep_work);
  if (placed.has_value()) {
    const std::string& directory = placed->directory;
    place.root = directory.substr(0, directory.rfind('/'));
  } else {
    const absl::StatusOr<std::string> directory = HostDirectory(
        config.host_directory, config.cluster, name, ssh->get(), agents::kHostFilesPatience);
    if (!directory.ok()) {
      return absl::Status(
          directory.status().code(),
          ToAbsl(fmt::format("host {}: {}", name, ToStd(directory.status().message()))));
    }
    place.root = *directory + "/runs";
  }
  return agents::MakeHostRunFiles(*std::move(ssh), std::move(place));
}

}  // namespace muster::machines
