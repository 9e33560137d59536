#include "broker/core/fit.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/gpu_names.h"
#include "contract/admission.h"
#include "contract/gpu_types.h"

namespace muster::core {
namespace {

using contract::LackCode;

constexpr uint64_t kMillis = 1000;

// The needs of one node.
struct Need {
  uint64_t cpus = 0;
  uint64_t memory_bytes = 0;
  std::string gpu_type;  // empty: any
  // The type is the name of the resource that GPUs with any type label have.
  bool is_of_any_label = false;
  bool is_type_unclear = false;  // several types of the pool match
  uint64_t gpus = 0;
};

// A type may be the name of a resource, "nvidia.com/mig-1g.5gb"; the part behind the '/' is enough.
bool IsOfType(std::string_view type, std::string_view wanted) {
  return contract::IsSameGpuType(type, wanted) ||
         contract::IsSameGpuType(type.substr(type.find('/') + 1), wanted);
}

// Kubernetes's labels are long, so a part of a type that no other type contains is enough.
void SpellGpuType(const v1::Pool& pool, Need* need) {
  std::set<std::string> labels = contract::GpuTypesOf(pool);
  std::erase_if(labels, [](const std::string& type) { return type.find('/') != type.npos; });
  const std::vector<std::string> types = contract::FindGpuTypes(need->gpu_type, labels);
  if (types.size() == 1) need->gpu_type = types.front();
  need->is_type_unclear = types.size() > 1;
}

// Returns whether pools may have nodes that the agent does not see, and GPUs by resource or label.
bool MayBeKubernetes(v1::ClusterKind kind) {
  return kind == v1::CLUSTER_KIND_KUBERNETES || kind == v1::CLUSTER_KIND_MUSTER;
}

Need NeedOf(const Requirements& job, const v1::Pool& pool, v1::ClusterKind kind) {
  Need need;
  need.cpus = std::max<uint64_t>(1, (job.cpu_millis + kMillis - 1) / kMillis);
  need.memory_bytes = job.memory_bytes;
  if (job.gpu_millis == 0) return need;
  need.gpus = (job.gpu_millis + kMillis - 1) / kMillis;
  // Each of its nodes gives some of them; Slurm counts how many.
  if (job.is_total && kind == v1::CLUSTER_KIND_SLURM) {
    need.cpus = need.gpus = 1;
    need.memory_bytes = 0;
  }
  need.gpu_type = job.gpu_type;
  if (!MayBeKubernetes(kind)) return need;
  need.is_of_any_label = NamesAllGpus(job.gpu_type);
  if (!NamesGpuResource(need.gpu_type)) SpellGpuType(pool, &need);
  return need;
}

// Returns the most GPUs that one node of the group can give to the job.
uint64_t GpusFor(const Need& need, const v1::NodeGroup& group) {
  uint64_t most = 0;
  for (const auto& [type, count] : group.gpus()) {
    const bool is_label = type.find('/') == type.npos;
    if (need.gpu_type.empty() || IsOfType(type, need.gpu_type) ||
        (need.is_of_any_label && is_label)) {
      most = std::max<uint64_t>(most, count);
    }
  }
  return most;
}

bool HasMemory(const Need& need, const v1::NodeGroup& group) {
  return group.memory_bytes() == 0 || group.memory_bytes() >= need.memory_bytes;
}

bool HasAll(const Need& need, const v1::NodeGroup& group) {
  return group.cpus() >= need.cpus && HasMemory(need, group) &&
         (need.gpus == 0 || GpusFor(need, group) >= need.gpus);
}

Fit TooLittle(LackCode code, const v1::Pool& pool, uint64_t requested, uint64_t available) {
  return {Fit::Verdict::kTooLittle,
          {.code = code, .pool = &pool, .requested = requested, .available = available}};
}

// Names what the largest node of the pool lacks; a fit if it has enough of each single thing.
Fit LacksOnANode(const Need& need, const v1::Pool& pool) {
  uint64_t cpus = 0, gpus = 0, memory = 0;
  bool has_memory = need.memory_bytes == 0;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    if (group.count() == 0) continue;
    cpus = std::max<uint64_t>(cpus, group.cpus());
    gpus = std::max(gpus, GpusFor(need, group));
    memory = std::max(memory, group.memory_bytes());
    has_memory = has_memory || HasMemory(need, group);
  }
  const auto lacks_gpus = [&](LackCode code) {
    Fit fit = TooLittle(code, pool, need.gpus * kMillis, gpus * kMillis);
    fit.lack.gpu_type = need.gpu_type;
    return fit;
  };
  if (need.is_type_unclear) return lacks_gpus(LackCode::kGpuTypeUnclear);
  if (need.gpus > 0 && gpus == 0) return lacks_gpus(LackCode::kGpuType);
  if (gpus < need.gpus) return lacks_gpus(LackCode::kGpus);
  if (cpus < need.cpus) {
    return TooLittle(LackCode::kCores, pool, need.cpus * kMillis, cpus * kMillis);
  }
  if (!has_memory) return TooLittle(LackCode::kMemory, pool, need.memory_bytes, memory);
  return {};
}

Fit CheckNodes(const Requirements& job, const v1::Pool& pool, v1::ClusterKind kind) {
  const Need need = NeedOf(job, pool, kind);
  const uint64_t nodes = job.nodes;
  uint64_t good = 0;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    if (HasAll(need, group)) good += group.count();
  }
  if (good == 0) {
    if (Fit fit = LacksOnANode(need, pool); !fit.now()) return fit;
    return TooLittle(LackCode::kAllAtOnce, pool, nodes, 0);
  }
  const uint64_t most = pool.max_nodes() > 0 ? std::min<uint64_t>(good, pool.max_nodes()) : good;
  if (good < nodes) {
    Fit fit = TooLittle(LackCode::kNodes, pool, nodes, most);
    fit.lack.good_nodes = good;
    return fit;
  }
  if (most < nodes) return TooLittle(LackCode::kNodesOfARun, pool, nodes, most);
  return {};
}

