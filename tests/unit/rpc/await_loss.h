// Waiting for a broker to notice that an agent has gone.
#ifndef MUSTER_TESTS_UNIT_RPC_AWAIT_LOSS_H_
#define MUSTER_TESTS_UNIT_RPC_AWAIT_LOSS_H_

#include <string>

#include "absl/time/clock.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {

// Returns whether it comes to know that, within a minute.
inline bool AwaitLoss(TestBroker& broker, const std::string& cluster) {
  v1::GetClusterRequest request;
  request.set_name(cluster);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  v1::GetClusterResponse response;
  while (absl::Now() < deadline &&
         broker.clusters().GetCluster(Call().get(), request, &response).ok()) {
    if (response.cluster().state() == v1::CLUSTER_STATE_DISCONNECTED) return true;
  }
  return false;
}

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_RPC_AWAIT_LOSS_H_
