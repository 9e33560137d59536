#include "agents/app/kubernetes_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "agents/app/setting_values.h"
#include "contract/image.h"
#include "contract/kubernetes_names.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::agents {
namespace {

using kubernetes::KubernetesConfig;
using kubernetes::StorageRoot;

// The bound is more than any node has.
constexpr uint64_t kMaxCpuMillis = 10'000'000;
// No program starts with less.
constexpr uint64_t kLeastMemoryBytes = uint64_t{1} << 20;
constexpr uint64_t kMostMemoryBytes = uint64_t{1} << 50;

// "/home/ada/.kube/config:/etc/kube/lab", as KUBECONFIG has it.
absl::Status SetKubeconfig(KubernetesConfig* config, const std::string& value) {
  std::vector<std::string> files;
  for (size_t begin = 0; begin <= value.size() && !value.empty();) {
    const size_t colon = std::min(value.find(':', begin), value.size());
    std::string file = value.substr(begin, colon - begin);
    begin = colon + 1;
    if (file.empty()) continue;
    if (!file.starts_with('/'))
      return InvalidSetting(fmt::format("\"{}\" is not an absolute path", file));
    files.push_back(std::move(file));
  }
  config->kubeconfig = std::move(files);
  return absl::OkStatus();
}

// "claim:CLAIM:/MOUNT" or "host:/DIR:/MOUNT".
absl::Status ParseRoot(const std::string& text, StorageRoot* root) {
  const size_t first = text.find(':');
  const size_t last = text.rfind(':');
  const std::string kind = text.substr(0, first);
  if (first != std::string::npos && last > first + 1 && text.substr(last + 1).starts_with('/')) {
    const std::string what = text.substr(first + 1, last - first - 1);
    root->mount = text.substr(last + 1);
    if (kind == "claim") {
      root->claim = what;
      return absl::OkStatus();
    }
    if (kind == "host" && what.starts_with('/')) {
      root->host_path = what;
      return absl::OkStatus();
    }
  }
  return InvalidSetting(fmt::format(
      "\"{}\" is neither claim:CLAIM:/MOUNT nor host:/DIR:/MOUNT, e.g. data=claim:datasets:/data",
      text));
}

// "data=claim:datasets:/data,scratch=host:/mnt/scratch:/scratch"; empty: none.
absl::Status SetRoots(KubernetesConfig* config, const std::string& value) {
  std::map<std::string, StorageRoot> roots;
  for (const std::string& part : SplitAtCommas(value)) {
    const size_t equals = part.find('=');
    StorageRoot root;
    if (equals == std::string::npos || equals == 0)
      return InvalidSetting(fmt::format("\"{}\" has no name; write NAME=claim:CLAIM:/MOUNT", part));
    if (absl::Status good = ParseRoot(part.substr(equals + 1), &root); !good.ok()) return good;
    if (!roots.emplace(part.substr(0, equals), std::move(root)).second)
      return InvalidSetting(fmt::format("\"{}\" is there twice", part.substr(0, equals)));
  }
  config->storage_roots = std::move(roots);
  return absl::OkStatus();
}

// "data=/mnt/data"; empty: none.
absl::Status SetAgentRoots(KubernetesConfig* config, const std::string& value) {
  std::map<std::string, std::string> roots;
  for (const std::string& part : SplitAtCommas(value)) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0 || part[equals + 1] != '/')
      return InvalidSetting(fmt::format("\"{}\" is not NAME=/DIR, e.g. data=/mnt/data", part));
    if (!roots.emplace(part.substr(0, equals), part.substr(equals + 1)).second)
      return InvalidSetting(fmt::format("\"{}\" is there twice", part.substr(0, equals)));
  }
  config->agent_roots = std::move(roots);
  return absl::OkStatus();
}

absl::Status SetDefaultMemory(KubernetesConfig* config, const std::string& value) {
  uint64_t bytes = 0;
  if (absl::Status good = BytesInto(&bytes)(value); !good.ok()) return good;
  if (bytes < kLeastMemoryBytes || bytes > kMostMemoryBytes)
    return InvalidSetting(fmt::format("\"{}\" is not between 1Mi and 1Pi", value));
  config->default_memory_bytes = bytes;
  return absl::OkStatus();
}

Setter ListInto(std::vector<std::string>* out) {
  return [out](const std::string& value) {
    *out = SplitAtCommas(value);
    return absl::OkStatus();
  };
}

Setter ImageInto(std::string* out) {
  return [out](const std::string& value) {
    const absl::StatusOr<contract::Image> image = contract::ParseImage(value);
    if (image.ok()) *out = value;
    return image.status();
  };
}

