#include "contract/issues.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// Jobs that an issue names.
constexpr size_t kMaxNamedJobs = 3;

// The parts of an issue beside its code and its sentence. Empty: none.
struct IssueParts {
  std::string pool = {};
  std::string subject = {};
  std::string remedy = {};
};

v1::ClusterIssue MakeIssue(v1::ClusterIssueCode code, std::string sentence, IssueParts parts = {}) {
  v1::ClusterIssue issue;
  issue.set_code(code);
  issue.set_message(std::move(sentence));
  issue.set_remedy(std::move(parts.remedy));
  issue.set_pool(std::move(parts.pool));
  issue.set_subject(std::move(parts.subject));
  return issue;
}

std::string RightsRemedy(std::string_view what) {
  return fmt::format(
      "let the agent's account list and watch {} in the whole cluster (the optional cluster role "
      "in deploy/kubernetes does), or jobs are taken that then wait in Kubernetes",
      what);
}

}  // namespace

// ---- pools

std::string ShutNamespaceSentence(const ShutNamespace& space) {
  return fmt::format("namespace {} is {}: {}", space.name, space.state, space.detail);
}

std::string ShutNamespaceRemedy(const ShutNamespace& space) {
  const std::string rights = fmt::format(
      "give the agent's account its rights there (kubectl apply -n {} -f rights.yaml, of "
      "deploy/kubernetes)",
      space.name);
  if (space.is_forbidden) {
    return fmt::format(
        "{}, make the namespace first if it is not there (kubectl create namespace {}), or take "
        "it out of kubernetes.namespaces",
        rights, space.name);
  }
  return fmt::format(
      "make it (kubectl create namespace {}) and {}, or take it out of kubernetes.namespaces",
      space.name, rights);
}

v1::ClusterIssue PoolShut(const ShutNamespace& space) {
  return MakeIssue(space.is_forbidden ? v1::CLUSTER_ISSUE_CODE_POOL_FORBIDDEN
                                      : v1::CLUSTER_ISSUE_CODE_POOL_MISSING,
                   ShutNamespaceSentence(space) + "; its pool takes no jobs",
                   {.pool = space.name, .remedy = ShutNamespaceRemedy(space)});
}

v1::ClusterIssue QuotaUsedUp(const std::string& name_space, const std::string& subject,
                             const std::string& quota) {
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_OTHER,
      fmt::format("{}, so that jobs wait that need some of it", quota),
      {.pool = name_space,
       .subject = subject,
       .remedy = fmt::format("raise the quota in namespace {}, or end what uses it", name_space)});
}

v1::ClusterIssue QueuesUnseen(const std::string& name_space, const std::string& detail) {
  std::string sentence = fmt::format(
      "namespace {}: Kueue is here, but the agent cannot see why runs wait in its queues: {}",
      name_space, detail);
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_RIGHTS_MISSING, std::move(sentence),
      {.pool = name_space,
       .remedy = "give the agent's account the rights of deploy/kubernetes/rights.yaml "
                 "in this namespace"});
}

// ---- nodes, GPUs and containers

v1::ClusterIssue NodesUnknown(const std::string& detail) {
  std::string sentence = fmt::format("the nodes are not known: {}", detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_NODES_UNKNOWN, std::move(sentence),
                   {.remedy = RightsRemedy("nodes")});
}

v1::ClusterIssue UseUnknown(bool in_own_namespace, const std::string& detail) {
  std::string sentence = fmt::format("the agent cannot see what pods {}use: {}",
                                     in_own_namespace ? "of other namespaces " : "", detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_NODES_UNKNOWN, std::move(sentence),
                   {.remedy = RightsRemedy("pods")});
}

v1::ClusterIssue NoNodes() {
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_NODES, "the cluster has no nodes",
                   {.remedy = "see kubectl get nodes"});
}

