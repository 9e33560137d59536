// Keeps the allocations of a cluster's cores, memory and GPUs, with words for people. Pure; owned
// by one thread.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_LEDGER_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/scheduling/hosts.h"
#include "agents/machines/scheduling/request.h"
#include "agents/machines/scheduling/room.h"

namespace muster::machines {

class Ledger {
 public:
  explicit Ledger(std::vector<ClusterHost> hosts);

  const std::vector<ClusterHost>& hosts() const { return hosts_; }
  const Room& room() const { return room_; }
  void SetState(uint32_t host, HostState state);

  // Returns the reason that the cluster could not satisfy this request if all of its hosts were up
  // and free; nothing if it could.
  std::optional<Misfit> Refusal(const Request& request) const;
  // Returns whether the hosts that are up could satisfy it if they were free.
  bool CouldFit(const Request& request) const { return free_.Fits(request); }
  // Returns the present shortage, e.g. "2 of 4 cores", "2 hosts with 4 h100 GPUs"; empty if there
  // is none.
  std::string Shortage(const Request& request) const;

  // Takes a place that the room has found, or that a run has had since before a restart, even if
  // the hosts have less now.
  void Take(const Allocation& allocation) { room_.Take(allocation); }
  void Release(const Allocation& allocation) { room_.GiveBack(allocation); }

  // Counts wholly free GPUs of one host, by type.
  std::map<std::string, uint32_t> FreeGpuCounts(uint32_t host) const;

 private:
  // Returns "the machine", or "the largest host".
  std::string_view Largest() const {
    return hosts_.size() == 1 ? "the machine" : "the largest host";
  }
  std::string GpuOffer(const Request& request) const;
  std::string ShortageOfOne(const Request& request) const;
  std::string ShortageOfMany(const Request& request) const;
  std::string HostsNotUp() const;

  std::vector<ClusterHost> hosts_;
  Room whole_;  // all hosts, free and up
  Room free_;   // all hosts, free, in their states
  Room room_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_LEDGER_H_
