// The settings of a Kubernetes cluster's backend.
#ifndef MUSTER_AGENTS_KUBERNETES_SETTINGS_KUBERNETES_CONFIG_H_
#define MUSTER_AGENTS_KUBERNETES_SETTINGS_KUBERNETES_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/files/job_files.h"

namespace muster::kubernetes {

// One agent has at most this many namespaces: it keeps five to eight watches in each, with a thread
// and a stream for every watch.
inline constexpr size_t kMaxNamespaces = 32;

// Describes a place of jobs' data, which jobs name as slurm://NAME/...: a claim of the run's
// namespace, or a directory of every node.
struct StorageRoot {
  std::string claim;      // a PersistentVolumeClaim; empty: host_path
  std::string host_path;  // absolute
  std::string mount;      // where containers see it, absolute
};

// The place of each project's runs (manifest/projects.h).
class ProjectMap;

struct KubernetesConfig {
  // The operator's name for the cluster; runs read it as MUSTER_CLUSTER.
  std::string cluster;

  // Fetches the files that jobs bring along; must outlive the backend. Null: the cluster takes no
  // such jobs.
  uploads::JobFiles* files = nullptr;

  // ---- the API server
  // Kubeconfig files, merged as kubectl does. Default: those of $KUBECONFIG, or ~/.kube/config, or
  // else the account of the pod that the agent runs in.
  std::vector<std::string> kubeconfig;
  // The context in it. Default: its current one. A context that fails is an error; no other one is
  // tried.
  std::string context;
  // The namespace of runs that name none. Default: the context's.
  std::string name_space;
  // The namespaces that runs may name, besides `name_space`; each is a pool with limits of its own.
  // Default: none.
  std::vector<std::string> namespaces;

  // The file of projects' namespaces. Default: none; runs of all projects are in `name_space`, or
  // in the namespace that they name.
  std::string projects_file;
  // Its content, by WithProjects; null if there is none.
  std::shared_ptr<const ProjectMap> projects;

  // ---- what is filled in where a job leaves it open
  // The image of jobs that name none. Default: none; such jobs go to other clusters.
  std::string default_image;
  // Names of Secrets in the runs' namespace. Default: none.
  std::vector<std::string> image_pull_secrets;
  // Every pod gets requests, so that it is not the first to be evicted when a node runs short.
  uint64_t default_cpu_millis = 1000;
  uint64_t default_memory_bytes = uint64_t{1} << 30;
  // True: a pod with GPUs gets their share of a node instead, if that is more.
  bool default_gpu_share = true;

  // ---- GPUs
  // The resources that are GPUs, the first one for jobs that name no type.
  std::vector<std::string> gpu_resources = {"nvidia.com/gpu", "amd.com/gpu"};
  // The node label that tells the type. Source:
  // https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md.
  std::string gpu_type_label = "nvidia.com/gpu.product";

  // ---- what jobs may ask for
  bool allow_host_path = false;
  bool allow_host_network = false;
  bool allow_privileged = false;
  // True: pods meet the Pod Security standard "restricted". Default: if there are `projects`.
  std::optional<bool> is_restricted;

  // Default: none.
  std::map<std::string, StorageRoot> storage_roots;
  // Jobs that name no results directory get one below this, named by their number:
  // "slurm://NAME/path". Default: none; such jobs have no results directory.
  std::string results_root;
  // The agent itself sees storage roots at these places, by their names: absolute paths on its
  // machine. Default: none; results are read by who mounts the volume.
  std::map<std::string, std::string> agent_roots;

  // The time that a pod may fail to start (its image cannot be pulled, a Secret is missing) before
  // the run fails.
  absl::Duration start_grace = absl::Minutes(5);
  // The time that some pods of a run may have nodes while others find none, before all pods are
  // removed and the run ends, to be tried again. 0: forever.
  absl::Duration gang_grace = absl::Minutes(10);
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_SETTINGS_KUBERNETES_CONFIG_H_
