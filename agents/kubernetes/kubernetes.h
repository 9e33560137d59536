// Runs on a Kubernetes cluster, each as a Job, through its API server alone: the agent may live in
// the cluster or outside.
#ifndef MUSTER_AGENTS_KUBERNETES_KUBERNETES_H_
#define MUSTER_AGENTS_KUBERNETES_KUBERNETES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/files/job_files.h"

namespace muster::kubernetes {

// Namespaces of one agent: it keeps five to eight watches in each, with a thread and a stream of
// its connections for every one.
inline constexpr size_t kMaxNamespaces = 32;

// Where the jobs' data is, by the name that slurm://NAME/... gives it: in a claim of the run's
// namespace, or in a directory of every node.
struct StorageRoot {
  std::string claim;      // a PersistentVolumeClaim; empty: host_path
  std::string host_path;  // absolute
  std::string mount;      // where containers see it, absolute
};

struct KubernetesConfig {
  // The operator's name for the cluster; runs read it as MUSTER_CLUSTER.
  std::string cluster;

  // The files that jobs bring along; outlives the backend. Null: jobs that bring files are not
  // taken.
  uploads::JobFiles* files = nullptr;

  // ---- the API server
  // Kubeconfig files, merged as kubectl does. Default: those of $KUBECONFIG, or ~/.kube/config, or
  // else the account of the pod that the agent runs in.
  std::vector<std::string> kubeconfig;
  // The context in it. Default: its current one. One that fails is an error: there is no other way.
  std::string context;
  // Where runs are that name no namespace. Default: the context's.
  std::string name_space;
  // The namespaces that runs may name, `name_space` whether or not it is among them; each is a pool
  // with limits of its own. Default: that one alone.
  std::vector<std::string> namespaces;

  // ---- what is filled in where a job leaves it open
  // Of jobs without an image. Default: none; such jobs go to other clusters.
  std::string default_image;
  // Names of Secrets in the runs' namespace. Default: none.
  std::vector<std::string> image_pull_secrets;
  // So that no pod is the first to go when a node runs short.
  uint64_t default_cpu_millis = 1000;
  uint64_t default_memory_bytes = uint64_t{1} << 30;

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

  // Default: none.
  std::map<std::string, StorageRoot> storage_roots;
  // Jobs that name no results directory get one of their number in it, "slurm://NAME/path".
  // Default: none, they have no such directory.
  std::string results_root;

  // How long a pod may fail to start (its image cannot be pulled, a Secret of it is not there)
  // before that is the run's end.
  absl::Duration start_grace = absl::Minutes(5);
  // How long some pods of a run may wait for others of it that find no node, before all are taken
  // away and the run is ended, to be tried again. 0: for ever.
  absl::Duration gang_grace = absl::Minutes(10);
};

// `state_dir` is the agent's own directory, for the runs' outputs. An error says which setting is
// wrong and what to do; whether the server answers is Probe's matter.
absl::StatusOr<std::unique_ptr<agents::Backend>> CreateKubernetesBackend(
    const KubernetesConfig& config, const std::string& state_dir);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_KUBERNETES_H_
