// What the types of GPUs that jobs ask for may name: a type, as nodes have it, or the resource of a
// Kubernetes cluster. In any case, as all types are compared. Pure.
#ifndef MUSTER_BROKER_CORE_GPU_NAMES_H_
#define MUSTER_BROKER_CORE_GPU_NAMES_H_

#include <string_view>

namespace muster::core {

// "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", or "gpu" alone.
bool NamesGpuResource(std::string_view type);

// Of these, "nvidia.com/gpu" and "gpu": where labels tell types, an inventory has those instead.
bool NamesAllGpus(std::string_view type);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_GPU_NAMES_H_
