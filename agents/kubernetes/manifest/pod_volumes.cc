#include "agents/kubernetes/manifest/pod_volumes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "agents/core/job_storage.h"
#include "agents/hosts/shell_quote.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "agents/kubernetes/manifest/storage_places.h"
#include "contract/admission.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/storage_uri.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using contract::BadField;
using contract::Quoted;

constexpr uint64_t kMaxDefaultShmBytes = uint64_t{16} << 30;
// Everybody in the container may read it: which user that is, is the image's matter.
constexpr int kFileMode = 0444;
constexpr const char* kSharedMemory = contract::kSharedMemory.data();
// The directory of the storage's roots in the container that looks at them.
constexpr char kRootsDirectory[] = "/muster/roots";

bool HasParentPart(std::string_view path) {
  return fmt::format("{}/", path).find("/../") != std::string::npos;
}

// Returns every text of the job that may be a URI, in an order that resolving does not change.
std::vector<std::string> ProgramTexts(const v1::JobSpec& spec) {
  std::vector<std::string> texts;
  const auto add_env = [&](const auto& env) {
    const std::map<std::string, std::string> sorted(env.begin(), env.end());
    for (const auto& [name, value] : sorted) texts.push_back(value);
  };
  const auto add_command = [&](const v1::Command& command) {
    const auto& args = command.argv().args();
    texts.insert(texts.end(), args.begin(), args.end());
    const auto& arguments = command.script_arguments();
    texts.insert(texts.end(), arguments.begin(), arguments.end());
  };
  add_env(spec.env());
  add_command(spec.command());
  for (const v1::Role& role : spec.roles()) {
    add_env(role.env());
    add_command(role.command());
  }
  return texts;
}

class Maker {
 public:
  Maker(const agent::v1::Assignment& original, const agent::v1::Assignment& resolved,
        const KubernetesConfig& config)
      : original_(original.spec()), spec_(resolved.spec()), config_(config) {}

  absl::StatusOr<PodVolumes> Make(const std::string& run_key) {
    AddOwn(run_key);
    absl::Status status = AddShownRoots();
    for (int i = 0; i < spec_.mounts_size() && status.ok(); ++i) status = AddStorage(i);
    for (int i = 0; i < spec_.kubernetes().volumes_size() && status.ok(); ++i) {
      status = AddVolume(fmt::format("kubernetes.volumes[{}]", i), spec_.kubernetes().volumes(i));
    }
    if (status.ok() && !taken_.contains(kSharedMemory)) status = AddSharedMemory();
    if (!status.ok()) return status;
    return std::move(made_);
  }

 private:
  void AddOwn(const std::string& run_key) {
    made_.volumes.push_back({{"name", "muster-run"},
                             {"secret", {{"secretName", run_key}, {"defaultMode", kFileMode}}}});
    made_.mounts.push_back({{"name", "muster-run"}, {"mountPath", kRunFiles}, {"readOnly", true}});
    made_.volumes.push_back({{"name", "muster-work"}, {"emptyDir", Json::object()}});
    made_.mounts.push_back({{"name", "muster-work"}, {"mountPath", kWorkDirectory}});
    if (spec_.on_cluster_loss() != v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED) return;
    made_.volumes.push_back(LeaseVolume(run_key, config_.cluster));
    made_.mounts.push_back(LeaseMount());
  }

