#include "broker/core/gpu_names.h"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(GpuNamesTest, NamesOfResourcesAreToldFromTypesInAnyCase) {
  for (const char* type : {"gpu", "GPU", "nvidia.com/gpu", "NVIDIA.com/GPU"}) {
    EXPECT_TRUE(NamesGpuResource(type)) << type;
    EXPECT_TRUE(NamesAllGpus(type)) << type;
  }
  EXPECT_TRUE(NamesGpuResource("nvidia.com/mig-1g.5gb"));
  for (const char* type : {"nvidia.com/mig-1g.5gb", "h100", "", "gpus"})
    EXPECT_FALSE(NamesAllGpus(type)) << type;
  for (const char* type : {"h100", "", "gpus"}) EXPECT_FALSE(NamesGpuResource(type)) << type;
}

}  // namespace
}  // namespace muster::core
