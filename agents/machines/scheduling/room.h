// Counts the free resources on each host of a cluster: where a request fits, and the rest when it
// has been taken. It is a value that is cheap to copy, so that "what if" is asked of a copy. Pure.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_ROOM_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agents/machines/scheduling/hosts.h"
#include "agents/machines/scheduling/request.h"

namespace muster::machines {

// Chooses the best place for a request, so that whole GPUs stay whole and hosts either full or
// empty. A share of a GPU goes to the shared device with the least left, whole GPUs go to the host
// with the fewest free ones, and a run without GPUs goes to the host with the fewest free GPUs,
// then with the fewest free cores.
class Room {
 public:
  explicit Room(const std::vector<ClusterHost>& hosts);

  // Returns whether all nodes fit at once.
  bool Fits(const Request& request) const;
  // Returns the number of hosts that could take one node.
  size_t CountHosts(const Request& request) const;
  // Finds a place for all nodes; nothing if they do not fit. Takes nothing.
  std::optional<Allocation> Find(const Request& request) const;

  // After a restart with fewer resources a run may have more than there is; then nothing is free.
  // Missing GPUs are left out.
  void Take(const Allocation& allocation);
  void GiveBack(const Allocation& allocation);
  // Sets whether the host is given new runs.
  void SetOpen(uint32_t host, bool open) { hosts_[host].open = open; }
  // Sets the free resources on this host to those that are free in both rooms, which are of the
  // same cluster.
  void Meet(const Room& a, const Room& b, uint32_t host);

  size_t size() const { return hosts_.size(); }
  uint32_t FreeCores(uint32_t host) const { return hosts_[host].FreeCores(); }
  uint64_t FreeMemory(uint32_t host) const { return hosts_[host].FreeMemory(); }

  struct Device {
    uint32_t index = 0;
    uint32_t type = 0;  // its place among the types
    uint64_t used = 0;  // thousandths

    uint32_t Free() const {
      return used >= kWholeGpu ? 0 : kWholeGpu - static_cast<uint32_t>(used);
    }
  };
  std::span<const Device> DevicesOf(uint32_t host) const;
  const std::string& TypeName(uint32_t type) const { return types_[type]; }

 private:
  struct HostRoom {
    std::string name;
    uint64_t cores = 0;
    uint64_t used_cores = 0;
    uint64_t memory = 0;
    uint64_t used_memory = 0;
    size_t first_device = 0;
    size_t devices = 0;
    bool open = true;

    uint32_t FreeCores() const {
      return used_cores >= cores ? 0 : static_cast<uint32_t>(cores - used_cores);
    }
    uint64_t FreeMemory() const { return used_memory >= memory ? 0 : memory - used_memory; }
  };
  // Rates a host for a node: less is better, and the first number that differs decides.
  struct Score {
    uint64_t first = 0;
    uint64_t second = 0;
    uint64_t third = 0;
    uint32_t host = 0;

    friend auto operator<=>(const Score&, const Score&) = default;
  };

  // The types that the request may have, one after the other; [0, 1) if it wants no GPU.
  struct TypeRange {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  TypeRange TypesFor(const Request& request) const;
  bool HostFits(const HostRoom& host, const Request& request, uint32_t type) const;
  size_t CountHosts(const Request& request, uint32_t type, size_t enough) const;
  Score ScoreOf(uint32_t host, const Request& request, uint32_t type) const;
  NodeAllocation NodeOn(uint32_t host, const Request& request, uint32_t type) const;
  // Returns the device for a share of a GPU, the one with the least room that is enough; null if
  // none.
  const Device* DeviceForShare(const HostRoom& host, uint32_t millis, uint32_t type) const;
  // Returns the number of GPUs that nobody shares, of one type or of kAnyType.
  uint32_t WholeGpus(const HostRoom& host, uint32_t type) const;
  Device* FindDevice(uint32_t host, uint32_t index);
  static constexpr uint32_t kAnyType = UINT32_MAX;

  std::vector<std::string> types_;  // in order
  std::vector<HostRoom> hosts_;
  std::vector<Device> devices_;  // those of the first host, those of the second, ...
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_ROOM_H_