v1::ClusterIssue NoPartitions() {
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_NODES, "sinfo shows no partition",
                   {.remedy = "let the agent's user use one, or define one in slurm.conf"});
}

v1::ClusterIssue NoGpus(std::string_view tool, const std::string& detail) {
  if (tool.empty()) {
    std::string sentence = fmt::format("no GPUs are offered: {}", detail);
    return MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_GPUS, std::move(sentence));
  }
  std::string sentence =
      fmt::format("no GPUs of {} are offered, because they cannot be listed: {}", tool, detail);
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_NO_GPUS, std::move(sentence),
      {.subject = std::string(tool),
       .remedy = "repair the driver and start the agent again, or name the GPUs in the "
                 "agent's configuration"});
}

v1::ClusterIssue NoGpuResources() {
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_GPUS,
                   "gpu_resources is empty, so that no job gets a GPU",
                   {.subject = "gpu_resources"});
}

v1::ClusterIssue NoContainers(const std::string& detail) {
  std::string sentence = fmt::format("no jobs with an image can run: {}", detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_CONTAINERS, std::move(sentence));
}

// ---- machines and hosts

v1::ClusterIssue HostDown(const std::string& host, const std::string& detail) {
  std::string sentence = fmt::format("host {} is down: {}", host, detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_HOST_UNUSABLE, std::move(sentence), {.subject = host});
}

v1::ClusterIssue HostStartsNothing(const std::string& host, const std::string& detail) {
  std::string sentence = fmt::format("host {}: {}", host, detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_HOST_UNUSABLE, std::move(sentence), {.subject = host});
}

v1::ClusterIssue HostNotAdded(const std::string& host, const std::string& detail) {
  std::string sentence = fmt::format("host {} was not added: {}", host, detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_HOST_UNUSABLE, std::move(sentence), {.subject = host});
}

v1::ClusterIssue HostsFileUnread(const std::string& detail) {
  std::string sentence =
      fmt::format("the file of hosts cannot be read, and what it said before counts: {}", detail);
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_CONFIGURATION, std::move(sentence));
}

v1::ClusterIssue HostTwice(const std::vector<std::string>& hosts, const std::string& address) {
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_HOST_TWICE,
      fmt::format("hosts {} have the same SSH address {}, and their resources are counted twice",
                  fmt::join(hosts, ", "), address),
      {.subject = hosts.front(), .remedy = "correct the file of hosts"});
}

v1::ClusterIssue LessThanConfigured(const std::string& said, const std::string& has) {
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_LESS_THAN_CONFIGURED,
      fmt::format("its configuration says {}, and it has {}: runs may be given more than there is",
                  said, has),
      {.remedy = "correct the number, or leave it out"});
}

v1::ClusterIssue LimitsNotEnforced(NoLimits what, const std::string& detail) {
  const char* named = !what.memory  ? "cores are"
                      : !what.cores ? "memory is"
                                    : "memory and cores are";
  const bool is_wanted = !detail.empty();
  std::string sentence = fmt::format(
      "{} shared out but not enforced, a run that uses more than it asked for is not "
      "stopped by Muster: {}",
      named, is_wanted ? detail : "machines.limits is no");
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_CONFIGURATION, std::move(sentence),
                   {.subject = "machines.limits",
                    .remedy = is_wanted ? "run it as root, or as a service that has its control "
                                          "group (docs/machines.md says how)"
                                        : ""});
}

v1::ClusterIssue OfHost(const std::string& host, v1::ClusterIssue issue) {
  issue.set_message(fmt::format("host {}: {}", host, issue.message()));
  issue.set_subject(host);
  return issue;
}

v1::ClusterIssue OfRemoteCluster(const std::string& cluster, v1::ClusterIssue issue) {
  issue.set_message(fmt::format("cluster {} there: {}", cluster, issue.message()));
  if (!issue.pool().empty()) issue.set_pool(fmt::format("{}/{}", cluster, issue.pool()));
  issue.clear_since();
  return issue;
}

