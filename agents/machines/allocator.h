// Who has which cores, memory and GPUs. Pure; owned by one thread.
#ifndef MUSTER_AGENTS_MACHINES_ALLOCATOR_H_
#define MUSTER_AGENTS_MACHINES_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::machines {

struct Gpu {
  uint32_t index = 0;
  std::string type;  // lower case
  std::string name;  // what CUDA_VISIBLE_DEVICES calls it: a UUID, or the index
};

// What the machine has.
struct Capacity {
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::vector<Gpu> gpus;

  // How many of each type.
  std::map<std::string, uint32_t> GpuCounts() const;
};

// What a run needs.
struct Request {
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::string gpu_type = {};  // lower case; empty: any, but all of one type
  uint32_t gpus = 0;
};

// What a run has.
struct Allocation {
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::set<uint32_t> gpus = {};  // indexes
};

class Allocator {
 public:
  explicit Allocator(Capacity capacity);

  const Capacity& capacity() const { return capacity_; }
  // Why the whole machine could not satisfy this request; nothing if it could.
  std::optional<std::string> Refusal(const Request& request) const;
  // What is missing now, e.g. "2 of 4 cores"; empty if nothing is.
  std::string Shortage(const Request& request) const;
  // Takes what the request needs, or nothing at all.
  std::optional<Allocation> Allocate(const Request& request);
  // Takes back what a run has since before a restart, even if the machine has become smaller: then
  // nothing is free.
  void Restore(const Allocation& allocation);
  void Release(const Allocation& allocation);

  uint32_t FreeCores() const;
  uint64_t FreeMemory() const;
  std::map<std::string, uint32_t> FreeGpuCounts() const;  // by type

 private:
  std::set<uint32_t> FreeGpus(const std::string& type) const;
  // The type to take GPUs from: the one with the fewest free that are enough. Empty: none has
  // enough.
  std::string ChooseType(const Request& request) const;

  Capacity capacity_;
  uint64_t used_cores_ = 0;
  uint64_t used_memory_ = 0;
  std::set<uint32_t> used_gpus_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_ALLOCATOR_H_
