// Nodes, and what pods take of them, as far as it counts for where a run fits. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_NODE_OBJECTS_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_NODE_OBJECTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agents/kubernetes/api/json_fields.h"
#include "contract/node_match.h"

namespace muster::kubernetes {

// The resources that a node has, or a pod takes.
struct Amounts {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int64_t pods = 0;
  std::map<std::string, int64_t> gpus =
      {};  // by resource: "nvidia.com/gpu"; those of 0 are left out

  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
  int64_t Gpus(const std::string& resource) const;
  friend bool operator==(const Amounts&, const Amounts&) = default;
};

// Returns the smaller amount of each kind.
Amounts LeastOf(const Amounts& a, const Amounts& b);

using Taint = contract::NodeTaint;

struct NodeObject {
  std::string name;
  bool ready = false;
  std::string not_ready_reason;  // the condition's words; empty if it is ready
  bool unschedulable = false;    // cordoned
  std::vector<Taint> taints;
  std::map<std::string, std::string> labels;
  Amounts allocatable;
  // They are by resource. A device plug-in that starts anew, or a device that is not well, takes
  // from `allocatable` and not from this.
  std::map<std::string, int64_t> gpu_capacity = {};
};

// A pod that has not ended.
struct PodUse {
  std::string key;   // its uid
  std::string node;  // empty: none yet
  std::string name_space;
  std::string job_uid;  // of the Job that owns it; empty: none does
  bool is_own = false;  // it is one of Muster's
  std::string run_key;  // of the run whose it is; empty: of none
  Amounts requests;
};

// The node's resources that are in `gpu_resources` are GPUs.
NodeObject ParseNode(const Json& object, const std::vector<std::string>& gpu_resources);
// Computes the use that the scheduler counts: the greater of all containers together and of each
// init container with the sidecars that started before it; the pod's own resources before both, if
// it has some; and its overhead.
PodUse ParsePodUse(const Json& object, const std::vector<std::string>& gpu_resources);
bool HasPodEnded(const Json& object);
// Keeps the part that ParsePodUse and HasPodEnded read: a pod has some ten thousand bytes.
Json TrimPod(const Json& object);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_NODE_OBJECTS_H_
