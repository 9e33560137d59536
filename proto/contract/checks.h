// Makes the lines of checks of clusters and plans, so that none lacks its code, and those that the
// broker adds to a plan, in the words of the reasons why jobs wait. Pure.
#ifndef MUSTER_PROTO_CONTRACT_CHECKS_H_
#define MUSTER_PROTO_CONTRACT_CHECKS_H_

#include <string>
#include <string_view>

#include "contract/lacks.h"
#include "muster/v1/check_code.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::contract {

v1::ClusterCheck MakeCheck(v1::CheckCode code, v1::CheckResult result, std::string subject,
                           std::string seen, std::string remedy = "");

// The agent has not answered: `why`.
v1::ClusterCheck NoAnswerCheck(const std::string& cluster, std::string_view why);
// The pool takes no jobs now. `issue` is the agent's words about that; null if it has none.
v1::ClusterCheck PoolCheck(const Lack& lack, const std::string& cluster,
                           const v1::ClusterIssue* issue);
// The cluster has as many runs as its agent takes.
v1::ClusterCheck FullCheck(const v1::Cluster& cluster);
// The cluster is cordoned.
v1::ClusterCheck CordonCheck(const v1::Cluster& cluster);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_CHECKS_H_
