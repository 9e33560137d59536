#include "agents/kubernetes/cluster/inventory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "agents/kubernetes/cluster/fitting.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

// These are states of namespaces that take no runs: the server has none of that name, or the
// agent's account may do nothing there.
constexpr char kMissing[] = "missing";
constexpr char kForbidden[] = "forbidden";

constexpr int64_t kNodeMillis = 1000;
// Nodes of one kind differ by what their kernels keep: a part of what one pod asks for.
constexpr int64_t kMemoryStep = int64_t{128} << 20;
// v1::ClusterDetails may name as many nodes.
constexpr int kMaxNodes = 10000;
// At most this many labels of one node are shown; clouds and GPU operators set about fifty.
constexpr int kMaxFeatures = 100;

uint32_t Cores(int64_t millis) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(millis / kNodeMillis, 0, std::numeric_limits<uint32_t>::max()));
}

Amounts UsedOf(const NodeRoom& room) {
  Amounts used = room.node->allocatable;
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
  group.set_cpus(Cores(room.node->allocatable.cpu_millis));
  group.set_memory_bytes(
      static_cast<uint64_t>(room.node->allocatable.memory_bytes / kMemoryStep * kMemoryStep));
  for (const auto& [type, count] : GpuTypesOf(*room.node, *room.all, config))
    (*group.mutable_gpus())[type] = count;
  group.set_usable_count(TakesWork(*room.node, config) ? 1 : 0);
  return group;
}

std::string NodeStateOf(const NodeObject& node) {
  return fmt::format("{}{}", node.ready ? "ready" : "not ready",
                     node.unschedulable ? ", cordoned" : "");
}

v1::NodeCondition ConditionOf(const NodeObject& node) {
  if (!node.ready) return v1::NODE_CONDITION_DOWN;
  return node.unschedulable ? v1::NODE_CONDITION_CORDONED : v1::NODE_CONDITION_READY;
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
  node.set_name(room.node->name);
  node.set_state(NodeStateOf(*room.node));
  node.set_condition(ConditionOf(*room.node));
  node.set_reason(ReasonOf(*room.node));
  for (const SeenNamespace& space : seen.namespaces) node.add_pools(space.name);
  node.set_cpus(Cores(room.node->allocatable.cpu_millis));
  // A core that is used in part is not free.
  node.set_used_cpus(Cores(used.cpu_millis + kNodeMillis - 1));
  node.set_memory_bytes(static_cast<uint64_t>(room.node->allocatable.memory_bytes));
  node.set_used_memory_bytes(static_cast<uint64_t>(used.memory_bytes));
  for (const auto& [type, count] : GpuTypesOf(*room.node, *room.all, config))
    (*node.mutable_gpus())[type] = count;
  for (const auto& [type, count] : GpuTypesOf(*room.node, used, config))
    (*node.mutable_used_gpus())[type] = count;
  for (const auto& [key, value] : room.node->labels) {
    if (node.features_size() == kMaxFeatures) break;
    node.add_features(value.empty() ? key : key + "=" + value);
  }
  return node;
}

// Counts Jobs whose pods are seen in the namespace; one that has a pod on a node runs.
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

// Returns nodes that are alike, together.
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

// Returns the issue that the agent does not see all that the cluster's pods use; nothing if it
// does.
std::optional<v1::ClusterIssue> IssueOfUse(const Seen& seen) {
  if (seen.pod_scope == PodScope::kCluster) return std::nullopt;
  return contract::UseUnknown(seen.pod_scope == PodScope::kNamespace,
                              std::string(ToStd(seen.pods_problem.message())));
}

v1::ClusterIssue IssueOfNodes(const Seen& seen) {
  return contract::NodesUnknown(std::string(ToStd(seen.nodes_problem.message())));
}

// Returns the load of the nodes, which all namespaces share.
v1::PoolLoad LoadOfNodes(const Seen& seen, const KubernetesConfig& config) {
  v1::PoolLoad load;
  for (const NodeRoom& room : seen.rooms) {
    const bool takes_work = TakesWork(*room.node, config);
    load.set_cpus(load.cpus() + Cores(room.node->allocatable.cpu_millis));
    if (takes_work) load.set_free_cpus(load.free_cpus() + Cores(room.free.cpu_millis));
    for (const auto& [type, count] : GpuTypesOf(*room.node, *room.all, config))
      (*load.mutable_gpus())[type] += count;
    for (const auto& [type, count] : GpuTypesOf(*room.node, room.free, config))
      (*load.mutable_free_gpus())[type] += takes_work ? count : 0;
  }
  if (!seen.knows_nodes) load.add_limits(IssueOfNodes(seen).message());
  if (const auto unknown = IssueOfUse(seen)) load.add_limits(unknown->message());
  return load;
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

contract::ShutNamespace ShutOf(const SeenNamespace& space) {
  return {space.name, space.state, space.problem, space.state == kForbidden};
}

std::vector<v1::Pool> PoolsOf(const Seen& seen, const KubernetesConfig& config) {
  const bool has_nodes = !seen.knows_nodes || !seen.rooms.empty();
  const std::vector<v1::NodeGroup> groups = GroupsOf(seen, config);
  std::vector<v1::Pool> pools;
  for (const SeenNamespace& space : seen.namespaces) {
    v1::Pool& pool = pools.emplace_back();
    pool.set_name(space.name);
    // The project of a job that names none says which of them it is in.
    pool.set_is_default(pools.size() == 1 || config.projects != nullptr);
    pool.set_available(has_nodes && space.state.empty());
    pool.set_state(space.state);
    for (const v1::NodeGroup& group : groups) *pool.add_node_groups() = group;
  }
  return pools;
}

std::vector<v1::ClusterIssue> IssuesOf(const Seen& seen, const KubernetesConfig& config) {
  std::vector<v1::ClusterIssue> issues;
  if (!seen.knows_nodes) issues.push_back(IssueOfNodes(seen));
  if (seen.knows_nodes && seen.rooms.empty()) issues.push_back(contract::NoNodes());
  if (auto unknown = IssueOfUse(seen)) issues.push_back(*std::move(unknown));
  for (const SeenNamespace& space : seen.namespaces) {
    if (!space.state.empty()) issues.push_back(contract::PoolShut(ShutOf(space)));
    for (const QuotaLine& line : space.quotas) {
      if (line.IsExhausted() && !line.has_scope)
        issues.push_back(contract::QuotaUsedUp(
            space.name, fmt::format("{}/{}", line.quota, line.resource), Describe(line)));
    }
  }
  if (config.gpu_resources.empty()) issues.push_back(contract::NoGpuResources());
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
    if (!space.state.empty()) load.add_limits(contract::ShutNamespaceSentence(ShutOf(space)));
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
