#include "agents/machines/remote/host_directory.h"

#include "fmt/format.h"

namespace muster::machines {

absl::StatusOr<std::string> HostDirectory(const std::string& configured, const std::string& cluster,
                                          const std::string& name, hosts::Host* host,
                                          absl::Duration patience) {
  // A home that several hosts share is no reason to meet there.
  const std::string own = fmt::format("{}/{}", cluster, name);
  if (!configured.empty()) return fmt::format("{}/{}", configured, own);
  const absl::StatusOr<hosts::CommandResult> home =
      host->Run({.argv = {"/bin/sh", "-c", "printf %s \"$HOME\""}, .timeout = patience});
  if (!home.ok()) return absl::UnavailableError(home.status().message());
  if (!home->ok() || !home->stdout_data.starts_with('/')) {
    return absl::FailedPreconditionError(
        "the user has no home directory there; set machines.host_directory");
  }
  return fmt::format("{}/.muster/{}", home->stdout_data, own);
}

}  // namespace muster::machines
