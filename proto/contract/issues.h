// Issues of a cluster, one of its pools or one of its hosts, each made from what was seen. The
// sentences and remedies are written here alone, so that agents report facts, and every
// client shows the same words.
//
// Pure; any thread. `detail` is what was seen, in the words of its source.
#ifndef MUSTER_PROTO_CONTRACT_ISSUES_H_
#define MUSTER_PROTO_CONTRACT_ISSUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/facts.pb.h"

namespace muster::contract {

// ---- pools

// A pool of Kubernetes that takes no jobs. `state`: "missing", "terminating", "forbidden".
struct ShutNamespace {
  std::string name;
  std::string state;
  std::string detail;
  bool is_forbidden = false;
};
v1::ClusterIssue PoolShut(const ShutNamespace& space);
// Says the same about a run that waits there: "namespace lab is missing: ...", and what to do.
std::string ShutNamespaceSentence(const ShutNamespace& space);
std::string ShutNamespaceRemedy(const ShutNamespace& space);
// `quota` is the quota with its use.
v1::ClusterIssue QuotaUsedUp(const std::string& name_space, const std::string& subject,
                             const std::string& quota);
v1::ClusterIssue QueuesUnseen(const std::string& name_space, const std::string& detail);

// ---- nodes, GPUs and containers

// The agent may not list the nodes, or what they run, in the whole cluster; `detail` says why.
// `in_own_namespace`: the pods of its own namespace are known.
v1::ClusterIssue NodesUnknown(const std::string& detail);
v1::ClusterIssue UseUnknown(bool in_own_namespace, const std::string& detail);
v1::ClusterIssue NoNodes();
v1::ClusterIssue NoPartitions();
// `tool` is the program that lists the GPUs; empty if no particular one does.
v1::ClusterIssue NoGpus(std::string_view tool, const std::string& detail);
v1::ClusterIssue NoGpuResources();
v1::ClusterIssue NoContainers(const std::string& detail);

// ---- machines and hosts

v1::ClusterIssue HostDown(const std::string& host, const std::string& detail);
// It is up, and runs do not start there.
v1::ClusterIssue HostStartsNothing(const std::string& host, const std::string& detail);
v1::ClusterIssue HostNotAdded(const std::string& host, const std::string& detail);
v1::ClusterIssue HostsFileUnread(const std::string& detail);
// The hosts have the same SSH address. At least two.
v1::ClusterIssue HostTwice(const std::vector<std::string>& hosts, const std::string& address);
// The operator `said` "cpus: 64", and the machine `has` "32".
v1::ClusterIssue LessThanConfigured(const std::string& said, const std::string& has);
// Resources of a machine that are shared out although the kernel enforces no limit on them. At
// least one is set.
struct NoLimits {
  bool memory = false;
  bool cores = false;
};
// `detail` says why not; empty if the operator wants none.
v1::ClusterIssue LimitsNotEnforced(NoLimits what, const std::string& detail);
// Turns what a host says of itself into an issue about that host.
v1::ClusterIssue OfHost(const std::string& host, v1::ClusterIssue issue);

// Turns an issue of a remote broker's cluster into one of the cluster that is this broker.
v1::ClusterIssue OfRemoteCluster(const std::string& cluster, v1::ClusterIssue issue);

// ---- schedulers

// slurmctld has held calls back so often. `per_minute` is the operator's limit for all calls; 0 if
// none. The issue is told until `until`, unless it comes again.
v1::ClusterIssue CallsHeldBack(uint64_t times, uint32_t per_minute, absl::Time until);
// The issue of `calls` calls that had no turn, the last one because of this setting.
v1::ClusterIssue CallsWithoutTurn(uint64_t calls, std::string_view setting, uint32_t per_minute,
                                  absl::Time until);
v1::ClusterIssue NoAccounting();
v1::ClusterIssue TlsUnverified();
// `jobs` are Kubernetes Jobs that may run and for which the agent has no run. At least one.
v1::ClusterIssue UnknownRuns(const std::vector<std::string>& jobs);
v1::ClusterIssue SameCluster(const std::string& other);
// Two agents have the identity and the journal of one. `until` as above.
v1::ClusterIssue AgentCloned(const std::string& cluster, absl::Time until);
// The agent's own storage does not work: `what` is "uploads" or "logs".
v1::ClusterIssue AgentTrouble(const std::string& what, const std::string& detail);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_ISSUES_H_