Fit CheckPool(const Requirements& job, const v1::Pool& pool, v1::ClusterKind kind) {
  // An agent on Kubernetes, or behind another broker, may not be allowed to see nodes. Unknown
  // nodes are not the same as none: the cluster is asked by trying.
  const bool knows_nodes = !MayBeKubernetes(kind) || pool.node_groups_size() > 0;
  if (Fit fit = knows_nodes ? CheckNodes(job, pool, kind) : Fit{}; !fit.now()) return fit;
  const int64_t most_s = pool.max_time_limit().seconds();
  if (pool.has_max_time_limit() && job.time_limit_s.has_value() && *job.time_limit_s > most_s) {
    return {Fit::Verdict::kTooShort,
            {.code = LackCode::kTimeLimit,
             .pool = &pool,
             .requested = static_cast<uint64_t>(*job.time_limit_s),
             .available = static_cast<uint64_t>(most_s)}};
  }
  if (pool.available()) return {};
  return {Fit::Verdict::kNotNow, {.code = LackCode::kOpenPool, .pool = &pool}};
}

// Returns the pools in any of which a job may start that names none.
std::vector<const v1::Pool*> DefaultPools(const v1::Inventory& inventory) {
  std::vector<const v1::Pool*> pools;
  for (const v1::Pool& pool : inventory.pools()) {
    if (pool.is_default()) pools.push_back(&pool);
  }
  if (pools.empty() && inventory.pools_size() > 0) pools.push_back(&inventory.pools(0));
  return pools;
}

const v1::Pool* FindPool(const v1::Inventory& inventory, std::string_view name) {
  for (const v1::Pool& pool : inventory.pools()) {
    if (pool.name() == name) return &pool;
  }
  return nullptr;
}

