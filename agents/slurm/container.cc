#include "agents/slurm/container.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Pyxis takes ',' and ':' for separators without a way to quote them, and hands the rest to enroot
// as shell text. So a path has what no shell and no list gives a meaning.
bool CanBeMounted(std::string_view path) {
  constexpr std::string_view kOthers = "/._-+=@%~";
  return path.starts_with('/') && std::all_of(path.begin(), path.end(), [&](unsigned char c) {
           return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != kOthers.npos;
         });
}

absl::Status CheckPath(std::string_view field, std::string_view path) {
  if (CanBeMounted(path)) return absl::OkStatus();
  return contract::BadField(
      field, fmt::format("\"{}\" cannot be mounted into a container on Slurm; use an absolute path "
                         "of letters, digits and /._-+=@%~",
                         path));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ContainerOptions(
    const v1::JobSpec& spec, std::string_view image, const RunPaths& paths,
    const std::vector<std::string>& cluster_mounts) {
  // The run's own directory has what the command is started from.
  std::vector<std::string> own = {paths.directory()};
  own.insert(own.end(), cluster_mounts.begin(), cluster_mounts.end());
  std::string mounts;
  for (const std::string& path : own) {
    if (absl::Status good = CheckPath("the agent's run_dir or container_mounts", path); !good.ok())
      return good;
    mounts += fmt::format("{}{}:{}", mounts.empty() ? "" : ",", path, path);
  }
  for (int i = 0; i < spec.mounts_size(); ++i) {
    const v1::Mount& mount = spec.mounts(i);
    for (const auto& [name, path] :
         {std::pair("source", &mount.source()), std::pair("target", &mount.target())}) {
      if (absl::Status good = CheckPath(fmt::format("mounts[{}].{}", i, name), *path); !good.ok())
        return good;
    }
    mounts +=
        fmt::format(",{}:{}{}", mount.source(), mount.target(), mount.read_only() ? ":ro" : "");
  }
  return std::vector<std::string>{
      fmt::format("--container-image={}", image),
      "--container-mounts=" + mounts,
      // Whatever the cluster's default: the command is the user's, alike on every cluster.
      "--no-container-entrypoint",
      // Or else an image's own values win, and those of enroot's hook for PyTorch.
      "--container-env=MASTER_ADDR,SKYPILOT_NODE_IPS",
  };
}

std::string ContainerFile(std::string_view image, const std::vector<std::string>& options) {
  std::string file(image.starts_with('/') ? image : "");
  file.push_back('\0');
  for (const std::string& option : options) {
    file += option;
    file.push_back('\0');
  }
  return file;
}

}  // namespace muster::slurm
