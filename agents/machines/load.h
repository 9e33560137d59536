// Describes the hosts of a machines cluster, and who has what of them, at some moment just past.
#ifndef MUSTER_AGENTS_MACHINES_LOAD_H_
#define MUSTER_AGENTS_MACHINES_LOAD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "agents/machines/container_runtime.h"
#include "agents/machines/host_config.h"
#include "agents/machines/scheduling/hosts.h"
#include "agents/machines/scheduling/ledger.h"
#include "agents/machines/scheduling/queue_outlook.h"
#include "agents/machines/scheduling/reservation.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

// One host, for people.
struct HostView {
  HostConfig config;
  Capacity capacity;
  std::string limits;  // what runs are held to; empty: nothing
  ContainerRuntime containers;
  std::vector<v1::ClusterIssue> issues;
  bool is_known = false;  // what it has was told, by it, now or earlier, or by its operator
  bool has_told = false;  // since the agent was started
  bool is_up = false;
  bool is_cordoned = false;
  std::string why;            // it is not up
  std::string start_trouble;  // it gets no runs for a while, as it could not start one: why

  bool TakesRuns() const { return is_up && !is_cordoned && start_trouble.empty(); }
};

struct Load {
  Ledger ledger;
  Occupants occupants = {};
  QueueOutlook outlook = {};  // those that wait for files are among the waiting
  std::vector<HostView> hosts = {};
  std::vector<v1::ClusterIssue> issues = {};  // that concern no single host
  size_t waiting = 0;                         // held and canceled ones too
  size_t running = 0;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_LOAD_H_