// Says why a job with roles cannot run there.
LackCode LacksRoles(RolesNeed roles, v1::ClusterKind kind) {
  if (roles == RolesNeed::kNone || kind == v1::CLUSTER_KIND_SLURM) return LackCode::kNothing;
  if (kind != v1::CLUSTER_KIND_KUBERNETES) return LackCode::kRoles;
  return roles == RolesNeed::kSharedNodes ? LackCode::kSharedRoles : LackCode::kNothing;
}

// Says why the cluster cannot run the job's image, or a job without one.
LackCode LacksImages(ImageNeed image, const PutCluster& cluster) {
  const v1::ImageSupport images = cluster.inventory.images();
  if (image == ImageNeed::kNone) {
    return images == v1::IMAGE_SUPPORT_REQUIRED ? LackCode::kImage : LackCode::kNothing;
  }
  const bool runs_none = cluster.kind == v1::CLUSTER_KIND_MACHINES
                             ? images != v1::IMAGE_SUPPORT_OPTIONAL
                             : images == v1::IMAGE_SUPPORT_NONE;
  if (runs_none) return LackCode::kContainers;
  const bool is_lost = image == ImageNeed::kFile && cluster.kind != v1::CLUSTER_KIND_SLURM;
  return is_lost ? LackCode::kImageFile : LackCode::kNothing;
}

// Says why clusters of that kind, or agents with these abilities, cannot run the job.
LackCode LacksKind(const Requirements& job, const PutCluster& cluster) {
  const bool is_slurm = cluster.kind == v1::CLUSTER_KIND_SLURM;
  const bool is_kubernetes = cluster.kind == v1::CLUSTER_KIND_KUBERNETES;
  const bool is_machines = cluster.kind == v1::CLUSTER_KIND_MACHINES;
  if (job.needs_slurm && !is_slurm) return LackCode::kSlurm;
  if (job.needs_kubernetes && !is_kubernetes) return LackCode::kKubernetes;
  if (LackCode code = LacksRoles(job.roles, cluster.kind); code != LackCode::kNothing) return code;
  if (LackCode code = LacksImages(job.image, cluster); code != LackCode::kNothing) return code;
  if (job.brings_files && !cluster.inventory.takes_uploads()) return LackCode::kUploads;
  if (job.brings_shell && !cluster.inventory.takes_shell_environment()) return LackCode::kShell;
  if (job.has_secrets && !cluster.inventory.takes_secrets()) return LackCode::kSecrets;
  if (job.on_loss == LossRule::kWhenFenced && cluster.fence_delay <= absl::ZeroDuration())
    return LackCode::kFence;
  if (job.gpu_millis % kMillis != 0 && !is_machines) return LackCode::kPartsOfGpus;
  if (!job.machine_file_field.empty() && !is_machines) return LackCode::kMachineFile;
  return LackCode::kNothing;
}

// Returns the needs of a job about which admission facts say only the limits of its namespace.
contract::AdmissionNeeds PlainNeeds(const Requirements& job) {
  contract::AdmissionNeeds needs;
  needs.pods = job.nodes;
  needs.cpu_millis = job.cpu_millis;
  needs.memory_bytes = job.memory_bytes;
  needs.gpu_type = job.gpu_type;
  needs.gpus = (job.gpu_millis + kMillis - 1) / kMillis;
  if (!job.pools.empty()) needs.pool = job.pools.front();
  return needs;
}

std::vector<v1::Shortage> RefusalsOf(const Requirements& job, const PutCluster& cluster) {
  const v1::AdmissionFacts& facts = cluster.inventory.admission();
  if (const contract::AdmissionNeeds* needs = job.admission.needs())
    return contract::JudgeAdmission(*needs, facts, cluster.name).refusals;
  auto shortage = contract::FindLimitShortage(PlainNeeds(job), facts.kubernetes());
  if (!shortage.has_value()) return {};
  return {*std::move(shortage)};
}

