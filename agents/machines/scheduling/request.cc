#include "agents/machines/scheduling/request.h"

#include "contract/counted.h"
#include "fmt/format.h"

namespace muster::machines {

std::optional<Misfit> CheckShare(const Request& request) {
  if (request.gpu_millis < kWholeGpu || request.gpu_millis % kWholeGpu == 0) return std::nullopt;
  return Misfit{
      fmt::format("resources.gpus[0].count_millis: {} is neither a share of one GPU nor whole GPUs",
                  request.gpu_millis),
      contract::FailureCause::kShareOfGpus};
}

std::string GpuText(const Request& request) {
  const std::string type = request.gpu_type.empty() ? "" : request.gpu_type + " ";
  if (request.SharesGpu()) {
    return fmt::format("{:g} of a {}GPU", static_cast<double>(request.gpu_millis) / kWholeGpu,
                       type);
  }
  const uint32_t count = request.gpu_millis / kWholeGpu;
  return contract::Counted(count, type + "GPU");
}

}  // namespace muster::machines
