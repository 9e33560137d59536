#include "agents/machines/run_request.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

constexpr uint64_t kMillisPerUnit = 1000;

}  // namespace

std::optional<Misfit> CheckPool(const v1::JobSpec& spec) {
  const std::string& pool = spec.placement().pool();
  if (pool.empty() || pool == kPoolName) return std::nullopt;
  return Misfit{
      fmt::format("there is no pool \"{}\"; this cluster has the pool \"{}\"", pool, kPoolName),
      contract::FailureCause::kPoolUnknown};
}

Request RequestOf(const v1::JobSpec& spec) {
  Request request;
  request.nodes = std::max<uint32_t>(1, spec.nodes());
  const uint64_t millis = std::max<uint64_t>(kMillisPerUnit, spec.resources().cpu_millis());
  request.cores = static_cast<uint32_t>((millis + kMillisPerUnit - 1) / kMillisPerUnit);
  request.memory_bytes = spec.resources().memory_bytes();
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) {
    request.gpu_type = absl::AsciiStrToLower(gpus.type());
    request.gpu_millis = static_cast<uint32_t>(gpus.count_millis());
  }
  return request;
}

Request RequestOf(const agent::v1::Assignment& assignment) {
  Request request = RequestOf(assignment.spec());
  request.excluded_hosts.assign(assignment.excluded_nodes().begin(),
                                assignment.excluded_nodes().end());
  std::sort(request.excluded_hosts.begin(), request.excluded_hosts.end());
  return request;
}

Request RequestOf(const RunSpec& spec) {
  return {.cores = spec.cores,
          .memory_bytes = spec.memory_bytes,
          .gpu_type = spec.gpu_type,
          .gpu_millis = spec.gpu_millis};
}

std::string DevicesText(const NodeAllocation& node) {
  std::string text;
  for (const auto& [index, millis] : node.gpus) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", index);
  }
  return text;
}

}  // namespace muster::machines
