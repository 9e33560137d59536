#include "agents/machines/scheduling/room.h"

#include <algorithm>

namespace muster::machines {

Room::Room(const std::vector<ClusterHost>& hosts) {
  for (const ClusterHost& host : hosts) {
    for (const Gpu& gpu : host.capacity.gpus) types_.push_back(gpu.type);
  }
  std::sort(types_.begin(), types_.end());
  types_.erase(std::unique(types_.begin(), types_.end()), types_.end());
  for (const ClusterHost& host : hosts) {
    hosts_.push_back({.name = host.name,
                      .cores = host.capacity.cores,
                      .memory = host.capacity.memory_bytes,
                      .first_device = devices_.size(),
                      .devices = host.capacity.gpus.size(),
                      .open = host.state == HostState::kUp});
    for (const Gpu& gpu : host.capacity.gpus) {
      const auto type = std::lower_bound(types_.begin(), types_.end(), gpu.type);
      devices_.push_back(
          {.index = gpu.index, .type = static_cast<uint32_t>(type - types_.begin())});
    }
  }
}

// ---- does it fit

Room::TypeRange Room::TypesFor(const Request& request) const {
  if (request.gpu_millis == 0) return {0, 1};
  if (request.gpu_type.empty()) return {0, static_cast<uint32_t>(types_.size())};
  const auto found = std::lower_bound(types_.begin(), types_.end(), request.gpu_type);
  const auto place = static_cast<uint32_t>(found - types_.begin());
  const bool known = found != types_.end() && *found == request.gpu_type;
  return {place, known ? place + 1 : place};
}

bool Room::HostFits(const HostRoom& host, const Request& request, uint32_t type) const {
  if (!host.open || host.FreeCores() < request.cores || host.FreeMemory() < request.memory_bytes) {
    return false;
  }
  if (!request.excluded_hosts.empty() &&
      std::binary_search(request.excluded_hosts.begin(), request.excluded_hosts.end(), host.name)) {
    return false;
  }
  if (request.gpu_millis == 0) return true;
  if (request.SharesGpu()) return DeviceForShare(host, request.gpu_millis, type) != nullptr;
  return uint64_t{WholeGpus(host, type)} * kWholeGpu >= request.gpu_millis;
}

size_t Room::CountHosts(const Request& request, uint32_t type, size_t enough) const {
  size_t count = 0;
  for (const HostRoom& host : hosts_) {
    if (!HostFits(host, request, type)) continue;
    if (++count == enough) break;
  }
  return count;
}

bool Room::Fits(const Request& request) const {
  const TypeRange types = TypesFor(request);
  for (uint32_t type = types.begin; type < types.end; ++type) {
    if (CountHosts(request, type, request.nodes) >= request.nodes) return true;
  }
  return false;
}

size_t Room::CountHosts(const Request& request) const {
  size_t most = 0;
  const TypeRange types = TypesFor(request);
  for (uint32_t type = types.begin; type < types.end; ++type) {
    most = std::max(most, CountHosts(request, type, hosts_.size()));
  }
  return most;
}

// ---- where it goes

std::optional<Allocation> Room::Find(const Request& request) const {
  std::vector<Score> best;
  uint32_t best_type = 0;
  Score best_sum;
  const TypeRange types = TypesFor(request);
  for (uint32_t type = types.begin; type < types.end; ++type) {
    if (CountHosts(request, type, request.nodes) < request.nodes) continue;
    std::vector<Score> scores;
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      if (HostFits(hosts_[host], request, type)) scores.push_back(ScoreOf(host, request, type));
    }
    std::partial_sort(scores.begin(), scores.begin() + request.nodes, scores.end());
    scores.resize(request.nodes);
    Score sum;
    for (const Score& score : scores) {
      sum.first += score.first;
      sum.second += score.second;
    }
    if (!best.empty() && sum >= best_sum) continue;
    best = std::move(scores);
    best_type = type;
    best_sum = sum;
  }
  if (best.empty()) return std::nullopt;
  Allocation allocation;
  for (const Score& score : best) {
    allocation.nodes.push_back(NodeOn(score.host, request, best_type));
  }
  return allocation;
}

