#include "contract/kubernetes_volumes.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "contract/characters.h"
#include "contract/kubernetes_names.h"
#include "contract/kubernetes_options.h"
#include "contract/parts.h"
#include "contract/path_bytes.h"
#include "contract/run_key.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 50;

bool IsText(std::string_view path) {
  return path.size() <= kMaxPathBytes && !HasControlCharacter(path) && IsUtf8(path);
}

bool HasParentPart(std::string_view path) {
  const auto parts = Split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

void CheckBytes(const std::string& field, uint64_t bytes, FieldErrors* errors) {
  if (bytes <= kMaxBytes) return;
  errors->Add(field, fmt::format("{} is too large; use at most {}", bytes, kMaxBytes));
}

void CheckName(const std::string& field, std::string_view name, FieldErrors* errors) {
  if (IsDnsSubdomain(name)) return;
  errors->Add(field,
              fmt::format("{} is not a name in Kubernetes; use a-z, 0-9, '-' and '.', with a "
                          "letter or digit at both ends",
                          Quoted(name)));
}

void CheckPaths(const std::string& field, const v1::KubernetesVolume& volume, FieldErrors* errors) {
  const std::string& path = volume.mount_path();
  if (!path.starts_with('/') || path == "/" || !IsText(path) || HasParentPart(path) ||
      path.find(':') != std::string::npos) {
    errors->Add(field + ".mount_path",
                fmt::format("{} is not a usable path; use an absolute one below / without ':', "
                            "\"..\" and control characters",
                            Quoted(path)));
  }
  const std::string& sub_path = volume.sub_path();
  if (sub_path.starts_with('/') || !IsText(sub_path) || HasParentPart(sub_path)) {
    errors->Add(field + ".sub_path",
                fmt::format("{} is not a path within the volume; use a relative one without \"..\" "
                            "and control characters",
                            Quoted(sub_path)));
  }
}

// A run's own Secrets hold its script, its environment and the files that it brings along; they are
// its user's alone. All are named by its run key, some with more behind a dash.
bool IsSecretOfRun(std::string_view name) {
  for (size_t end = name.find('-'); end != name.npos; end = name.find('-', end + 1)) {
    if (RunKey::Parse(name.substr(0, end)).ok()) return true;
  }
  return RunKey::Parse(name).ok();
}

void CheckSecret(const std::string& field, const std::string& name, FieldErrors* errors) {
  CheckName(field, name, errors);
  if (!IsSecretOfRun(name)) return;
  errors->Add(field, fmt::format("{} is a name that Muster gives to the Secrets of runs, which no "
                                 "other job may read; name a Secret of your own",
                                 Quoted(name)));
}

void CheckSource(const std::string& field, const v1::KubernetesVolume& volume,
                 FieldErrors* errors) {
  switch (volume.source_case()) {
    case v1::KubernetesVolume::kClaim:
      return CheckName(field + ".claim", volume.claim(), errors);
    case v1::KubernetesVolume::kConfigMap:
      return CheckName(field + ".config_map", volume.config_map(), errors);
    case v1::KubernetesVolume::kSecret:
      return CheckSecret(field + ".secret", volume.secret(), errors);
    case v1::KubernetesVolume::kEmptyDirectory:
      return CheckBytes(field + ".empty_directory.size_bytes",
                        volume.empty_directory().size_bytes(), errors);
    case v1::KubernetesVolume::kHostPath:
      if (volume.host_path().starts_with('/') && IsText(volume.host_path()) &&
          !HasParentPart(volume.host_path())) {
        return;
      }
      errors->Add(field + ".host_path",
                  fmt::format("{} is not a usable path; use an absolute one without \"..\" and "
                              "control characters",
                              Quoted(volume.host_path())));
      return;
    case v1::KubernetesVolume::SOURCE_NOT_SET:
      errors->Add(field,
                  "has no source; name a claim, config_map, secret, empty_directory or "
                  "host_path");
      return;
  }
}

}  // namespace

void CheckKubernetesVolumes(const v1::KubernetesOptions& options, FieldErrors* errors) {
  if (options.volumes_size() > kMaxKubernetesVolumes) {
    errors->Add("kubernetes.volumes", fmt::format("{} volumes; use at most {}",
                                                  options.volumes_size(), kMaxKubernetesVolumes));
  }
  std::set<std::string_view> paths;
  for (int i = 0; i < std::min(options.volumes_size(), kMaxKubernetesVolumes); ++i) {
    const v1::KubernetesVolume& volume = options.volumes(i);
    const std::string field = fmt::format("kubernetes.volumes[{}]", i);
    CheckPaths(field, volume, errors);
    CheckSource(field, volume, errors);
    if (!paths.insert(volume.mount_path()).second) {
      errors->Add(field + ".mount_path",
                  fmt::format("{} has another volume already; use another path",
                              Quoted(volume.mount_path())));
    }
  }
  CheckBytes("kubernetes.shm_bytes", options.shm_bytes(), errors);
}

}  // namespace muster::contract
