// Models a cluster's hosts as plain counters, where whether something fits is found by trying every
// choice of hosts and devices. Only for a few of both.
#ifndef MUSTER_TESTS_UNIT_MACHINES_SCHEDULING_MODEL_H_
#define MUSTER_TESTS_UNIT_MACHINES_SCHEDULING_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agents/machines/scheduling/hosts.h"
#include "agents/machines/scheduling/request.h"

namespace muster::machines {

class Model {
 public:
  explicit Model(const std::vector<ClusterHost>& hosts);

  bool Fits(const Request& request) const;
  // Returns the fault of the allocation, for the request, at this moment; empty if there is none,
  // and then it is taken.
  std::string Take(const Request& request, const Allocation& allocation);
  void GiveBack(const Allocation& allocation);
  void SetUp(uint32_t host, bool up) { hosts_[host].up = up; }

 private:
  struct Device {
    std::string type;
    int64_t free = kWholeGpu;
  };
  struct Free {
    int64_t cores = 0;
    int64_t memory = 0;
    std::vector<Device> devices;  // by index
    bool up = true;
  };
  static bool NodeFits(const Free& host, const Request& request, const std::string& type);
  std::string TakeNode(const Request& request, const NodeAllocation& node, std::string* type);

  std::vector<Free> hosts_;
};

}  // namespace muster::machines

#endif  // MUSTER_TESTS_UNIT_MACHINES_SCHEDULING_MODEL_H_
