#include "agents/slurm/container.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "agents/core/run_program.h"
#include "contract/errors.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Linux takes 131071 bytes for one argument; the option's own name needs some.
constexpr size_t kMaxVariableListBytes = 131'000;

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

// Returns the field that the path belongs to: inputs and the results directory are mounted like the
// job's own mounts.
std::string FieldOf(const v1::JobSpec& spec, int index, bool is_target) {
  const v1::Mount& mount = spec.mounts(index);
  for (int i = 0; i < spec.inputs_size(); ++i) {
    const v1::Input& input = spec.inputs(i);
    const bool is_moved = !input.path().empty();
    if (mount.source() != input.uri() || mount.target() != (is_moved ? input.path() : input.uri()))
      continue;
    return fmt::format("inputs[{}].{}", i, is_target && is_moved ? "path" : "uri");
  }
  if (mount.source() == spec.results_directory() && mount.target() == mount.source())
    return "results_directory";
  return fmt::format("mounts[{}].{}", index, is_target ? "target" : "source");
}

// Each --container-mounts entry; the run's own directory has what the command is started from.
absl::StatusOr<std::string> Mounts(const v1::JobSpec& spec, const RunPaths& paths,
                                   const std::vector<std::string>& cluster_mounts) {
  std::vector<std::string> own = {paths.directory()};
  if (spec.on_cluster_loss() == v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED)
    own.push_back(RunPaths::LeaseDirectory(paths.root()));
  own.insert(own.end(), cluster_mounts.begin(), cluster_mounts.end());
  std::string mounts;
  for (const std::string& path : own) {
    if (absl::Status good = CheckPath("the agent's run_dir or container_mounts", path); !good.ok())
      return good;
    mounts += fmt::format("{}{}:{}", mounts.empty() ? "" : ",", path, path);
  }
  for (int i = 0; i < spec.mounts_size(); ++i) {
    const v1::Mount& mount = spec.mounts(i);
    for (const auto& [is_target, path] :
         {std::pair(false, &mount.source()), std::pair(true, &mount.target())}) {
      if (absl::Status good = CheckPath(FieldOf(spec, i, is_target), *path); !good.ok())
        return good;
    }
    mounts +=
        fmt::format(",{}:{}{}", mount.source(), mount.target(), mount.read_only() ? ":ro" : "");
  }
  return mounts;
}

// Returns names whose values on the node win over an image's own and those of enroot's hook for
// PyTorch. The command gets the job's variables in any case, from batch.sh; an entrypoint runs
// before that.
absl::StatusOr<std::string> WinningVariables(const agent::v1::Assignment& assignment,
                                             std::string_view cluster, const RunPaths& paths) {
  const v1::JobSpec& spec = assignment.spec();
  const v1::SlurmContainer& container = spec.slurm().container();
  std::set<std::string> names = {"MASTER_ADDR", "SKYPILOT_NODE_IPS"};
  names.insert(container.env().begin(), container.env().end());
  if (container.entrypoint()) {
    for (const auto& [name, value] : agents::RunVariables(assignment, cluster, paths.directory()))
      names.insert(name);
    for (const auto& [name, value] : spec.env()) names.insert(name);
  }
  std::string list = fmt::format("{}", fmt::join(names, ","));
  if (list.size() <= kMaxVariableListBytes) return list;
  return contract::BadField(
      "env", fmt::format("the names of all variables take {} bytes; an image's entrypoint can be "
                         "given {} of them at most",
                         list.size(), kMaxVariableListBytes));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ContainerOptions(
    const agent::v1::Assignment& assignment, std::string_view cluster, std::string_view image,
    const RunPaths& paths, const std::vector<std::string>& cluster_mounts) {
  const v1::SlurmContainer& container = assignment.spec().slurm().container();
  const absl::StatusOr<std::string> mounts = Mounts(assignment.spec(), paths, cluster_mounts);
  if (!mounts.ok()) return mounts.status();
  const absl::StatusOr<std::string> variables = WinningVariables(assignment, cluster, paths);
  if (!variables.ok()) return variables.status();
  std::vector<std::string> options = {fmt::format("--container-image={}", image),
                                      "--container-mounts=" + *mounts,
                                      "--container-env=" + *variables};
  if (!container.name().empty()) options.push_back("--container-name=" + container.name());
  if (container.has_mount_home()) {
    options.emplace_back(container.mount_home() ? "--container-mount-home"
                                                : "--no-container-mount-home");
  }
  if (container.has_remap_root()) {
    options.emplace_back(container.remap_root() ? "--container-remap-root"
                                                : "--no-container-remap-root");
  }
  if (container.writable()) options.emplace_back("--container-writable");
  for (const std::string& option : assignment.spec().slurm().extra_options()) {
    if (contract::IsOfContainer(option)) options.push_back(option);
  }
  // The option is given whatever the cluster's default is: the command is the user's, alike on
  // every cluster. There is no --container-workdir except for batch scripts: batch.sh enters the
  // working directory, and names one that is not there.
  options.emplace_back(container.entrypoint() ? "--container-entrypoint"
                                              : "--no-container-entrypoint");
  return options;
}

std::string ContainerFile(const ContainerImage& image, const std::vector<std::string>& options) {
  std::vector<std::string> words = {
      image.image.starts_with('/') ? image.image : "",
      image.refreshed_by.has_value() ? std::to_string(*image.refreshed_by) : "", image.fallback};
  words.insert(words.end(), options.begin(), options.end());
  std::string file;
  for (const std::string& word : words) {
    file += word;
    file.push_back('\0');
  }
  return file;
}

}  // namespace muster::slurm
