#include "tests/unit/machines/scheduling/model.h"

#include <algorithm>
#include <bit>
#include <set>

namespace muster::machines {

Model::Model(const std::vector<ClusterHost>& hosts) {
  for (const ClusterHost& host : hosts) {
    Free free = {.cores = host.capacity.cores,
                 .memory = static_cast<int64_t>(host.capacity.memory_bytes),
                 .devices = {}};
    for (const Gpu& gpu : host.capacity.gpus) free.devices.push_back({.type = gpu.type});
    hosts_.push_back(std::move(free));
  }
}

bool Model::NodeFits(const Free& host, const Request& request, const std::string& type) {
  if (!host.up || host.cores < request.cores ||
      host.memory < static_cast<int64_t>(request.memory_bytes)) {
    return false;
  }
  if (request.gpu_millis == 0) return true;
  const int count = request.SharesGpu() ? 1 : static_cast<int>(request.gpu_millis / kWholeGpu);
  const int64_t each = request.SharesGpu() ? request.gpu_millis : kWholeGpu;
  for (uint32_t chosen = 0; chosen < 1u << host.devices.size(); ++chosen) {
    if (std::popcount(chosen) != count) continue;
    bool good = true;
    for (size_t i = 0; i < host.devices.size(); ++i) {
      const bool is_in = (chosen >> i & 1) != 0;
      good = good && (!is_in || (host.devices[i].free >= each && host.devices[i].type == type));
    }
    if (good) return true;
  }
  return false;
}

bool Model::Fits(const Request& request) const {
  std::set<std::string> types;
  if (request.gpu_millis == 0 || !request.gpu_type.empty()) {
    types.insert(request.gpu_type);
  } else {
    for (const Free& host : hosts_) {
      for (const Device& device : host.devices) types.insert(device.type);
    }
  }
  for (const std::string& type : types) {
    std::vector<bool> can;
    for (const Free& host : hosts_) can.push_back(NodeFits(host, request, type));
    for (uint32_t chosen = 0; chosen < 1u << hosts_.size(); ++chosen) {
      if (static_cast<uint32_t>(std::popcount(chosen)) != request.nodes) continue;
      bool good = true;
      for (size_t i = 0; i < hosts_.size(); ++i) good = good && ((chosen >> i & 1) == 0 || can[i]);
      if (good) return true;
    }
  }
  return false;
}

std::string Model::Take(const Request& request, const Allocation& allocation) {
  if (allocation.nodes.size() != request.nodes) return "a part of a gang";
  std::set<uint32_t> hosts;
  std::string type = request.gpu_type;
  for (const NodeAllocation& node : allocation.nodes) {
    if (node.host >= hosts_.size() || !hosts.insert(node.host).second) return "a host twice";
    if (std::string wrong = TakeNode(request, node, &type); !wrong.empty()) return wrong;
  }
  return "";
}

std::string Model::TakeNode(const Request& request, const NodeAllocation& node, std::string* type) {
  Free& host = hosts_[node.host];
  if (!host.up) return "a host that is not up";
  if (node.cores != request.cores || node.memory_bytes != request.memory_bytes)
    return "other cores or memory than asked for";
  host.cores -= node.cores;
  host.memory -= static_cast<int64_t>(node.memory_bytes);
  if (host.cores < 0 || host.memory < 0) return "cores or memory oversubscribed";
  uint32_t millis = 0;
  for (const auto& [index, part] : node.gpus) {
    Device& device = host.devices.at(index);
    if (type->empty()) *type = device.type;
    if (device.type != *type) return "GPUs of another type";
    if (!request.SharesGpu() && part != kWholeGpu) return "a part of a GPU";
    device.free -= part;
    if (device.free < 0) return "a GPU oversubscribed";
    millis += part;
  }
  if (request.SharesGpu() && node.gpus.size() != 1) return "a share that straddles GPUs";
  return millis == request.gpu_millis ? "" : "other GPUs than asked for";
}

void Model::GiveBack(const Allocation& allocation) {
  for (const NodeAllocation& node : allocation.nodes) {
    Free& host = hosts_[node.host];
    host.cores += node.cores;
    host.memory += static_cast<int64_t>(node.memory_bytes);
    for (const auto& [index, part] : node.gpus) host.devices[index].free += part;
  }
}

}  // namespace muster::machines