// Returns the fit of the job's needs; a cluster whose agent's facts speak against the job never
// fits.
Fit UnlessRefused(Fit fit, const Requirements& job, const PutCluster& cluster) {
  if (!fit.ever() || !cluster.inventory.has_admission()) return fit;
  const std::vector<v1::Shortage> refusals = RefusalsOf(job, cluster);
  if (refusals.empty()) return fit;
  const v1::Shortage& first = refusals.front();
  return {Fit::Verdict::kRefused,
          {.code = LackCode::kRefused,
           .requested = first.requested(),
           .available = first.available(),
           .refusal = contract::RefusalText(refusals),
           .refused_field = first.resource()}};
}

Fit CheckKind(const Requirements& job, const PutCluster& cluster) {
  const LackCode code = LacksKind(job, cluster);
  if (code == LackCode::kNothing) return {};
  Fit fit{Fit::Verdict::kWrongKind, {.code = code, .kind = cluster.kind}};
  if (code == LackCode::kPartsOfGpus) {
    fit.lack.asked = job.gpu_type;
    fit.lack.requested = job.gpu_millis;
  }
  if (code == LackCode::kMachineFile) fit.lack.asked = job.machine_file_field;
  return fit;
}

// Returns whether `fit` is nearer to being right; where both lack the same, the larger pool is.
bool IsBetter(const Fit& fit, const Fit& best) {
  if (fit.verdict != best.verdict) return fit.verdict > best.verdict;
  return fit.lack.code == best.lack.code && fit.lack.available > best.lack.available;
}

// Returns the limit of the job's project; null if it has none.
const contract::PlaceLimit* FindLimit(const Requirements& job,
                                      const contract::PlaceLimits& limits) {
  // Most brokers have no limits, and this is asked for each group and cluster.
  if (limits.empty()) return nullptr;
  const auto found = limits.find(job.project);
  return found == limits.end() ? nullptr : &found->second;
}

bool Allows(const std::vector<std::string>& allowed, std::string_view name) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), name) != allowed.end();
}

// Says why the cluster is not for the job's project at all.
Fit CheckLimit(const Requirements& job, const PutCluster& cluster,
               const contract::PlaceLimit* limit) {
  if (limit == nullptr) return {};
  if (!Allows(limit->clusters, cluster.name)) {
    return {Fit::Verdict::kOfOthers, {.code = LackCode::kClusterOfOthers, .asked = job.project}};
  }
  // The accounts of jobs for Slurm alone were looked at when they came in.
  if (limit->needs_account && cluster.kind == v1::CLUSTER_KIND_SLURM && !job.needs_slurm) {
    return {Fit::Verdict::kOfOthers, {.code = LackCode::kAccount, .asked = job.project}};
  }
  return {};
}

Fit PoolOfOthers(const Requirements& job) {
  return {Fit::Verdict::kNoPool, {.code = LackCode::kPoolOfOthers, .asked = job.project}};
}

// The cluster chooses among the pools that a job may use, so that its project must be allowed all
// of them.
bool AllowsPools(const Requirements& job, const PutCluster& cluster,
                 const contract::PlaceLimit* limit) {
  if (limit == nullptr || limit->pools.empty()) return true;
  const auto is_allowed = [&](std::string_view name) { return Allows(limit->pools, name); };
  if (!job.pools.empty()) return std::all_of(job.pools.begin(), job.pools.end(), is_allowed);
  const std::vector<const v1::Pool*> pools = DefaultPools(cluster.inventory);
  return std::all_of(pools.begin(), pools.end(),
                     [&](const v1::Pool* pool) { return is_allowed(pool->name()); });
}

