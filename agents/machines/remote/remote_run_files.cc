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

// Returns nothing if the agent's records do not know it, or not any more.
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

// The host of a rank, and what the agent's records know of it.
struct RankHost {
  std::string name;
  std::unique_ptr<hosts::SshHost> ssh;
  std::optional<PlacedRank> placed;
  bool is_over = false;  // the agent needs none of its files any more
};

absl::StatusOr<RankHost> HostOf(const MachinesConfig& config, const std::string& runs_directory,
                                const RankOfRun& of) {
  // It becomes part of paths.
  if (absl::Status s = contract::RunKey::Parse(of.run_key).status(); !s.ok()) return s;
  const absl::StatusOr<std::vector<HostConfig>> hosts = config.read_hosts();
  if (!hosts.ok()) return absl::FailedPreconditionError(hosts.status().message());
  const absl::StatusOr<LaunchFiles> files =
      LaunchRecord(fmt::format("{}/{}", runs_directory, of.run_key)).Read();
  if (!files.ok()) return files.status();
  RankHost found = {.name = {},
                    .ssh = nullptr,
                    .placed = FindPlacement(*files, of),
                    .is_over = files->assignment == nullptr};
  found.name = found.placed.has_value() ? found.placed->host : of.node;
  if (found.name.empty()) return NobodyKnowsWhere(of, *hosts);
  const auto host = std::find_if(hosts->begin(), hosts->end(),
                                 [&](const HostConfig& known) { return known.name == found.name; });
  if (host == hosts->end()) return NotConfigured(of, found.name);
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> ssh = Reach(*host);
  if (!ssh.ok()) return ssh.status();
  found.ssh = *std::move(ssh);
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenRemoteRunFiles(
    const MachinesConfig& config, const std::string& runs_directory, const RankOfRun& of) {
  absl::StatusOr<RankHost> host = HostOf(config, runs_directory, of);
  if (!host.ok()) return host.status();
  agents::RunPlace place = {.host_title = fmt::format("host {}", host->name),
                            .root = {},
                            .directory = fmt::format("{}/{}", of.run_key, kWorkDirectory)};
  if (host->is_over) place.gone = WorkIsGone(config.keep_work);
  if (host->placed.has_value()) {
    place.root = agents::SplitOf(host->placed->directory).parent;
  } else {
    const absl::StatusOr<std::string> directory =
        HostDirectory(config.host_directory, config.cluster, host->name, host->ssh.get(),
                      agents::kHostFilesPatience);
    if (!directory.ok()) {
      return absl::Status(
          directory.status().code(),
          ToAbsl(fmt::format("host {}: {}", host->name, ToStd(directory.status().message()))));
    }
    place.root = *directory + "/runs";
  }
  return agents::MakeHostRunFiles(std::move(host->ssh), std::move(place));
}

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenRemoteResults(
    const MachinesConfig& config, const std::string& runs_directory, const RankOfRun& of) {
  absl::StatusOr<RankHost> host = HostOf(config, runs_directory, of);
  if (!host.ok()) return host.status();
  return agents::MakeHostResults(std::move(host->ssh), fmt::format("host {}", host->name),
                                 of.results_directory);
}

}  // namespace muster::machines
