// Asks the agents of clusters on behalf of a client.
#ifndef MUSTER_BROKER_APP_ASK_CLUSTER_H_
#define MUSTER_BROKER_APP_ASK_CLUSTER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/services.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::broker {

// The time that agents have for an answer. A preflight over SSH runs some twenty commands, one of
// which may take its whole time-out (60 s by default).
inline constexpr absl::Duration kCheckPatience = absl::Minutes(2);
// Needs a few commands of the scheduler.
inline constexpr absl::Duration kDescribePatience = absl::Minutes(1);
// Needs a few commands, and the scheduler's own search for a place.
inline constexpr absl::Duration kPlanPatience = absl::Minutes(1);

absl::Status NoSuchCluster(const std::string& name);

// An agent's answer to a question, and its cluster as the core sees it.
struct ClusterAnswer {
  v1::Cluster cluster;
  agent::v1::AgentAnswer answer;
};
using ClusterAnswerDone = std::function<void(absl::StatusOr<ClusterAnswer>)>;

// The client waits no longer than until `client_deadline`. `done` is called once. NOT_FOUND: no
// such cluster; UNAVAILABLE: its agent is not connected, or went away; DEADLINE_EXCEEDED: it did
// not answer in time. Does not block.
void AskCluster(const Services& services, const std::string& cluster,
                agent::v1::AgentQuestion question, absl::Duration patience,
                absl::Time client_deadline, ClusterAnswerDone done);

using JobPlans = std::vector<absl::StatusOr<v1::JobPlan>>;

// Asks each of the clusters for a plan, and returns the plans in their order, each with its
// cluster's name; the errors are those of AskCluster. `done` is called once. Does not block.
void AskPlans(const Services& services, const std::vector<v1::Cluster>& clusters,
              const agent::v1::PlanQuestion& question, absl::Duration patience,
              absl::Time client_deadline, std::function<void(JobPlans)> done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_ASK_CLUSTER_H_