Fit CheckPools(const Requirements& job, const PutCluster& cluster) {
  Fit best{Fit::Verdict::kNotNamed, {.code = LackCode::kNotNamed}};
  if (job.pools.empty()) {
    for (const v1::Pool* pool : DefaultPools(cluster.inventory)) {
      Fit fit = CheckPool(job, *pool, cluster.kind);
      if (IsBetter(fit, best)) best = std::move(fit);
    }
    if (best.verdict != Fit::Verdict::kNotNamed) return best;
    return {Fit::Verdict::kNoPool, {.code = LackCode::kAnyPool}};
  }
  for (const std::string& name : job.pools) {
    Fit fit{Fit::Verdict::kNoPool,
            {.code = job.pool_is_namespace ? LackCode::kNamespace : LackCode::kPool,
             .inventory = &cluster.inventory,
             .asked = name}};
    if (const v1::Pool* pool = FindPool(cluster.inventory, name))
      fit = CheckPool(job, *pool, cluster.kind);
    if (IsBetter(fit, best)) best = std::move(fit);
  }
  return best;
}

placement::Capacity CapacityOf(const Requirements& job, const v1::Pool& pool,
                               v1::ClusterKind kind) {
  placement::Capacity out;
  out.pool = &pool;
  out.knows_nodes = pool.node_groups_size() > 0;
  out.shares_nodes = kind == v1::CLUSTER_KIND_KUBERNETES;
  out.takes_arrays = kind == v1::CLUSTER_KIND_SLURM;
  const Need need = NeedOf(job, pool, kind);
  bool knows_memory = true;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    const uint64_t nodes = group.usable_count();
    if (nodes == 0) continue;
    out.usable.cpu_millis += nodes * group.cpus() * kMillis;
    out.usable.memory_bytes += nodes * group.memory_bytes();
    knows_memory = knows_memory && group.memory_bytes() > 0;
    if (need.gpus > 0) {
      uint64_t all = 0;
      for (const auto& [type, count] : group.gpus()) all += count;
      const uint64_t good = GpusFor(need, group);
      out.usable.gpu_millis += nodes * good * kMillis;
      out.other_gpu_millis += nodes * (all - good) * kMillis;
    }
    if (HasAll(need, group)) out.good_nodes += nodes;
  }
  if (!knows_memory) out.usable.memory_bytes = 0;
  return out;
}

}  // namespace

Fit CheckFit(const Requirements& job, const PutCluster& cluster,
             const contract::PlaceLimits& limits) {
  const auto& named = job.clusters;
  if (!named.empty() && std::find(named.begin(), named.end(), cluster.name) == named.end()) {
    return {Fit::Verdict::kNotNamed, {.code = LackCode::kNotNamed}};
  }
  const auto& refusing = job.ruled_out;
  if (std::find(refusing.begin(), refusing.end(), cluster.name) != refusing.end())
    return {Fit::Verdict::kRefused, {.code = LackCode::kRefused}};
  const contract::PlaceLimit* limit = FindLimit(job, limits);
  if (Fit fit = CheckLimit(job, cluster, limit); !fit.now()) return fit;
  if (Fit fit = CheckKind(job, cluster); !fit.now()) return fit;
  if (!AllowsPools(job, cluster, limit)) return PoolOfOthers(job);
  return UnlessRefused(CheckPools(job, cluster), job, cluster);
}

placement::Capacity CapacityFor(const Requirements& job, const PutCluster& cluster) {
  std::vector<const v1::Pool*> pools;
  for (const std::string& name : job.pools) {
    if (const v1::Pool* pool = FindPool(cluster.inventory, name)) pools.push_back(pool);
  }
  if (job.pools.empty()) pools = DefaultPools(cluster.inventory);
  placement::Capacity best;
  for (const v1::Pool* pool : pools) {
    if (!pool->available()) continue;
    const placement::Capacity capacity = CapacityOf(job, *pool, cluster.kind);
    if (best.pool == nullptr || capacity.good_nodes > best.good_nodes) best = capacity;
  }
  return best;
}

}  // namespace muster::core
