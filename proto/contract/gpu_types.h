// Finds the type of GPUs that a job means, where a cluster tells types by long labels, as NVIDIA's
// operator on Kubernetes does: "NVIDIA-H100-80GB-HBM3". Pure.
#ifndef MUSTER_PROTO_CONTRACT_GPU_TYPES_H_
#define MUSTER_PROTO_CONTRACT_GPU_TYPES_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::contract {

// Returns whether a text can be a type: up to 63 letters, digits, '-', '_', '.' and '/', the first
// one a letter or a digit.
bool IsGpuType(std::string_view text);

// Returns the description of a field that has something else.
std::string NoGpuType(std::string_view text);

// Compares types of GPUs; letter case does not count.
bool IsSameGpuType(std::string_view a, std::string_view b);

// Returns whether a type that a job asks for is that resource of Kubernetes: by the resource's
// name, or by what is behind the name's '/'.
bool NamesGpuResource(std::string_view type, std::string_view resource);

// Returns the labels that `wanted` may mean: the one that is the same, in any case; else those that
// have it as parts, in its order ("H100", "a100-80gb"), where '-', '_' and blanks part words. Parts
// of a GPU and GPUs that are shared (the words MIG and SHARED) have to be asked for as such. One
// label is the answer; several mean that the type is ambiguous.
std::vector<std::string> FindGpuTypes(std::string_view wanted, const std::set<std::string>& labels);

// Returns `GPUs of type "H100" may be NVIDIA-H100-80GB-HBM3 or NVIDIA-H100-PCIe`, of several.
std::string MayBeTypes(std::string_view wanted, const std::vector<std::string>& types);
// Says the same, with the way to ask for the first of several: `"H100" may be NVIDIA-H100-80GB-HBM3
// or NVIDIA-H100-PCIe; write ...`.
std::string WhichGpuType(std::string_view wanted, const std::vector<std::string>& types,
                         uint64_t count);

// Returns the text that tells how to ask for so many of that type, in each of the ways to write a
// job.
std::string HowToAskForGpus(std::string_view type, uint64_t count);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_GPU_TYPES_H_