// "team-a,team-b".
absl::Status SetNamespaces(KubernetesConfig* config, const std::string& value) {
  std::vector<std::string> names = SplitAtCommas(value);
  if (names.size() > kubernetes::kMaxNamespaces) {
    return InvalidSetting(
        fmt::format("it names {} namespaces, and one agent works in {} at most; "
                    "give the others an agent of their own",
                    names.size(), kubernetes::kMaxNamespaces));
  }
  for (const std::string& name : names) {
    if (!contract::IsDnsLabel(name)) {
      return InvalidSetting(
          fmt::format("\"{}\" is not a namespace's name: 1 to 63 of a-z, 0-9 and "
                      "'-', beginning and ending with a letter or a digit",
                      name));
    }
  }
  config->namespaces = std::move(names);
  return absl::OkStatus();
}

std::vector<Setting> ServerSettings(KubernetesConfig* config) {
  return {
      {"kubernetes.kubeconfig",
       "kubeconfig files FILE[:FILE]... [$KUBECONFIG, ~/.kube/config, or the pod's own account]",
       [config](const std::string& value) { return SetKubeconfig(config, value); }},
      {"kubernetes.context", "the context in them [the current one]", TextInto(&config->context)},
      {"kubernetes.namespace", "namespace of runs that name none [the context's]",
       TextInto(&config->name_space)},
      {.key = "kubernetes.namespaces",
       .help = "other namespaces that runs may name, NAME,... [none]",
       .set = [config](const std::string& value) { return SetNamespaces(config, value); },
       .is_list = true},
      {"kubernetes.projects",
       "file with a line PROJECT: NAMESPACE for each project [all share the namespaces]",
       AbsolutePathInto(&config->projects_file)},
      {"kubernetes.pod_security",
       "whether jobs' pods meet the Pod Security standard: restricted or unrestricted "
       "[unrestricted; with kubernetes.projects restricted]",
       OneOf(
           {"restricted", "unrestricted"},
           [config](const std::string& value) { config->is_restricted = value == "restricted"; })},
  };
}

std::vector<Setting> RunSettings(KubernetesConfig* config) {
  return {
      {"kubernetes.default_image", "image of jobs that name none [such jobs go elsewhere]",
       ImageInto(&config->default_image)},
      {.key = "kubernetes.image_pull_secrets",
       .help = "Secrets with registries' credentials, NAME,... [none]",
       .set = ListInto(&config->image_pull_secrets),
       .is_list = true},
      {"kubernetes.default_cpus", "cores of jobs that ask for none, 1 to 10000 [1]",
       NumberInto(1, kMaxCpuMillis / 1000,
                  [config](uint64_t cores) { config->default_cpu_millis = cores * 1000; })},
      {"kubernetes.default_memory", "memory of jobs that ask for none [1Gi]",
       [config](const std::string& value) { return SetDefaultMemory(config, value); }},
      {"kubernetes.default_gpu_share",
       "whether GPUs bring their share of a node's cores and memory, if that is more than these "
       "two [yes]",
       YesInto(&config->default_gpu_share)},
      {.key = "kubernetes.gpu_resources",
       .help = "resources that are GPUs; jobs that name no type get the first "
               "[nvidia.com/gpu,amd.com/gpu]",
       .set = ListInto(&config->gpu_resources),
       .is_list = true},
      {"kubernetes.gpu_type_label", "node label with the GPUs' type [nvidia.com/gpu.product]",
       TextInto(&config->gpu_type_label)},
      {"kubernetes.allow_host_path", "whether jobs may mount directories of nodes [no]",
       YesInto(&config->allow_host_path)},
      {"kubernetes.allow_host_network", "whether jobs may use the nodes' network [no]",
       YesInto(&config->allow_host_network)},
      {"kubernetes.allow_privileged", "whether jobs may be privileged [no]",
       YesInto(&config->allow_privileged)},
      {"kubernetes.storage_roots",
       "places of jobs' data, NAME=claim:CLAIM:/MOUNT or NAME=host:/DIR:/MOUNT,... [none]",
       [config](const std::string& value) { return SetRoots(config, value); }},
      {"kubernetes.agent_roots",
       "where the agent itself sees some of them, to read results, NAME=/DIR,... [none]",
       [config](const std::string& value) { return SetAgentRoots(config, value); }},
      {"kubernetes.results_root", "directory below which each job gets one for its results [none]",
       TextInto(&config->results_root)},
      {"kubernetes.start_grace",
       "how long an image or a Secret may be missing before the run fails [5m]",
       DurationInto(&config->start_grace)},
      {"kubernetes.gang_grace",
       "how long a run may wait with nodes for only some of its pods; then it is queued again "
       "[10m]",
       DurationInto(&config->gang_grace)},
  };
}

}  // namespace

std::vector<Setting> KubernetesSettings(KubernetesConfig* config) {
  std::vector<Setting> settings = ServerSettings(config);
  for (Setting& setting : RunSettings(config)) settings.push_back(std::move(setting));
  return settings;
}

}  // namespace muster::agents
