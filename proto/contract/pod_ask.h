// Computes what each pod of a job asks of a Kubernetes node, by published facts. Pure.
#ifndef MUSTER_PROTO_CONTRACT_POD_ASK_H_
#define MUSTER_PROTO_CONTRACT_POD_ASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "contract/admission.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// The demand of each pod on a node.
struct PodAsk {
  v1::KubernetesOptions options;  // without what is asked of untold labels
  std::string gpu_resource;       // empty: no GPU
  std::string gpu_type;           // empty: any
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpus = 0;
};

// The demand with what the cluster fills in where the job leaves it open.
PodAsk PodAskOf(const AdmissionNeeds& needs, const v1::KubernetesFacts& facts);

// Returns the reasons that keep such a pod from nodes of that profile; empty if none does.
std::vector<std::string> ObjectionsOf(const PodAsk& ask, const v1::NodeProfile& profile,
                                      const std::string& gpu_type_label);

uint64_t GpusOf(const v1::NodeProfile& profile, const std::string& resource);

// Returns the namespace that the run would be in; null if it is not among the facts.
const v1::NamespaceFacts* NamespaceOf(const AdmissionNeeds& needs,
                                      const v1::KubernetesFacts& facts);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_POD_ASK_H_