// ---- schedulers

v1::ClusterIssue CallsHeldBack(uint64_t times, uint32_t per_minute, absl::Time until) {
  v1::ClusterIssue issue = MakeIssue(
      v1::CLUSTER_ISSUE_CODE_CALLS_LIMITED,
      fmt::format("slurmctld holds the agent's calls back (rl_enable), {} times so far: they are "
                  "slow, and the queue is looked at less often",
                  times),
      {.remedy = per_minute == 0
                     ? "set slurm.max_scheduler_calls_per_minute, which is not set"
                     : fmt::format("a lower slurm.max_scheduler_calls_per_minute than {} avoids it",
                                   per_minute)});
  issue.mutable_until()->set_seconds(absl::ToUnixSeconds(until));
  return issue;
}

v1::ClusterIssue CallsWithoutTurn(uint64_t calls, std::string_view setting, uint32_t per_minute,
                                  absl::Time until) {
  v1::ClusterIssue issue =
      MakeIssue(v1::CLUSTER_ISSUE_CODE_CALLS_LIMITED,
                fmt::format("{} calls have not been made so far: {} ({}) allows too few", calls,
                            setting, per_minute),
                {.subject = std::string(setting), .remedy = "raise it"});
  issue.mutable_until()->set_seconds(absl::ToUnixSeconds(until));
  return issue;
}

v1::ClusterIssue NoAccounting() {
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_ACCOUNTING,
                   "the cluster keeps no accounting (slurmdbd): after MinJobAge, Muster cannot "
                   "tell who canceled a "
                   "job, or how a job without an exit record ended");
}

v1::ClusterIssue TlsUnverified() {
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_CONFIGURATION,
                   "insecure-skip-tls-verify is set: anybody between here and the API server can "
                   "read and change everything",
                   {.subject = "insecure-skip-tls-verify",
                    .remedy = "set certificate-authority-data in the kubeconfig instead"});
}

v1::ClusterIssue UnknownRuns(const std::vector<std::string>& jobs) {
  const size_t named = std::min(jobs.size(), kMaxNamedJobs);
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_LEFTOVERS,
      fmt::format("{} of Muster's Jobs may be running, and this agent has no run for them: "
                  "{}{}; they are left alone",
                  jobs.size(),
                  fmt::join(jobs.begin(), jobs.begin() + static_cast<long>(named), ", "),
                  jobs.size() > named ? ", ..." : ""),
      {.subject = jobs.front(),
       .remedy = "see whose they are (label muster.dev/job), and end them with kubectl delete job "
                 "if nobody needs them"});
}

v1::ClusterIssue SameCluster(const std::string& other) {
  return MakeIssue(
      v1::CLUSTER_ISSUE_CODE_OTHER,
      fmt::format("cluster \"{}\" is the same Kubernetes cluster (the UID of its namespace "
                  "kube-system is), so that its nodes, cores and GPUs are listed twice",
                  other),
      {.subject = other,
       .remedy = "one agent can work in several namespaces (kubernetes.namespaces)"});
}

v1::ClusterIssue AgentCloned(const std::string& cluster, absl::Time until) {
  v1::ClusterIssue issue = MakeIssue(
      v1::CLUSTER_ISSUE_CODE_AGENT_CLONED,
      "two agents with copies of one state directory take the connection from each other",
      {.remedy = fmt::format(
           "stop the one that should not be there. If you do not know it, somebody has the agent's "
           "key: muster clusters revoke {}, and enroll the right agent anew",
           cluster)});
  issue.mutable_until()->set_seconds(absl::ToUnixSeconds(until));
  return issue;
}

v1::ClusterIssue AgentTrouble(const std::string& what, const std::string& detail) {
  std::string sentence = detail;
  return MakeIssue(v1::CLUSTER_ISSUE_CODE_OTHER, std::move(sentence), {.subject = what});
}

}  // namespace muster::contract
