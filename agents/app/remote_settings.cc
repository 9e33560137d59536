#include "agents/app/remote_settings.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "agents/app/setting_values.h"
#include "contract/kubernetes_names.h"
#include "contract/validate.h"
#include "rpc/address.h"

namespace muster::agents {
namespace {

// As many as a job may name (JobSpec.placement.clusters).
constexpr size_t kMaxClusters = 100;

absl::Status SetProject(remote::RemoteConfig* config, const std::string& value) {
  if (!contract::IsDnsLabel(value)) {
    return InvalidSetting(
        fmt::format("\"{}\" is not a project's name: 1 to 63 of a-z, 0-9 and '-', beginning and "
                    "ending with a letter or a digit",
                    value));
  }
  config->project = value;
  return absl::OkStatus();
}

// "gpu,cpu".
absl::Status SetClusters(remote::RemoteConfig* config, const std::string& value) {
  std::vector<std::string> names = SplitAtCommas(value);
  if (names.size() > kMaxClusters) {
    return InvalidSetting(
        fmt::format("it names {} clusters; name {} at most, or none for all of them", names.size(),
                    kMaxClusters));
  }
  for (const std::string& name : names) {
    if (absl::Status good = contract::ValidateClusterName(name); !good.ok()) return good;
  }
  config->clusters = std::move(names);
  return absl::OkStatus();
}

}  // namespace

std::vector<Setting> RemoteSettings(remote::RemoteConfig* config) {
  return {
      {"muster.address",
       "the other broker: unix:PATH, HOST:PORT or tls:HOST:PORT (required with kind muster)",
       [config](const std::string& value) {
         config->address = value;
         return rpc::ParseAddress(value).status();
       }},
      {"muster.token_file",
       "file of the token with which the agent speaks there, readable only by its owner [its Unix "
       "user speaks, over unix:PATH]",
       AbsolutePathInto(&config->token_file)},
      {"muster.ca_file", "file of the CAs that the other broker's certificate comes from [none]",
       AbsolutePathInto(&config->ca_file)},
      {"muster.project", "project of the jobs there [the job's own project, by its name]",
       [config](const std::string& value) { return SetProject(config, value); }},
      {.key = "muster.clusters",
       .help = "the only clusters of it that are used, NAME,... [all]",
       .set = [config](const std::string& value) { return SetClusters(config, value); },
       .is_list = true},
  };
}

}  // namespace muster::agents