  absl::Status AddSharedMemory() {
    const uint64_t memory = spec_.resources().memory_bytes() > 0 ? spec_.resources().memory_bytes()
                                                                 : config_.default_memory_bytes;
    uint64_t bytes = spec_.kubernetes().shm_bytes();
    if (std::string words = contract::SharedMemoryTooLarge(bytes, memory); !words.empty())
      return BadField("kubernetes.shm_bytes", words);
    if (bytes == 0) bytes = std::min(memory / 2, kMaxDefaultShmBytes);
    made_.volumes.push_back(
        {{"name", "muster-shm"},
         {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", std::to_string(bytes)}}}});
    made_.mounts.push_back({{"name", "muster-shm"}, {"mountPath", kSharedMemory}});
    return absl::OkStatus();
  }

  // One volume of the pod for each source, however often it is mounted: some volumes cannot be
  // attached twice.
  const std::string& VolumeOf(Json source) {
    const auto [it, is_new] = names_.try_emplace(source.dump());
    if (is_new) {
      it->second = fmt::format("volume-{}", names_.size() - 1);
      source["name"] = it->second;
      made_.volumes.push_back(std::move(source));
    }
    return it->second;
  }

  const std::string& VolumeOf(const StorageRoot& root) {
    if (!root.claim.empty())
      return VolumeOf(Json{{"persistentVolumeClaim", {{"claimName", root.claim}}}});
    return VolumeOf(Json{{"hostPath", {{"path", root.host_path}, {"type", "Directory"}}}});
  }

  absl::Status Take(const std::string& field, const std::string& path) {
    if (std::string bad = contract::BadMountPlace(path); !bad.empty()) return BadField(field, bad);
    if (taken_.insert(path).second) return absl::OkStatus();
    return BadField(field, fmt::format("{} is mounted twice; use another path", Quoted(path)));
  }

  static Json MountOf(const std::string& volume, const std::string& path,
                      const std::string& sub_path, bool read_only) {
    Json mount = {{"name", volume}, {"mountPath", path}};
    if (!sub_path.empty()) mount["subPath"] = sub_path;
    if (read_only) mount["readOnly"] = true;
    return mount;
  }

  // Roots that a variable or an argument leads into are shown whole: nobody says what the program
  // does there.
  absl::Status AddShownRoots() {
    const std::vector<std::string> before = ProgramTexts(original_);
    const std::vector<std::string> after = ProgramTexts(spec_);
    for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
      if (before[i] == after[i]) continue;
      const auto* root = RootOf(config_, after[i]);
      if (root == nullptr) {
        return BadField("command", InNoRoot(before[i]));
      }
      if (!taken_.insert(root->second.mount).second) continue;
      made_.mounts.push_back(MountOf(VolumeOf(root->second), root->second.mount, "", false));
    }
    return absl::OkStatus();
  }

  std::string InNoRoot(const std::string& path) const {
    return contract::InNoStorageRoot(path, config_.cluster, !config_.storage_roots.empty());
  }

  // The field of the job that a mount is for, and the content that it shows.
  struct Purpose {
    std::string source_field;
    std::string target_field;
    bool is_results = false;
  };

  Purpose PurposeOf(int index) const {
    const v1::Mount& mount = spec_.mounts(index);
    if (index < original_.mounts_size()) {
      return {fmt::format("mounts[{}].source", index), fmt::format("mounts[{}].target", index)};
    }
    for (int i = 0; i < spec_.inputs_size(); ++i) {
      const v1::Input& input = spec_.inputs(i);
      const bool is_moved = !input.path().empty();
      if (!mount.read_only() || mount.source() != input.uri()) continue;
      if (mount.target() != (is_moved ? input.path() : input.uri())) continue;
      return {fmt::format("inputs[{}].uri", i),
              fmt::format("inputs[{}].{}", i, is_moved ? "path" : "uri")};
    }
    return {"results_directory", "results_directory", true};
  }

  absl::Status AddStorage(int index) {
    const v1::Mount& mount = spec_.mounts(index);
    const Purpose purpose = PurposeOf(index);
    if (IsShownAlready(index)) return absl::OkStatus();
    if (HasParentPart(mount.source())) {
      return BadField(purpose.source_field,
                      fmt::format("{} holds \"..\"; write where it leads", Quoted(mount.source())));
    }
    const auto* root = RootOf(config_, mount.source());
    if (root == nullptr) return AddHostPath(purpose, mount);
    if (absl::Status free = Take(purpose.target_field, mount.target()); !free.ok()) return free;
    const std::string& volume = VolumeOf(root->second);
    const std::string rest = Below(mount.source(), root->second.mount);
    made_.mounts.push_back(MountOf(volume, mount.target(), rest, mount.read_only()));
    const std::string there = fmt::format("{}/{}", kRootsDirectory, root->first);
    made_.storage_words += fmt::format(
        "{} {} {} {}\n", purpose.is_results ? "muster_make" : "muster_need", purpose.source_field,
        hosts::Quoted(mount.source()), hosts::Quoted(rest.empty() ? there : there + "/" + rest));
    if (looked_at_.insert(root->first).second)
      made_.storage_mounts.push_back(MountOf(volume, there, "", false));
    return absl::OkStatus();
  }

  // Tells whether the same data is at the same place, e.g. for an input that is named twice.
  bool IsShownAlready(int index) const {
    const v1::Mount& mount = spec_.mounts(index);
    for (int i = 0; i < index; ++i) {
      const v1::Mount& other = spec_.mounts(i);
      if (other.source() == mount.source() && other.target() == mount.target() &&
          other.read_only() == mount.read_only()) {
        return true;
      }
    }
    return false;
  }

  absl::Status AddHostPath(const Purpose& purpose, const v1::Mount& mount) {
    if (!config_.allow_host_path || purpose.source_field.starts_with("inputs") ||
        purpose.is_results) {
      return BadField(purpose.source_field, InNoRoot(mount.source()));
    }
    if (absl::Status free = Take(purpose.target_field, mount.target()); !free.ok()) return free;
    made_.mounts.push_back(MountOf(VolumeOf(Json{{"hostPath", {{"path", mount.source()}}}}),
                                   mount.target(), "", mount.read_only()));
    return absl::OkStatus();
  }

  absl::Status AddVolume(const std::string& field, const v1::KubernetesVolume& volume) {
    if (absl::Status free = Take(field + ".mount_path", volume.mount_path()); !free.ok())
      return free;
    Json source;
    bool read_only = volume.read_only();
    switch (volume.source_case()) {
      case v1::KubernetesVolume::kClaim:
        source["persistentVolumeClaim"] = {{"claimName", volume.claim()}};
        break;
      case v1::KubernetesVolume::kConfigMap:
        source["configMap"] = {{"name", volume.config_map()}};
        read_only = true;
        break;
      case v1::KubernetesVolume::kSecret:
        if (absl::Status own = CheckSecret(field + ".secret", volume.secret()); !own.ok())
          return own;
        source["secret"] = {{"secretName", volume.secret()}};
        read_only = true;
        break;
      case v1::KubernetesVolume::kEmptyDirectory:
        AddEmptyDirectory(field, volume);
        return absl::OkStatus();
      case v1::KubernetesVolume::kHostPath:
        if (!config_.allow_host_path) {
          return BadField(field + ".host_path",
                          contract::HostPathForbidden(volume.host_path(), config_.cluster));
        }
        source["hostPath"] = {{"path", volume.host_path()}};
        break;
      default:
        return BadField(field,
                        "has no source; name a claim, config_map, secret, empty_directory "
                        "or host_path");
    }
    made_.mounts.push_back(
        MountOf(VolumeOf(std::move(source)), volume.mount_path(), volume.sub_path(), read_only));
    return absl::OkStatus();
  }

  // Jobs may use the operator's credentials, and not see the password.
  absl::Status CheckSecret(const std::string& field, const std::string& name) const {
    const std::vector<std::string>& own = config_.image_pull_secrets;
    if (std::find(own.begin(), own.end(), name) == own.end()) return absl::OkStatus();
    return BadField(field, contract::OperatorsSecret(name, config_.cluster));
  }

  // Each one is another directory.
  void AddEmptyDirectory(const std::string& field, const v1::KubernetesVolume& volume) {
    Json directory = Json::object();
    if (volume.empty_directory().in_memory()) directory["medium"] = "Memory";
    if (volume.empty_directory().size_bytes() > 0)
      directory["sizeLimit"] = std::to_string(volume.empty_directory().size_bytes());
    const auto [it, is_new] = names_.try_emplace(field, fmt::format("volume-{}", names_.size()));
    made_.volumes.push_back({{"name", it->second}, {"emptyDir", std::move(directory)}});
    made_.mounts.push_back(
        MountOf(it->second, volume.mount_path(), volume.sub_path(), volume.read_only()));
  }

  const v1::JobSpec& original_;
  const v1::JobSpec& spec_;
  const KubernetesConfig& config_;
  PodVolumes made_;
  std::map<std::string, std::string> names_;  // of volumes, by their sources
  std::set<std::string> taken_;               // where something is mounted
  std::set<std::string> looked_at_;           // roots
};

}  // namespace

absl::StatusOr<agent::v1::Assignment> OnStorage(const agent::v1::Assignment& assignment,
                                                const KubernetesConfig& config) {
  agent::v1::Assignment imaged = assignment;
  if (imaged.spec().image().empty()) imaged.mutable_spec()->set_image(config.default_image);
  if (imaged.spec().image().empty()) {
    return BadField("image",
                    fmt::format("is empty, and cluster {} has no kubernetes.default_image; "
                                "name an image",
                                config.cluster));
  }
  agents::JobStorage storage;
  storage.cluster = StorageOf(config);
  if (!config.results_root.empty()) {
    absl::StatusOr<std::string> root = contract::ResolveStorageUri(
        "kubernetes.results_root", config.results_root, storage.cluster);
    if (!root.ok()) return root.status();
    storage.results_root = *std::move(root);
  }
  absl::StatusOr<agent::v1::Assignment> resolved = agents::OnCluster(imaged, storage);
  if (!resolved.ok() || !resolved->spec().status_json()) return resolved;
  const std::string& results = resolved->spec().results_directory();
  if (FindReadable(config, results).has_value()) return resolved;
  return BadField("status_json", contract::StatusNotReadable(results, config.cluster));
}

absl::StatusOr<PodVolumes> MakeVolumes(const agent::v1::Assignment& original,
                                       const agent::v1::Assignment& resolved,
                                       const KubernetesConfig& config) {
  return Maker(original, resolved, config).Make(resolved.run_key());
}

}  // namespace muster::kubernetes
