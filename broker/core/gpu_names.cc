#include "broker/core/gpu_names.h"

#include <algorithm>
#include <cctype>

namespace muster::core {
namespace {

constexpr std::string_view kGpu = "gpu";

}  // namespace

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

bool NamesGpuResource(std::string_view type) {
  return type.find('/') != type.npos || SameIgnoringCase(type, kGpu);
}

bool NamesAllGpus(std::string_view type) {
  return SameIgnoringCase(type.substr(type.rfind('/') + 1), kGpu);
}

}  // namespace muster::core
