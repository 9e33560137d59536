// Tells which of two kinds of name a job's GPU type is: a type, as nodes have it, or the resource
// of a Kubernetes cluster. Upper and lower case are the same, as in all comparisons of types. Pure.
#ifndef MUSTER_BROKER_CORE_GPU_NAMES_H_
#define MUSTER_BROKER_CORE_GPU_NAMES_H_

#include <string_view>

namespace muster::core {

// Returns true for "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", and "gpu" alone.
bool NamesGpuResource(std::string_view type);

// Returns true for "nvidia.com/gpu" and "gpu": where labels tell types, an inventory has the types
// instead.
bool NamesAllGpus(std::string_view type);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_GPU_NAMES_H_
