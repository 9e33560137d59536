#include "broker/core/gpu_names.h"

#include "contract/gpu_types.h"

namespace muster::core {
namespace {

constexpr std::string_view kGpu = "gpu";

}  // namespace

bool NamesGpuResource(std::string_view type) {
  return type.find('/') != type.npos || contract::IsSameGpuType(type, kGpu);
}

bool NamesAllGpus(std::string_view type) {
  return contract::IsSameGpuType(type.substr(type.rfind('/') + 1), kGpu);
}

}  // namespace muster::core