Room::Score Room::ScoreOf(uint32_t host, const Request& request, uint32_t type) const {
  const HostRoom& room = hosts_[host];
  Score score = {.third = room.FreeCores(), .host = host};
  if (request.gpu_millis == 0) {
    score.second = WholeGpus(room, kAnyType);
  } else if (request.SharesGpu()) {
    const uint32_t free = DeviceForShare(room, request.gpu_millis, type)->Free();
    // To break a whole device is worse than anything.
    score.first = free == kWholeGpu ? 1 : 0;
    score.second = free == kWholeGpu ? WholeGpus(room, type) : free;
  } else {
    score.second = WholeGpus(room, type);
  }
  return score;
}

NodeAllocation Room::NodeOn(uint32_t host, const Request& request, uint32_t type) const {
  NodeAllocation node = {
      .host = host, .cores = request.cores, .memory_bytes = request.memory_bytes};
  if (request.SharesGpu()) {
    const Device* device = DeviceForShare(hosts_[host], request.gpu_millis, type);
    node.gpus[device->index] = request.gpu_millis;
    return node;
  }
  uint32_t left = request.gpu_millis / kWholeGpu;
  for (const Device& device : DevicesOf(host)) {
    if (left == 0) break;
    if (device.type != type || device.used > 0) continue;
    node.gpus[device.index] = kWholeGpu;
    --left;
  }
  return node;
}

const Room::Device* Room::DeviceForShare(const HostRoom& host, uint32_t millis,
                                         uint32_t type) const {
  const Device* best = nullptr;
  for (size_t i = host.first_device; i < host.first_device + host.devices; ++i) {
    const Device& device = devices_[i];
    if (device.type != type || device.Free() < millis) continue;
    if (best == nullptr || device.Free() < best->Free()) best = &device;
  }
  return best;
}

uint32_t Room::WholeGpus(const HostRoom& host, uint32_t type) const {
  uint32_t count = 0;
  for (size_t i = host.first_device; i < host.first_device + host.devices; ++i) {
    const Device& device = devices_[i];
    if (device.used == 0 && (type == kAnyType || device.type == type)) ++count;
  }
  return count;
}

// ---- taking

std::span<const Room::Device> Room::DevicesOf(uint32_t host) const {
  return {devices_.data() + hosts_[host].first_device, hosts_[host].devices};
}

Room::Device* Room::FindDevice(uint32_t host, uint32_t index) {
  const HostRoom& room = hosts_[host];
  for (size_t i = room.first_device; i < room.first_device + room.devices; ++i) {
    if (devices_[i].index == index) return &devices_[i];
  }
  return nullptr;
}

void Room::Take(const Allocation& allocation) {
  for (const NodeAllocation& node : allocation.nodes) {
    hosts_[node.host].used_cores += node.cores;
    hosts_[node.host].used_memory += node.memory_bytes;
    for (const auto& [index, millis] : node.gpus) {
      if (Device* device = FindDevice(node.host, index)) device->used += millis;
    }
  }
}

void Room::GiveBack(const Allocation& allocation) {
  for (const NodeAllocation& node : allocation.nodes) {
    hosts_[node.host].used_cores -= node.cores;
    hosts_[node.host].used_memory -= node.memory_bytes;
    for (const auto& [index, millis] : node.gpus) {
      if (Device* device = FindDevice(node.host, index)) device->used -= millis;
    }
  }
}

void Room::Meet(const Room& a, const Room& b, uint32_t host) {
  HostRoom& room = hosts_[host];
  room.used_cores = std::max(a.hosts_[host].used_cores, b.hosts_[host].used_cores);
  room.used_memory = std::max(a.hosts_[host].used_memory, b.hosts_[host].used_memory);
  for (size_t i = room.first_device; i < room.first_device + room.devices; ++i) {
    devices_[i].used = std::max(a.devices_[i].used, b.devices_[i].used);
  }
}

}  // namespace muster::machines
