#include "agents/kubernetes/cluster/inventory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "agents/kubernetes/cluster/fitting.h"
#include "contract/sentences.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

// States of namespaces that take no runs: the server has none of that name, or the agent's account
// may do nothing there.
constexpr char kMissing[] = "missing";
constexpr char kForbidden[] = "forbidden";

constexpr int64_t kNodeMillis = 1000;
// Nodes of one kind differ by what their kernels keep: a part of what one pod asks for.
constexpr int64_t kMemoryStep = int64_t{128} << 20;
// v1::ClusterDetails may name as many nodes.
constexpr int kMaxNodes = 10000;
// Labels of one node that are shown; clouds and GPU operators set about fifty.
constexpr int kMaxFeatures = 100;

uint32_t Cores(int64_t millis) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(millis / kNodeMillis, 0, std::numeric_limits<uint32_t>::max()));
}

Amounts UsedOf(const NodeRoom& room) {
  Amounts used = room.node.allocatable;
  used -= room.free;
  return used;
}

// Returns whether a run without tolerations may be there now.
bool TakesWork(const NodeObject& node, const KubernetesConfig& config) {
  RunNeed any;
  if (!OutOfService(any, node).empty()) return false;
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    const auto& gpus = config.gpu_resources;
    return taint.effect == "PreferNoSchedule" ||
           std::find(gpus.begin(), gpus.end(), taint.key) != gpus.end();
  });
}

v1::NodeGroup GroupOf(const NodeRoom& room, const KubernetesConfig& config) {
  v1::NodeGroup group;
  group.set_count(1);
  group.set_cpus(Cores(room.node.allocatable.cpu_millis));
  group.set_memory_bytes(
      static_cast<uint64_t>(room.node.allocatable.memory_bytes / kMemoryStep * kMemoryStep));
  for (const auto& [type, count] : GpuTypesOf(room.node, CapacityOf(room.node), config))
    (*group.mutable_gpus())[type] = count;
  group.set_usable_count(TakesWork(room.node, config) ? 1 : 0);
  return group;
}

std::string NodeStateOf(const NodeObject& node) {
  return fmt::format("{}{}", node.ready ? "ready" : "not ready",
                     node.unschedulable ? ", cordoned" : "");
}

