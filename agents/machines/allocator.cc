#include "agents/machines/allocator.h"

#include <utility>

#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {

std::map<std::string, uint32_t> Capacity::GpuCounts() const {
  std::map<std::string, uint32_t> counts;
  for (const Gpu& gpu : gpus) ++counts[gpu.type];
  return counts;
}

Allocator::Allocator(Capacity capacity) : capacity_(std::move(capacity)) {}

std::optional<std::string> Allocator::Refusal(const Request& request) const {
  if (request.cores > capacity_.cores) {
    return fmt::format("{} cores were asked for; the machine has {}", request.cores,
                       capacity_.cores);
  }
  if (request.memory_bytes > capacity_.memory_bytes) {
    return fmt::format("{} of memory were asked for; the machine has {}",
                       contract::FormatBytes(request.memory_bytes),
                       contract::FormatBytes(capacity_.memory_bytes));
  }
  if (request.gpus == 0) return std::nullopt;
  std::string offer;
  for (const auto& [type, count] : capacity_.GpuCounts()) {
    if (count >= request.gpus && (request.gpu_type.empty() || request.gpu_type == type))
      return std::nullopt;
    offer += fmt::format("{}{} {}", offer.empty() ? "" : ", ", count, type);
  }
  return fmt::format("{} GPUs of type {} were asked for; the machine has {}", request.gpus,
                     request.gpu_type.empty() ? "any" : request.gpu_type,
                     offer.empty() ? "none" : offer);
}

std::string Allocator::Shortage(const Request& request) const {
  if (request.cores > FreeCores()) {
    return fmt::format("{} of {} cores", request.cores, capacity_.cores);
  }
  if (request.memory_bytes > FreeMemory()) {
    return fmt::format("{} of {} memory", contract::FormatBytes(request.memory_bytes),
                       contract::FormatBytes(capacity_.memory_bytes));
  }
  if (request.gpus > 0 && ChooseType(request).empty()) {
    return fmt::format("{} {}GPUs", request.gpus,
                       request.gpu_type.empty() ? "" : request.gpu_type + " ");
  }
  return "";
}

std::optional<Allocation> Allocator::Allocate(const Request& request) {
  if (!Shortage(request).empty()) return std::nullopt;
  Allocation allocation = {.cores = request.cores, .memory_bytes = request.memory_bytes};
  if (request.gpus > 0) {
    const std::set<uint32_t> free = FreeGpus(ChooseType(request));
    auto end = free.begin();
    std::advance(end, request.gpus);
    allocation.gpus.insert(free.begin(), end);
  }
  Restore(allocation);
  return allocation;
}

void Allocator::Restore(const Allocation& allocation) {
  used_cores_ += allocation.cores;
  used_memory_ += allocation.memory_bytes;
  used_gpus_.insert(allocation.gpus.begin(), allocation.gpus.end());
}

void Allocator::Release(const Allocation& allocation) {
  used_cores_ -= allocation.cores;
  used_memory_ -= allocation.memory_bytes;
  for (const uint32_t index : allocation.gpus) used_gpus_.erase(index);
}

uint32_t Allocator::FreeCores() const {
  return used_cores_ >= capacity_.cores ? 0 : capacity_.cores - static_cast<uint32_t>(used_cores_);
}

uint64_t Allocator::FreeMemory() const {
  return used_memory_ >= capacity_.memory_bytes ? 0 : capacity_.memory_bytes - used_memory_;
}

std::map<std::string, uint32_t> Allocator::FreeGpuCounts() const {
  std::map<std::string, uint32_t> counts;
  for (const Gpu& gpu : capacity_.gpus) {
    counts[gpu.type] += used_gpus_.contains(gpu.index) ? 0 : 1;
  }
  return counts;
}

std::set<uint32_t> Allocator::FreeGpus(const std::string& type) const {
  std::set<uint32_t> free;
  for (const Gpu& gpu : capacity_.gpus) {
    if (gpu.type == type && !used_gpus_.contains(gpu.index)) free.insert(gpu.index);
  }
  return free;
}

std::string Allocator::ChooseType(const Request& request) const {
  std::string best;
  size_t best_free = 0;
  for (const auto& [type, count] : capacity_.GpuCounts()) {
    if (!request.gpu_type.empty() && request.gpu_type != type) continue;
    const size_t free = FreeGpus(type).size();
    if (free < request.gpus || (!best.empty() && free >= best_free)) continue;
    best = type;
    best_free = free;
  }
  return best;
}

}  // namespace muster::machines