std::string ReasonOf(const NodeObject& node) {
  std::vector<std::string> reasons;
  if (!node.ready) reasons.push_back(node.not_ready_reason);
  for (const Taint& taint : node.taints) {
    if (taint.effect != "PreferNoSchedule") reasons.push_back("taint " + contract::Written(taint));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

v1::Node NodeOf(const NodeRoom& room, const Seen& seen, const KubernetesConfig& config) {
  v1::Node node;
  const Amounts used = UsedOf(room);
  node.set_name(room.node.name);
  node.set_state(NodeStateOf(room.node));
  node.set_reason(ReasonOf(room.node));
  for (const SeenNamespace& space : seen.namespaces) node.add_pools(space.name);
  node.set_cpus(Cores(room.node.allocatable.cpu_millis));
  // A core that is used in part is not free.
  node.set_used_cpus(Cores(used.cpu_millis + kNodeMillis - 1));
  node.set_memory_bytes(static_cast<uint64_t>(room.node.allocatable.memory_bytes));
  node.set_used_memory_bytes(static_cast<uint64_t>(used.memory_bytes));
  for (const auto& [type, count] : GpuTypesOf(room.node, CapacityOf(room.node), config))
    (*node.mutable_gpus())[type] = count;
  for (const auto& [type, count] : GpuTypesOf(room.node, used, config))
    (*node.mutable_used_gpus())[type] = count;
  for (const auto& [key, value] : room.node.labels) {
    if (node.features_size() == kMaxFeatures) break;
    node.add_features(value.empty() ? key : key + "=" + value);
  }
  return node;
}

// Jobs whose pods are seen in the namespace; one that has a pod on a node runs.
void CountJobs(const Seen& seen, const std::string& name_space, v1::PoolLoad* load) {
  struct Known {
    bool is_on_node = false;
    bool is_own = false;
  };
  std::map<std::string, Known> jobs;
  for (const PodUse& pod : seen.pods) {
    if (pod.name_space != name_space || pod.job_uid.empty()) continue;
    Known& job = jobs[pod.job_uid];
    job.is_on_node = job.is_on_node || !pod.node.empty();
    job.is_own = job.is_own || pod.is_own;
  }
  uint32_t running = 0, own_running = 0, waiting = 0, own_waiting = 0;
  for (const auto& [uid, job] : jobs) {
    (job.is_on_node ? running : waiting) += 1;
    (job.is_on_node ? own_running : own_waiting) += job.is_own ? 1 : 0;
  }
  load->set_running_jobs(running);
  load->set_own_running_jobs(own_running);
  load->set_waiting_jobs(waiting);
  load->set_own_waiting_jobs(own_waiting);
}

std::string UnknownNodes(const Seen& seen) {
  return fmt::format("the nodes are not known: {}", ToStd(seen.nodes_problem.message()));
}

// Nodes that are alike, together.
std::vector<v1::NodeGroup> GroupsOf(const Seen& seen, const KubernetesConfig& config) {
  using Kind = std::tuple<uint32_t, uint64_t, std::map<std::string, uint32_t>>;
  std::map<Kind, v1::NodeGroup> groups;
  for (const NodeRoom& room : seen.rooms) {
    const v1::NodeGroup one = GroupOf(room, config);
    const std::map<std::string, uint32_t> gpus(one.gpus().begin(), one.gpus().end());
    const auto [group, is_new] = groups.try_emplace({one.cpus(), one.memory_bytes(), gpus}, one);
    if (is_new) continue;
    group->second.set_count(group->second.count() + 1);
    group->second.set_usable_count(group->second.usable_count() + one.usable_count());
  }
  std::vector<v1::NodeGroup> all;
  for (auto& [kind, group] : groups) all.push_back(std::move(group));
  return all;
}

// Also for what may not be changed.
template <typename Spaces>
auto* FindIn(Spaces& spaces, const std::string& name) {
  const auto found = std::find_if(spaces.begin(), spaces.end(),
                                  [&](const SeenNamespace& space) { return space.name == name; });
  return found == spaces.end() ? nullptr : &*found;
}

// Names the part of the use that cannot be seen; empty: none.
std::string UnknownUse(const Seen& seen) {
  switch (seen.pod_scope) {
    case PodScope::kCluster:
      return "";
    case PodScope::kNamespace:
      return fmt::format("what pods of other namespaces use is not known: {}",
                         ToStd(seen.pods_problem.message()));
    case PodScope::kNone:
      return fmt::format("what pods use is not known: {}", ToStd(seen.pods_problem.message()));
  }
  return "";
}

// The load of the nodes, which all namespaces share.
v1::PoolLoad LoadOfNodes(const Seen& seen, const KubernetesConfig& config) {
  v1::PoolLoad load;
  for (const NodeRoom& room : seen.rooms) {
    const bool takes_work = TakesWork(room.node, config);
    load.set_cpus(load.cpus() + Cores(room.node.allocatable.cpu_millis));
    if (takes_work) load.set_free_cpus(load.free_cpus() + Cores(room.free.cpu_millis));
    for (const auto& [type, count] : GpuTypesOf(room.node, CapacityOf(room.node), config))
      (*load.mutable_gpus())[type] += count;
    for (const auto& [type, count] : GpuTypesOf(room.node, room.free, config))
      (*load.mutable_free_gpus())[type] += takes_work ? count : 0;
  }
  if (!seen.knows_nodes) load.add_limits(UnknownNodes(seen));
  if (const std::string unknown = UnknownUse(seen); !unknown.empty()) load.add_limits(unknown);
  return load;
}

std::string ListRightsRemedy(const char* what) {
  return fmt::format(
      "let the agent's account list and watch {} in the whole cluster (the optional cluster role "
      "in "
      "deploy/kubernetes does), or jobs are taken that then wait in Kubernetes",
      what);
}

}  // namespace

SeenNamespace* Seen::Find(const std::string& name) { return FindIn(namespaces, name); }

const SeenNamespace* Seen::Find(const std::string& name) const { return FindIn(namespaces, name); }

void JudgeNamespace(const absl::StatusOr<Json>& answer, const absl::Status& runs,
                    SeenNamespace* space) {
  if (absl::IsNotFound(answer.status())) {
    space->state = kMissing;
    space->problem = std::string(ToStd(answer.status().message()));
  } else if (answer.ok() && TextAt(*answer, "status/phase") == "Terminating") {
    space->state = "terminating";
    space->problem = "it is being deleted, with all that is in it";
  } else if (absl::IsPermissionDenied(runs)) {
    space->state = kForbidden;
    space->problem = std::string(ToStd(runs.message()));
  }
}

std::string ProblemOf(const SeenNamespace& space) {
  return fmt::format("namespace {} is {}: {}", space.name, space.state, space.problem);
}

std::string RemedyFor(const SeenNamespace& space) {
  const std::string rights = fmt::format(
      "give the agent's account its rights there (kubectl apply -n {} -f rights.yaml, of "
      "deploy/kubernetes)",
      space.name);
  if (space.state == kForbidden) {
    return fmt::format(
        "{}, make the namespace first if it is not there (kubectl create namespace {}), or take "
        "it out of kubernetes.namespaces",
        rights, space.name);
  }
  return fmt::format(
      "make it (kubectl create namespace {}) and {}, or take it out of kubernetes.namespaces",
      space.name, rights);
}

std::vector<v1::Pool> PoolsOf(const Seen& seen, const KubernetesConfig& config) {
  const bool has_nodes = !seen.knows_nodes || !seen.rooms.empty();
  const std::vector<v1::NodeGroup> groups = GroupsOf(seen, config);
  std::vector<v1::Pool> pools;
  for (const SeenNamespace& space : seen.namespaces) {
    v1::Pool& pool = pools.emplace_back();
    pool.set_name(space.name);
    pool.set_is_default(pools.size() == 1);
    pool.set_available(has_nodes && space.state.empty());
    pool.set_state(space.state);
    for (const v1::NodeGroup& group : groups) *pool.add_node_groups() = group;
  }
  return pools;
}

std::vector<v1::ClusterIssue> IssuesOf(const Seen& seen, const KubernetesConfig& config) {
  std::vector<v1::ClusterIssue> issues;
  if (!seen.knows_nodes) {
    issues.push_back(contract::MakeIssue(v1::CLUSTER_ISSUE_CODE_NODES_UNKNOWN, UnknownNodes(seen),
                                         {.remedy = ListRightsRemedy("nodes")}));
  }
  if (seen.knows_nodes && seen.rooms.empty()) {
    issues.push_back(contract::MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_NODES,
                                         "the cluster has no nodes",
                                         {.remedy = "see kubectl get nodes"}));
  }
  if (const std::string unknown = UnknownUse(seen); !unknown.empty()) {
    issues.push_back(contract::MakeIssue(v1::CLUSTER_ISSUE_CODE_NODES_UNKNOWN, unknown,
                                         {.remedy = ListRightsRemedy("pods")}));
  }
  for (const SeenNamespace& space : seen.namespaces) {
    if (!space.state.empty()) {
      issues.push_back(
          contract::MakeIssue(space.state == kForbidden ? v1::CLUSTER_ISSUE_CODE_POOL_FORBIDDEN
                                                        : v1::CLUSTER_ISSUE_CODE_POOL_MISSING,
                              ProblemOf(space), {.pool = space.name, .remedy = RemedyFor(space)}));
    }
    for (const QuotaLine& line : space.quotas) {
      if (!line.IsExhausted() || line.has_scope) continue;
      issues.push_back(contract::MakeIssue(
          v1::CLUSTER_ISSUE_CODE_OTHER,
          fmt::format("{}, so that jobs wait that need some of it", Describe(line)),
          {.pool = space.name,
           .remedy =
               fmt::format("raise the quota in namespace {}, or end what uses it", space.name)}));
    }
  }
  if (config.gpu_resources.empty()) {
    issues.push_back(contract::MakeIssue(v1::CLUSTER_ISSUE_CODE_NO_GPUS,
                                         "gpu_resources is empty, so that no job gets a GPU"));
  }
  return issues;
}

v1::ClusterDetails DetailsOf(const Seen& seen, const KubernetesConfig& config) {
  v1::ClusterDetails details;
  const v1::PoolLoad nodes = LoadOfNodes(seen, config);
  std::vector<v1::Pool> pools = PoolsOf(seen, config);
  for (size_t i = 0; i < pools.size(); ++i) {
    const SeenNamespace& space = seen.namespaces[i];
    v1::PoolLoad& load = *details.add_pools();
    load = nodes;
    load.set_pool(space.name);
    *load.mutable_now() = std::move(pools[i]);
    CountJobs(seen, space.name, &load);
    if (!space.state.empty()) load.add_limits(ProblemOf(space));
    for (const QuotaLine& line : space.quotas) load.add_limits(Describe(line));
    for (const RangeLine& line : space.ranges) load.add_limits(Describe(line));
  }
  for (const NodeRoom& room : seen.rooms) {
    if (details.nodes_size() == kMaxNodes) break;
    *details.add_nodes() = NodeOf(room, seen, config);
  }
  return details;
}

}  // namespace muster::kubernetes
